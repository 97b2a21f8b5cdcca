// Measures one part of the portal in a browser; started by tests/bench/api/bench_portal.py, which says what the parts are.
import { chromium } from '@playwright/test'

const base = process.env.PORTAL_URL
const user = process.env.PORTAL_USER ?? 'admin'
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
  args: [...(process.getuid?.() === 0 ? ['--no-sandbox'] : []), '--enable-precise-memory-info', '--js-flags=--expose-gc'],
})
const context = await browser.newContext({ viewport: { width: 1280, height: 800 } })
const page = await context.newPage()
page.setDefaultTimeout(180_000)

async function signIn() {
  await page.goto(base)
  await page.getByLabel('User name').fill(user)
  await page.getByLabel('Password').fill(process.env.PORTAL_PASSWORD)
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.getByRole('heading', { name: 'My work' }).waitFor()
}

// What happens in the page is timed there: how soon this program hears of it says nothing.

/** Milliseconds from the address to the first drawn frame in which `selector` has `text`; five times. */
async function opened(path, selector, text) {
  const times = []
  for (let i = 0; i < 5; i++) {
    await page.goto('about:blank')
    await page.goto(`${base}${path}`, { waitUntil: 'commit' })
    times.push(await page.evaluate(seen, [selector, text]))
  }
  return times
}

/** The time of the first drawn frame in which some `selector` has `text`, since the page began or since `from`. */
const seen = ([selector, text, from = 0]) =>
  new Promise((resolve) => {
    const look = () => {
      const is = [...document.querySelectorAll(selector)].some((element) => element.textContent.includes(text))
      if (is) requestAnimationFrame(() => resolve(Math.round(performance.now() - from)))
      else requestAnimationFrame(look)
    }
    look()
  })

/** Act in the page, and wait for what is to be seen then. */
async function since(act, selector, text) {
  const from = await page.evaluate(() => performance.now())
  await act()
  return page.evaluate(seen, [selector, text, from])
}

const paints = () =>
  page.evaluate(
    () =>
      new Promise((resolve) => {
        new PerformanceObserver((list) => resolve(Math.round(list.getEntries().at(-1).startTime))).observe({ type: 'largest-contentful-paint', buffered: true })
      }),
  )

/** The slowest interaction that the browser has seen so far. */
const interactionsBegin = () =>
  page.evaluate(() => {
    globalThis.slowest = 0
    new PerformanceObserver((list) => {
      for (const entry of list.getEntries()) globalThis.slowest = Math.max(globalThis.slowest, entry.duration)
    }).observe({ type: 'event', durationThreshold: 16 })
  })

/** Frames while the element scrolls from one end to the other in `frames` steps: the slowest, and how many took longer than two of 60 a second. */
const scrolled = (element, frames) =>
  new Promise((resolve) => {
    const times = []
    let last = performance.now()
    let step = 0
    const next = () => {
      const now = performance.now()
      times.push(now - last)
      last = now
      element.scrollTop = element.scrollHeight * (1 - step / frames)
      if (step++ < frames) requestAnimationFrame(next)
      else resolve({ frames, slowestMs: Math.round(Math.max(...times.slice(1))), longerThan34Ms: times.slice(1).filter((time) => time > 34).length })
    }
    requestAnimationFrame(next)
  })

const heapMB = () =>
  page.evaluate(() => {
    globalThis.gc?.()
    return performance.memory.usedJSHeapSize / 1e6
  })

