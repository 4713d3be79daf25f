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
  // `npm run preview` serves the built files with the policy that the service has for them.
  preview: {
    headers: {
      'Content-Security-Policy':
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    },
  },
  test: { include: ['src/**/*.test.ts'], environment: 'node' },
});
