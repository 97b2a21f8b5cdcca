// Pictures of every page for docs/user/portal.md: PORTAL_PICTURES names the folder; without it nothing is done. In its folders dark and
// narrow are the same pages in the dark theme and in a window of 320 pixels, at full length, for who changes how they look.
import type { Route } from '@playwright/test'
import { expect, picture, signIn, test, viewSet } from './portal'
import { ANN, fetched, GRETA, settled, stageSet } from './stage'

const PICTURES: [string, string][] = [
  ['home', '/'],
  ['jobs', '/jobs'],
  ['failed', '/jobs/admin~resnet-49'],
  ['running', '/jobs/admin~resnet-50'],
  ['log', '/jobs/admin~resnet-50?tab=logs'],
  ['use', '/jobs/admin~resnet-50?tab=use'],
  ['configuration', '/jobs/admin~resnet-50?tab=config&with=admin~resnet-48'],
  ['attempts', '/jobs/admin~resnet-49?tab=attempts'],
  ['submit', '/submit'],
  ['map', '/cluster'],
  ['nodes', '/cluster?tab=nodes'],
  ['queue', '/cluster?tab=queue'],
  ['virtual-clusters', '/cluster?tab=quotas'],
  ['storages', '/storages'],
  ['users', '/admin'],
  ['groups', '/admin?tab=groups'],
  ['granted', '/admin?tab=clusters'],
  ['admin-storages', '/admin?tab=storages'],
  ['admin-nodes', '/admin?tab=nodes'],
  ['services', '/admin?tab=services'],
  ['abnormal', '/admin?tab=abnormal'],
  ['exit-codes', '/admin?tab=exits'],
  ['audit', '/admin?tab=audit'],
  ['settings', '/admin?tab=settings'],
  ['profile', '/profile'],
  ['design', '/design'],
]

/** The first is for the guide, the others are to be looked at. */
const VIEWS = [
  { theme: 'light', width: 1280, height: 800, folder: '' },
  { theme: 'dark', width: 1280, height: 800, folder: 'dark/' },
  { theme: 'light', width: 320, height: 640, folder: 'narrow/' },
] as const

/** What waits and what runs has done so for days, which nobody waits for here. */
async function daysLater(route: Route) {
  const reply = await fetched(route)
  const page = (await reply.json()) as { data?: { state: string; submissionTime: number; launchedTime: number | null }[] }
  for (const job of page.data ?? []) {
    if (job.state === 'WAITING') job.submissionTime -= 31 * 3600_000
    if (job.state === 'RUNNING') job.launchedTime = (job.launchedTime ?? Date.now()) - 8 * 24 * 3600_000
  }
  await route.fulfill({ response: reply, json: page })
}

test('pictures of every page', async ({ page, browser }) => {
  test.skip(!process.env['PORTAL_PICTURES'], 'only when somebody wants them')
  test.setTimeout(900_000)
  await page.goto('/')
  await expect(page.getByLabel('Password')).toBeVisible()
  await picture(page, 'sign-in')
  await signIn(page)
  await stageSet(page)
  for (const [name, path] of PICTURES) {
    await page.unrouteAll({ behavior: 'wait' })
    if (name === 'abnormal') await page.route('**/api/v2/jobs?*', daysLater)
    await page.goto(path)
    await settled(page)
    for (const view of VIEWS) {
      await viewSet(page, view)
      await picture(page, view.folder + name)
    }
    await viewSet(page, VIEWS[0])
  }
  await page.emulateMedia({ colorScheme: 'dark' })
  await page.goto('/')
  await settled(page)
  await picture(page, 'dark')
  await page.setViewportSize({ width: 320, height: 640 })
  await page.goto('/jobs')
  await settled(page)
  await picture(page, 'narrow')
  for (const [name, who, path] of [
    ['group-administrator', GRETA, '/admin'],
    ['user', ANN, '/jobs/admin~resnet-50'],
  ] as const) {
    const context = await browser.newContext()
    const other = await context.newPage()
    await signIn(other, who)
    await other.goto(path)
    await settled(other)
    await picture(other, name)
    await context.close()
  }
})
