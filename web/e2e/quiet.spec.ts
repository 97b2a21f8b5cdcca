// Nothing on any page is worth a line on the browser's console: no error, no warning, no breach of the policy, nothing deprecated, and
// nothing asked for that the server refuses. The page's own requests are those of a person who may do what the page offers.
import type { Page } from '@playwright/test'
import { ADMIN, expect, signIn, test } from './portal'
import { ANN, GRETA, pagesOf, settled, stageSet } from './stage'

/** What the page says from now on, each with where the page was. */
async function complaintsOf(page: Page): Promise<string[]> {
  const said: string[] = []
  const at = () => page.url().replace(/^https?:\/\/[^/]+/, '')
  await page.addInitScript(() => {
    document.addEventListener('securitypolicyviolation', (event) => console.error(`policy: ${event.violatedDirective} ${event.blockedURI}`))
    // deprecations and interventions, which the console shows only to who has it open
    new ReportingObserver((reports) => reports.forEach((report) => console.error(`${report.type}: ${JSON.stringify(report.body)}`)), { buffered: true }).observe()
  })
  page.on('console', (message) => said.push(`${at()} ${message.type()}: ${message.text()}`))
  page.on('pageerror', (error) => said.push(`${at()} ${String(error.stack)}`))
  page.on('response', (reply) => {
    if (reply.status() >= 400) said.push(`${at()} ${reply.request().method()} ${reply.url()}: ${reply.status()}`)
  })
  page.on('requestfailed', (request) => {
    const why = request.failure()?.errorText
    if (why !== 'net::ERR_ABORTED') said.push(`${at()} ${request.url()}: ${why}`) // aborted: the page was left
  })
  return said
}

const JOB = 'admin~resnet-50'
const OF_ADMIN = [...pagesOf(JOB), ...pagesOf('admin~resnet-49').filter((path) => path.includes('resnet-49')), `/jobs/${JOB}?tab=config&with=admin~resnet-48`, '/cluster?by=use']
const OF_ALL = ['/', '/jobs', `/jobs/${JOB}`, `/jobs/${JOB}?tab=use`, '/submit', '/cluster', '/cluster?by=use', '/cluster?tab=nodes', '/cluster?tab=queue', '/cluster?tab=quotas', '/storages', '/profile']

test('no page has anything to say on the console', async ({ page, browser }) => {
  test.setTimeout(900_000)
  await signIn(page)
  await stageSet(page)
  for (const [who, paths] of [
    [ADMIN, OF_ADMIN.filter((path) => !path.startsWith('/jobs/admin~none'))], // there is no such job, which the browser says
    [ANN, OF_ALL],
    [GRETA, [...OF_ALL, '/admin']],
  ] as const) {
    const context = await browser.newContext()
    const other = await context.newPage()
    const said = await complaintsOf(other)
    await signIn(other, who)
    for (const path of paths) {
      await other.goto(path)
      await settled(other)
      await other.waitForLoadState('load')
    }
    expect(said, who.name).toEqual([])
    await context.close()
  }
})
