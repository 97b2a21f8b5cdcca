// Virtual clusters are closed and opened, everybody is told why nothing starts, and users cannot do it.
import { axePath, expect, jobFile, roomMake, signIn, submit, test, violations } from './portal'
import { ANN, ask, stageSet } from './stage'

const stateOf = (page: Parameters<typeof ask>[0], job: string) =>
  page.evaluate(async (name) => {
    const { token } = JSON.parse(sessionStorage.getItem('skep.session') ?? '{}') as { token?: string }
    const reply = await fetch(`/api/v2/jobs/${name}`, { headers: { Authorization: `Bearer ${token}` } })
    return ((await reply.json()) as { jobStatus: { state: string } }).jobStatus.state
  }, job)

const STATUS = '/api/v2/virtual-clusters/default/status'

test.afterEach(async ({ page }) => {
  expect(await ask(page, 'PUT', STATUS, { vcStatus: 'running' })).toBe(201)
})

test('a virtual cluster is closed with a reason: what runs goes on, what waits says why, and it is opened again', async ({ page }) => {
  await page.addInitScript({ path: axePath })
  await signIn(page)
  await roomMake(page)
  const runs = `runs-${Date.now()}`
  const waits = `waits-${Date.now()}`
  await submit(page, jobFile(runs, ['sleep 1000']))
  await expect.poll(() => stateOf(page, `admin~${runs}`)).toBe('RUNNING')
  await page.goto('/admin?tab=clusters')
  const row = page.getByRole('row').filter({ has: page.getByRole('rowheader', { name: 'default' }) })
  await expect(row).toContainText('Open')
  await row.getByRole('button', { name: 'Close default' }).click()
  const dialog = page.getByRole('dialog')
  await expect(dialog).toContainText('1 job that runs goes on to its end.')
  await expect(dialog).toContainText('0 jobs that wait are not started.')
  await dialog.getByLabel('Reason, for people').fill('a course until Friday')
  expect(await violations(page)).toEqual([])
  await dialog.getByRole('button', { name: 'Close it' }).click()
  await expect(dialog).toHaveCount(0)
  await expect(row).toContainText('Closed by admin')
  await expect(row).toContainText('a course until Friday')
  expect(await violations(page)).toEqual([])
  await submit(page, jobFile(waits, ['true'])) // it is accepted
  await expect.poll(() => stateOf(page, `admin~${waits}`)).toBe('WAITING')
  await page.goto(`/jobs/admin~${waits}`)
  await expect(page.getByText('virtual cluster default is closed by admin since').first()).toBeVisible()
  await page.goto('/')
  await expect(page.getByRole('region', { name: 'Virtual clusters' })).toContainText('a course until Friday')
  await page.goto('/submit')
  await expect(page.getByText('the job waits until it is opened')).toBeVisible()
  expect(await stateOf(page, `admin~${runs}`)).toBe('RUNNING')
  await page.goto('/admin?tab=clusters')
  await row.getByRole('button', { name: 'Open default' }).click()
  await expect(page.getByText('default is open again.')).toBeVisible()
  await expect(row).not.toContainText('Closed by admin')
  await expect.poll(() => stateOf(page, `admin~${waits}`)).toBe('SUCCEEDED')
  await roomMake(page)
})

test('a user is told that it is closed, in their language, and cannot open it', async ({ page, browser }) => {
  await signIn(page)
  await stageSet(page)
  expect(await ask(page, 'PUT', STATUS, { vcStatus: 'stopped', reason: 'maintenance' })).toBe(201)
  const context = await browser.newContext()
  const other = await context.newPage()
  await other.addInitScript({ path: axePath })
  await signIn(other, ANN, '/')
  await other.evaluate(() => localStorage.setItem('skep.language', 'zh-CN'))
  await other.reload()
  await expect(other.getByText('由 admin 关闭').first()).toBeVisible()
  await expect(other.getByText('maintenance').first()).toBeVisible()
  expect(await violations(other)).toEqual([])
  expect(await ask(other, 'PUT', STATUS, { vcStatus: 'running' })).toBe(403)
  await context.close()
})
