// Lighthouse over the pages of the portal, in Debian's chromium; started by tests/bench/api/bench_portal.py. It has a package file of its
// own: it is many times as large as everything else that the portal's tests need.
import lighthouse, { desktopConfig } from 'lighthouse'
import puppeteer from 'puppeteer-core'

const base = process.env.PORTAL_URL
const CATEGORIES = ['performance', 'accessibility', 'best-practices']
const PAGES = { login: '/sign-in', home: '/', jobs: '/jobs', job: '/jobs/admin~log', log: '/jobs/admin~log?tab=logs', submit: '/submit', cluster: '/cluster' }

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

for (const [name, path] of Object.entries(PAGES)) {
  // a browser for each: what one page has left, a log that it follows, is no part of the next one's score
  const browser = await puppeteer.launch({
    executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
    args: process.getuid?.() === 0 ? ['--no-sandbox'] : [],
  })
  const page = await browser.newPage()
  if (name !== 'login') await page.evaluateOnNewDocument((session) => sessionStorage.setItem('skep.session', session), JSON.stringify({ user, token, admin }))
  const { lhr } = await lighthouse(`${base}${path}`, { onlyCategories: CATEGORIES, disableStorageReset: true, logLevel: 'error' }, desktopConfig, page)
  if (lhr.runtimeError) throw new Error(`${name}: ${lhr.runtimeError.message}`)
  const scores = CATEGORIES.map((category) => `${category} ${Math.round(100 * lhr.categories[category].score)}`)
  console.log(`${name}: ${scores.join(', ')}; largest contentful paint ${Math.round(lhr.audits['largest-contentful-paint'].numericValue)} ms`)
  for (const lack of lacks(lhr)) console.log(lack)
  await browser.close()
}
