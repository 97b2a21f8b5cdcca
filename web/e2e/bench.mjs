// Measures one part of the portal in a browser; started by tests/bench/api/bench_portal.py, which says what the parts are.
import { cpus, loadavg } from 'node:os'
import { chromium } from '@playwright/test'
import { browser as executablePath } from './browser.mjs'

const base = process.env.PORTAL_URL
const user = process.env.PORTAL_USER ?? 'admin'
const browser = await chromium.launch({
  executablePath,
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

/**
 * While `act` acts as a person: the slowest interaction by the clock, as the browser tells it; and the longest task of the page by processor
 * time, of which other work on the machine is no part.
 */
async function interactions(report, act) {
  await page.evaluate(() => {
    globalThis.slowest = 0
    new PerformanceObserver((list) => {
      for (const entry of list.getEntries()) globalThis.slowest = Math.max(globalThis.slowest, entry.duration)
    }).observe({ type: 'event', durationThreshold: 16 })
  })
  const session = await context.newCDPSession(page)
  const tasks = []
  session.on('Tracing.dataCollected', ({ value }) => tasks.push(...value.filter((event) => event.name === 'RunTask' || event.args?.name === 'CrRendererMain')))
  await session.send('Tracing.start', { transferMode: 'ReportEvents', traceConfig: { includedCategories: ['disabled-by-default-devtools.timeline', '__metadata'] } })
  await act()
  const complete = new Promise((resolve) => session.once('Tracing.tracingComplete', resolve))
  await session.send('Tracing.end')
  await complete
  await session.detach()
  const main = new Set(tasks.filter((event) => event.args?.name === 'CrRendererMain').map((event) => `${event.pid} ${event.tid}`))
  const times = tasks.filter((event) => event.tdur && main.has(`${event.pid} ${event.tid}`)).map((event) => event.tdur / 1000)
  if (!times.length) throw new Error('the trace has no tasks of the page')
  report.interactionToNextPaintMs = await page.evaluate(() => globalThis.slowest)
  report.longestTaskProcessorMs = Math.round(Math.max(...times))
}

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
    await interactions(report, async () => {
      await page.getByRole('row').nth(1).click({ position: { x: 5, y: 5 } })
      await page.getByRole('row').nth(1).focus()
      for (let i = 0; i < 30; i++) await page.keyboard.press('ArrowDown')
      await page.keyboard.press('Space')
      await page.keyboard.press('/')
      await page.keyboard.type('job-0001', { delay: 60 })
      await page.getByRole('row').filter({ hasText: 'job-000199' }).waitFor()
    })
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
    const waiting = page.getByRole('group', { name: 'State' }).getByRole('button', { name: 'Waiting' })
    const search = page.getByRole('searchbox', { name: 'Task, node, address or exit' })
    await interactions(report, async () => {
      report.filterByStateMs = await since(() => waiting.click(), '.task-grid[aria-rowcount="5001"] .grid-row', 'Waiting')
      await waiting.click()
      report.findByNumberMs = await since(() => search.fill('second[4321]'), '.task-grid[aria-rowcount="2"] .grid-row', 'second[4321]')
    })
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

  // Two tabs: one stays at the list, as on somebody's second screen; the other goes through all pages without a reload, again and again.
  async heap(report) {
    const minutes = Number(process.env.PORTAL_MINUTES)
    await page.goto(`${base}/jobs`)
    await page.getByRole('row').nth(5).getByRole('link').waitFor()
    const walker = await context.newPage()
    walker.setDefaultTimeout(180_000)
    await walker.goto(base) // it asks the first tab for the session
    await walker.getByRole('heading', { name: 'My work' }).waitFor()
    const tabs = { list: await heapOf(page), walk: await heapOf(walker) }
    const samples = { list: [], walk: [] }
    const begun = Date.now()
    const minute = () => (Date.now() - begun) / 60_000
    let walks = 0
    for (let told = 0; minute() < minutes; walks++) {
      await walk(walker)
      for (const [name, heap] of Object.entries(tabs)) samples[name].push({ minute: minute(), ...(await heap()) })
      await walker.waitForTimeout(10_000) // as somebody reads
      if (minute() < told) continue
      told += minutes / 12
      const one = (name) => `${name} ${round(samples[name].at(-1).heapMB)} MB, ${samples[name].at(-1).nodes} nodes, ${samples[name].at(-1).listeners} listeners`
      console.log(`minute ${round(minute())}: ${one('list')}; ${one('walk')} after ${walks + 1} walks`)
    }
    report.walks = walks
    for (const [name, all] of Object.entries(samples)) {
      const late = all.slice(Math.floor(all.length / 4)) // what a page needs at first is no growth
      report[name] = { most: round(Math.max(...all.map((one) => one.heapMB))), last: round(all.at(-1).heapMB), growthMBEachMinute: growth(late) }
    }
  },
}

const round = (x) => Math.round(x * 10) / 10

/** What the page holds after everything that it does not need has been collected. */
async function heapOf(tab) {
  const session = await context.newCDPSession(tab)
  return async () => {
    await session.send('HeapProfiler.collectGarbage')
    const { usedSize } = await session.send('Runtime.getHeapUsage')
    const { nodes, jsEventListeners } = await session.send('Memory.getDOMCounters')
    return { heapMB: usedSize / 1e6, nodes, listeners: jsEventListeners }
  }
}

/** The slope of the line through all samples. */
function growth(samples) {
  const mean = (key) => samples.reduce((sum, one) => sum + one[key], 0) / samples.length
  const [x, y] = [mean('minute'), mean('heapMB')]
  const slope = samples.reduce((sum, one) => sum + (one.minute - x) * (one.heapMB - y), 0) / samples.reduce((sum, one) => sum + (one.minute - x) ** 2, 0)
  return Math.round(slope * 1000) / 1000
}

/** Through all pages by their links. */
async function walk(tab) {
  const bar = tab.getByRole('navigation', { name: 'Pages' })
  await bar.getByRole('link', { name: 'Jobs' }).click()
  await tab.getByRole('row').nth(5).getByRole('link').click()
  const views = tab.locator('.tabs') // its links
  for (const name of ['Logs', 'Use', 'Configuration', 'Attempts']) {
    await views.getByRole('link', { name, exact: true }).click()
    await idle(tab)
  }
  await bar.getByRole('link', { name: 'Cluster' }).click()
  for (const name of ['Nodes', 'Queue', 'Virtual clusters']) {
    await views.getByRole('link', { name, exact: true }).click()
    await idle(tab)
  }
  for (const name of ['Submit', 'Storages', 'Administration', 'Home']) {
    await bar.getByRole('link', { name }).click()
    await tab.getByRole('heading', { level: 1 }).waitFor()
    await idle(tab)
  }
}

/** Nothing says any more that it is loading, and the browser has time. */
async function idle(tab) {
  await tab.waitForFunction(() => !/Loading …/.test(document.querySelector('main').textContent))
  await tab.evaluate(() => new Promise((resolve) => requestIdleCallback(resolve, { timeout: 2000 })))
}

const report = {}
await signIn()
await parts[process.env.PORTAL_PART](report)
report.load = `${loadavg()[0].toFixed(1)} on ${cpus().length} processors`
console.log(JSON.stringify(report, null, 2))
await browser.close()
