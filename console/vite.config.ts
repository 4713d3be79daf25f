import { svelte } from '@sveltejs/vite-plugin-svelte';
import { defineConfig } from 'vitest/config';

// The service that `npm run dev` sends requests to.
const service = process.env['PAIS_URL'] ?? 'http://127.0.0.1:8080';

export default defineConfig({
  base: '/console/',
  plugins: [svelte()],
  build: {
    target: 'es2022',
    // Inlined files would be data: URLs, which the content security policy forbids.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
  },
  server: {
    proxy: Object.fromEntries(
      ['/v1', '/reports', '/readyz', '/console/config.json'].map((path) => [path, service]),
    ),
  },
  test: { include: ['src/**/*.test.ts'], environment: 'node' },
});
