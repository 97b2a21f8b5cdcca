// Lighthouse over the pages of the portal, in Debian's chromium; started by tests/bench/api/bench_portal.py. It has a package file of its
// own: it is many times as large as everything else that the portal's tests need.
import { cpus, loadavg } from 'node:os'
import lighthouse, { desktopConfig } from 'lighthouse'
import puppeteer from 'puppeteer-core'
import { browser as executablePath } from '../e2e/browser.mjs'

const base = process.env.PORTAL_URL
const CATEGORIES = ['performance', 'accessibility', 'best-practices']
const PAGES = {
  login: '/sign-in',
  home: '/',
  jobs: '/jobs',
  job: '/jobs/admin~log',
  log: '/jobs/admin~log?tab=logs',
  use: '/jobs/admin~log?tab=use',
  configuration: '/jobs/admin~log?tab=config',
  attempts: '/jobs/admin~log?tab=attempts',
  submit: '/submit',
  cluster: '/cluster',
  nodes: '/cluster?tab=nodes',
  queue: '/cluster?tab=queue',
  'virtual clusters': '/cluster?tab=quotas',
  storages: '/storages',
  users: '/admin',
  groups: '/admin?tab=groups',
  audit: '/admin?tab=audit',
  settings: '/admin?tab=settings',
  profile: '/profile',
  design: '/design',
}
const runs = Number(process.env.LIGHTHOUSE_RUNS)
const wanted = process.env.LIGHTHOUSE_PAGES ? process.env.LIGHTHOUSE_PAGES.split(',') : Object.keys(PAGES)
for (const name of wanted) if (!PAGES[name]) throw new Error(`no such page: ${name}; there are ${Object.keys(PAGES).join(', ')}`)

const reply = await fetch(`${base}/api/v2/authn/basic/login`, {
  method: 'POST',
  headers: { 'Content-Type': 'application/json' },
  body: JSON.stringify({ username: 'admin', password: process.env.PORTAL_PASSWORD }),
})
const { user, token, admin } = await reply.json()
/** What is less than full marks, and why. */
function lacks(lhr) {
  return CATEGORIES.flatMap((category) =>
    lhr.categories[category].auditRefs
      .filter(({ id, weight }) => weight > 0 && lhr.audits[id].score !== null && lhr.audits[id].score < (category === 'performance' ? 0.9 : 1))
      .map(({ id }) => {
        const nodes = (lhr.audits[id].details?.items ?? []).slice(0, 3).map((item) => item.node?.snippet ?? item.source ?? item.description ?? '')
        return `  ${category}: ${lhr.audits[id].title} ${lhr.audits[id].displayValue ?? ''} ${nodes.join(' | ')}`.trimEnd()
      }),
  )
}

/** A browser for each run: what one page has left, a log that it follows, is no part of the next one's score. */
async function measure(name, tries = 3) {
  const browser = await puppeteer.launch({
    executablePath,
    args: process.getuid?.() === 0 ? ['--no-sandbox'] : [],
  })
  try {
    const page = await browser.newPage()
    if (name !== 'login') await page.evaluateOnNewDocument((session) => sessionStorage.setItem('skep.session', session), JSON.stringify({ user, token, admin }))
    const { lhr, artifacts } = await lighthouse(`${base}${PAGES[name]}`, { onlyCategories: CATEGORIES, disableStorageReset: true, logLevel: 'error' }, desktopConfig, page)
    // on a machine with much other work the trace may lack its begin; Lighthouse itself then asks to be run again
    if (lhr.runtimeError && tries > 1) return await measure(name, tries - 1)
    if (lhr.runtimeError) throw new Error(`${name}: ${lhr.runtimeError.message}`)
    return { lhr, blockedMs: blockedMs(artifacts.Trace.traceEvents) }
  } finally {
    await browser.close()
  }
}

const scoreOf = (lhr, category) => Math.round(100 * lhr.categories[category].score)

/** What Lighthouse calls total blocking time, by processor time: what other programs took of the machine is no part of it. */
function blockedMs(events) {
  const began = events.filter((event) => event.name === 'navigationStart' && event.args.data?.documentLoaderURL?.startsWith(base)).at(-1)
  const tasks = events.filter((event) => event.name === 'RunTask' && event.pid === began.pid && event.tid === began.tid && event.ts >= began.ts)
  if (!tasks.some(({ tdur }) => tdur)) throw new Error('the trace has no processor time')
  return Math.round(tasks.reduce((sum, { tdur }) => sum + Math.max(0, (tdur ?? 0) / 1000 - 50), 0))
}

/** The run in the middle, by performance, stands for all of them: the machine may have had other work during some. */
for (const name of wanted) {
  const reports = []
  for (let i = 0; i < runs; i++) reports.push(await measure(name))
  reports.sort((a, b) => a.lhr.categories.performance.score - b.lhr.categories.performance.score)
  const { lhr, blockedMs } = reports[Math.floor(reports.length / 2)]
  const scores = CATEGORIES.map((category) => `${category} ${scoreOf(lhr, category)}`)
  const all = reports.length > 1 ? ` (${reports.map((one) => scoreOf(one.lhr, 'performance')).join(', ')})` : ''
  const ms = (audit) => Math.round(lhr.audits[audit].numericValue)
  console.log(
    `${name}: ${scores.join(', ')}${all}; largest contentful paint ${ms('largest-contentful-paint')} ms, ` +
      `blocked for ${ms('total-blocking-time')} ms, ${blockedMs} ms of processor time; load ${loadavg()[0].toFixed(1)} on ${cpus().length} processors`,
  )
  for (const lack of lacks(lhr)) console.log(lack)
}
