// The bell: what needs attention, since when, what has ended, and what nobody has seen yet.
import { ADMIN, axePath, barriers, expect, picture, signIn, test } from './portal'

test('a closed node is told with its time, read once, and still known after its end', async ({ page }) => {
  await page.addInitScript({ path: axePath })
  await signIn(page, ADMIN, '/cluster?tab=nodes')
  const token = await page.evaluate(() => (JSON.parse(sessionStorage.getItem('skep.session') ?? '{}') as { token: string }).token)
  const api = (method: 'get' | 'put', path: string, data?: object) => page.request[method](`/api/v2${path}`, { headers: { Authorization: `Bearer ${token}` }, ...(data && { data }) })
  const nodes = (await (await api('get', '/nodes')).json()) as { data: { name: string }[] }
  const node = nodes.data[0]!.name
  expect((await api('put', `/nodes/${node}/cordon`, { reason: 'a fan is loud' })).ok()).toBe(true)
  await page.reload()
  const bell = page.getByRole('button', { name: /alert.*unseen/ })
  await bell.click()
  const list = page.getByRole('region', { name: 'Alerts' })
  const item = list.getByRole('listitem').filter({ hasText: 'a fan is loud' })
  await expect(item).toContainText('NodeCordoned')
  await expect(item).toContainText('warning')
  await expect(item).toContainText('new')
  await expect(item.getByRole('time').or(item.locator('time'))).toHaveAttribute('datetime', /^\d{4}-/)
  await expect(item.getByRole('link', { name: node })).toBeVisible()
  await picture(page, 'alerts')
  expect(await barriers(page)).toEqual([])
  await page.keyboard.press('Escape')
  await expect(page.getByRole('button', { name: /^\d+ alerts?$/ })).toBeFocused() // it has been seen

  expect((await api('put', `/nodes/${node}/uncordon`, {})).ok()).toBe(true)
  await page.reload()
  await page.getByRole('button', { name: /alert/i }).click()
  const ended = list.getByRole('listitem').filter({ hasText: 'a fan is loud' })
  await expect(ended).toContainText('Ended')
  await expect(ended).not.toContainText('new')
  await expect(list.getByRole('heading', { name: 'Ended within a week' })).toBeVisible()
})
