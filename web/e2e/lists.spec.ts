// Long lists: to a row or a page by its number. And the page of services.
import { expect, picture, signIn, tabTo, test } from './portal'

test('a row of a long list is one number away', async ({ page }) => {
  await signIn(page)
  // nobody submits 5,000 jobs for this test: what is listed is not the server's
  await page.route('**/api/v2/jobs?*limit=*', async (route) => {
    const query = new URL(route.request().url()).searchParams
    const offset = Number(query.get('offset') ?? 0)
    const count = Math.max(0, Math.min(Number(query.get('limit')), 5000 - offset))
    const data = Array.from({ length: count }, (_, index) => ({ username: 'admin', name: `job-${offset + index + 1}`, state: 'SUCCEEDED', executionType: 'START', virtualCluster: 'default', totalGpuNumber: 0, retries: 0, submissionTime: Date.now() }))
    await route.fulfill({ json: { totalCount: 5000, data } })
  })
  await page.goto('/jobs')
  const number = page.getByLabel('Go to row')
  await tabTo(page, number)
  await page.keyboard.type('4321')
  await page.keyboard.press('Enter')
  const row = page.getByRole('row').filter({ hasText: 'job-4321' })
  await expect(row).toBeFocused()
  await page.keyboard.press('ArrowDown')
  await expect(page.getByRole('row').filter({ hasText: 'job-4322' })).toBeFocused()
})

test('administrators see how each part of the server is, and each node', async ({ page }) => {
  await signIn(page)
  await page.goto('/cluster-view/services.html') // where OpenPAI had them
  await expect(page).toHaveURL(/\/admin\?tab=services$/)
  const server = page.getByRole('region', { name: 'The server' })
  await expect(server.getByRole('row').filter({ hasText: 'Database' })).toContainText('Healthy')
  await expect(server.getByRole('row').filter({ hasText: 'Engines that run tasks' })).toContainText('1 nodes')
  const node = page.getByRole('region', { name: 'On each node' }).getByRole('row').nth(1)
  await expect(node).toContainText('local')
  await expect(node).toContainText('Ready')
  await picture(page, 'services')
  // a server that is not ready answers 503, and says why: that is shown, too. Its disk is not filled for this test.
  await page.route('**/readyz?verbose', async (route) => route.fulfill({ status: 503, body: '[-] store failed: the disk is full\n[!] engine a b degraded: not open\nnot ready\n' }))
  await page.reload()
  await expect(server.getByRole('row').filter({ hasText: 'Database' })).toContainText('Failed')
  await expect(server.getByRole('row').filter({ hasText: 'Engine a b' })).toContainText('Degraded')
  await expect(server).toContainText('the disk is full')
})
