// The console in a real browser, on the real program with a real PostgreSQL. `PAIS_BIN` names the program.

import { defineConfig } from '@playwright/test';

export default defineConfig({
  testDir: '.',
  outputDir: 'test-results',
  globalSetup: './setup.ts',
  timeout: 90_000,
  expect: { timeout: 15_000 },
  workers: 2,
  fullyParallel: true,
  forbidOnly: true,
  // A browser on a busy machine can lose a race once; the report names such a test as flaky.
  retries: process.env['CI'] === undefined ? 0 : 1,
  reporter: [['list']],
  use: {
    locale: 'en-US',
    viewport: { width: 1280, height: 900 },
    trace: 'off',
    launchOptions: {
      executablePath: process.env['CHROMIUM'] ?? '/usr/bin/chromium',
      args: [
        '--headless',
        '--no-sandbox',
        '--disable-gpu',
        '--disable-quic',
        '--no-first-run',
        '--disable-background-networking',
        '--disable-component-update',
        '--disable-sync',
        // The issuer of a test listens on the loopback address, and a page may ask for that only if its user agrees.
        '--disable-features=LocalNetworkAccessChecks',
      ],
    },
  },
});
