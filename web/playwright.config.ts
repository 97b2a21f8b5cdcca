import { defineConfig } from '@playwright/test'
import { browser } from './e2e/browser.mjs'

// The library that keeps changes of the machine's network from the browser (tests/system/portal/calm_network.c).
const calm = process.env['CALM_NETWORK']

// One browser, Debian's, for all tests, which share a server: tests/system/portal/test_portal.py starts it.
export default defineConfig({
  testDir: 'e2e',
  workers: 1,
  timeout: 300_000,
  expect: { timeout: 90_000 },
  reporter: 'list',
  outputDir: process.env['PORTAL_RESULTS'] ?? 'test-results',
  use: {
    baseURL: process.env['PORTAL_URL'] ?? 'http://127.0.0.1:9186',
    launchOptions: {
      executablePath: browser,
      args: process.getuid?.() === 0 ? ['--no-sandbox'] : [],
      ...(calm ? { env: { ...process.env, LD_PRELOAD: calm } } : {}),
    },
    screenshot: 'only-on-failure',
    viewport: { width: 1280, height: 800 },
  },
})
