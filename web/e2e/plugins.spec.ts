// Plugins: what one of OpenPAI's gets, what none gets, and what is said when one does not come.
import { ADMIN, axePath, barriers, expect, picture, signIn, test } from './portal'

test.skip(!process.env['PORTAL_PLUGINS'], 'needs a server with plugins')

test('a plugin of OpenPAI gets what it needs, and nothing of the portal', async ({ page }) => {
  await page.addInitScript({ path: axePath })
  await signIn(page)
  await page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name: 'Market' }).click()
  await expect(page).toHaveURL(/\/plugins\/0$/)
  const plugin = page.frameLocator('iframe')
  await expect(plugin.getByText('user: admin')).toBeVisible()
  await expect(plugin.getByText(/^version: \d/)).toBeVisible()
  await expect(plugin.getByText('config: {"repo":"lab/pai"}')).toBeVisible()
  await expect(plugin.getByText('neighbour: [{},{}]')).toBeVisible()
  await expect(plugin.getByText('cookie: true')).toBeVisible()
  await expect(plugin.getByText('claims: admin true submit')).toBeVisible()
  await expect(plugin.getByText('jobs: true')).toBeVisible()
  await expect(plugin.getByText('accounts: 403')).toBeVisible() // administrator or not
  await expect(plugin.getByText('session: SecurityError')).toBeVisible()
  await picture(page, 'plugin')
  expect(await barriers(page)).toEqual([])
  const tokens = () =>
    page.evaluate(async () => {
      const { token } = JSON.parse(sessionStorage.getItem('skep.session') ?? '{}') as { token: string }
      const reply = await fetch('/api/v2/tokens', { headers: { Authorization: `Bearer ${token}` } })
      return ((await reply.json()) as { tokens: string[] }).tokens.length
    })
  const before = await tokens()
  await plugin.getByRole('link', { name: 'Failed jobs' }).click() // a page of the portal, outside the frame
  await expect(page).toHaveURL(/\/jobs\?state=FAILED/)
  await expect(page.locator('iframe')).toHaveCount(0)
  await expect.poll(tokens).toBe(before - 1) // that of the plugin has ended with its page
})

test('links of OpenPAI lead to it, and a copy of a job begins in the plugin that submitted it', async ({ page }) => {
  await signIn(page, ADMIN, '/plugin.html?index=0&op=resubmit&user=a&jobname=b')
  await expect(page).toHaveURL(/\/plugins\/0\?op=resubmit&user=a&jobname=b/)
  await expect(page.frameLocator('iframe').getByText('asked: resubmit a b')).toBeVisible()
  await page.goto('/jobs/admin~cloned')
  const clone = page.getByRole('link', { name: 'Clone' })
  await expect(clone).toHaveAttribute('href', /^\/plugins\/0/)
  await clone.click()
  await expect(page.frameLocator('iframe').getByText('asked: resubmit admin cloned')).toBeVisible()
})

// a page of its own: what the policy refuses is an error at the console
test('a plugin reaches no other server', async ({ browser }) => {
  const context = await browser.newContext()
  const page = await context.newPage()
  await signIn(page, ADMIN, '/plugins/0?try=elsewhere')
  await expect(page.frameLocator('iframe').getByText('refused: connect-src http://127.0.0.1:9')).toBeVisible()
  await context.close()
})

test('a script that does not come, or defines no element, is named', async ({ page }) => {
  await signIn(page, ADMIN, '/plugins/1')
  await expect(page.getByRole('alert')).toContainText('defines no element pai-plugin')
  await page.goto('/plugins/2')
  await expect(page.getByRole('alert')).toContainText('/gone.js')
  await page.goto('/plugins/9')
  await expect(page.getByText('There is no such plugin')).toBeVisible()
})
