// Measures the portal in a browser; started by tests/bench/api/bench_portal.py.
import { chromium } from '@playwright/test'

const base = process.env.PORTAL_URL
const user = process.env.PORTAL_USER ?? 'admin'
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
  args: [...(process.getuid?.() === 0 ? ['--no-sandbox'] : []), '--enable-precise-memory-info', '--js-flags=--expose-gc'],
})
const context = await browser.newContext({ viewport: { width: 1280, height: 800 } })
const page = await context.newPage()
let bytes = 0
page.on('response', async (reply) => {
  if (/\/assets\/.*\.js$/.test(reply.url())) bytes += Number(reply.headers()['content-length'] ?? 0)
})
await page.goto(base)
await page.getByLabel('User name').waitFor()
const report = { initialScriptBytesAsSent: bytes }
await page.getByLabel('User name').fill(user)
await page.getByLabel('Password').fill(process.env.PORTAL_PASSWORD)
await page.getByRole('button', { name: 'Sign in' }).click()
await page.getByRole('heading', { name: 'My work' }).waitFor()

const paint = () =>
  page.evaluate(
    () =>
      new Promise((resolve) => {
        let last = 0
        new PerformanceObserver((list) => (last = list.getEntries().at(-1).startTime)).observe({ type: 'largest-contentful-paint', buffered: true })
        setTimeout(() => resolve(last), 300)
      }),
  )
const times = []
for (let i = 0; i < 5; i++) {
  await page.goto(`${base}/jobs`)
  await page.getByRole('row').nth(5).getByRole('link').waitFor()
  times.push(Math.round(await paint()))
}
report.largestContentfulPaintMs = times
const grid = page.getByRole('grid')
const scroll = Date.now()
await grid.evaluate((element) => (element.scrollTop = element.scrollHeight))
await page.locator(`[aria-rowindex="${Number(await grid.getAttribute('aria-rowcount'))}"] a`).waitFor()
report.scrollToTheEndMs = Date.now() - scroll
report.rows = Number(await grid.getAttribute('aria-rowcount')) - 1
report.rowsInTheDocument = await page.getByRole('row').count()
for (let i = 0; i < 40; i++) {
  await grid.evaluate((element, part) => (element.scrollTop = element.scrollHeight * part), i / 40)
  await page.waitForTimeout(100)
}
report.heapMBAfterScrolling = await page.evaluate(() => {
  globalThis.gc?.()
  return Math.round(performance.memory.usedJSHeapSize / 1e6)
})
console.log(JSON.stringify(report, null, 2))
await browser.close()