const parts = {
  async list(report) {
    const times = []
    for (let i = 0; i < 5; i++) {
      await page.goto(`${base}/jobs`)
      await page.getByRole('row').nth(5).getByRole('link').waitFor()
      times.push(await paints())
    }
    report.largestContentfulPaintMs = times
    const grid = page.getByRole('grid')
    report.rows = Number(await grid.getAttribute('aria-rowcount')) - 1
    await interactionsBegin()
    await page.getByRole('row').nth(1).click({ position: { x: 5, y: 5 } })
    await page.getByRole('row').nth(1).focus()
    for (let i = 0; i < 30; i++) await page.keyboard.press('ArrowDown')
    await page.keyboard.press('Space')
    await page.keyboard.press('/')
    await page.keyboard.type('job-0001', { delay: 60 })
    await page.getByRole('row').filter({ hasText: 'job-000199' }).waitFor()
    report.interactionToNextPaintMs = await page.evaluate(() => globalThis.slowest)
    await page.goto(`${base}/jobs`)
    await page.getByRole('row').nth(5).getByRole('link').waitFor()
    const end = await grid.getAttribute('aria-rowcount')
    report.scrollToTheEndMs = await since(() => grid.evaluate((element) => (element.scrollTop = element.scrollHeight)), `[aria-rowindex="${end}"] a`, '')
    report.rowsInTheDocument = await page.getByRole('row').count()
    report.scrolling = await grid.evaluate(scrolled, 300)
    report.heapMB = Math.round(await heapMB())
  },

  async job(report) {
    await page.evaluate(async (body) => {
      const { token } = JSON.parse(sessionStorage.getItem('skep.session'))
      await fetch('/api/v2/jobs', { method: 'POST', headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'text/yaml' }, body })
    }, process.env.PORTAL_LARGE_JOB)
    await page.goto(`${base}/jobs/admin~large`)
    await page.evaluate(seen, ['[aria-label=State] button', '15000'])
    report.openedMs = await opened('/jobs/admin~large', '.task-grid .grid-row', 'fake')
    const grid = page.locator('.task-grid')
    report.scrollToTheEndMs = await since(() => grid.evaluate((element) => (element.scrollTop = element.scrollHeight)), '.task-grid .grid-row', 'second[9999]')
    report.scrolling = await grid.evaluate(scrolled, 300)
    await interactionsBegin()
    const waiting = page.getByRole('group', { name: 'State' }).getByRole('button', { name: 'Waiting' })
    report.filterByStateMs = await since(() => waiting.click(), '.task-grid[aria-rowcount="5001"] .grid-row', 'Waiting')
    await waiting.click()
    const search = page.getByRole('searchbox', { name: 'Task, node, address or exit' })
    report.findByNumberMs = await since(() => search.fill('second[4321]'), '.task-grid[aria-rowcount="2"] .grid-row', 'second[4321]')
    report.interactionToNextPaintMs = await page.evaluate(() => globalThis.slowest)
    report.heapMB = Math.round(await heapMB())
  },

  async log(report) {
    const lines = Number(process.env.PORTAL_LINES)
    report.openedAtItsEndMs = await opened('/jobs/admin~log?tab=logs', '.log-line', `step ${lines} `)
    const field = page.getByRole('searchbox', { name: 'Search in all logs of the job' })
    await field.fill('needle')
    report.searchedMs = await since(() => field.press('Enter'), '.found li', 'needle')
    report.searchedToItsEndMs = await since(() => field.press('Enter'), '[role=status]', '1 line found')
    report.foundLineShownMs = await since(() => page.getByRole('list', { name: 'Lines found' }).getByRole('link').click(), '.log-line[data-hit]', 'needle')
    await page.goto(`${base}/jobs/admin~log?tab=logs`)
    await page.evaluate(seen, ['.log-line', `step ${lines} `])
    const log = page.getByRole('log')
    report.scrolling = await log.evaluate(scrolled, 300)
    for (let i = 0; i < 8; i++) {
      const more = page.getByRole('button', { name: 'Show earlier lines' })
      const height = await log.evaluate((element) => element.scrollHeight)
      await more.click()
      await page.waitForFunction((before) => document.querySelector('.log').scrollHeight > before, height)
    }
    report.linesHeld = Math.round((await log.evaluate((element) => element.scrollHeight)) / 19)
    report.scrollingAllOfThem = await log.evaluate(scrolled, 300)
    report.heapMB = Math.round(await heapMB())
  },

  async heap(report) {
    const minutes = Number(process.env.PORTAL_MINUTES)
    await page.goto(`${base}/jobs`)
    await page.getByRole('row').nth(5).getByRole('link').waitFor()
    const samples = []
    for (const begun = Date.now(); Date.now() - begun < minutes * 60_000; ) {
      samples.push({ minute: (Date.now() - begun) / 60_000, heapMB: await heapMB() })
      await page.waitForTimeout(10_000)
    }
    const late = samples.slice(Math.floor(samples.length / 4)) // what a page needs at first is no growth
    const mean = (key) => late.reduce((sum, one) => sum + one[key], 0) / late.length
    const [x, y] = [mean('minute'), mean('heapMB')]
    const slope = late.reduce((sum, one) => sum + (one.minute - x) * (one.heapMB - y), 0) / late.reduce((sum, one) => sum + (one.minute - x) ** 2, 0)
    report.heapMB = samples.filter((_, i) => i % Math.ceil(samples.length / 12) === 0).map((one) => Math.round(one.heapMB * 10) / 10)
    report.growthMBEachMinute = Math.round(slope * 1000) / 1000
  },
}

const report = {}
await signIn()
await parts[process.env.PORTAL_PART](report)
console.log(JSON.stringify(report, null, 2))
await browser.close()
