// Many users: found, ordered, changed at once, and taken back.
import { readFileSync } from 'node:fs'
import { expect, signIn, test } from './portal'
import { ask, fetched } from './stage'

test('several users are put into a group and locked out, and the undo gives it all back', async ({ page }) => {
  await signIn(page)
  for (const username of ['batch-a', 'batch-b', 'batch-c']) await ask(page, 'POST', '/api/v2/users', { username, password: 'batch-password', email: `${username}@example.org` })
  await ask(page, 'POST', '/api/v2/groups', { groupname: 'batch', description: '', extension: {} })
  await page.goto('/admin')
  await page.getByLabel('Name, mail address or group').fill('BATCH-')
  await expect(page).toHaveURL(/q=BATCH-/)
  await expect(page.getByText('3 users')).toBeVisible()
  await page.getByLabel('Select all on this page').check()
  await page.getByRole('button', { name: 'Change the selected' }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByRole('group', { name: 'Add to groups' }).getByLabel('batch').check()
  await dialog.getByLabel('May sign in').selectOption('no')
  await dialog.getByRole('button', { name: 'Change', exact: true }).click()
  await expect(dialog).toHaveCount(0)
  const row = page.getByRole('row').filter({ hasText: 'batch-b@example.org' })
  await expect(row).toContainText('batch, default')
  await expect(row).toContainText('may not sign in')
  await page.getByLabel('Rights').selectOption('inactive')
  await expect(page.getByText('3 users', { exact: true })).toBeVisible()
  await page.getByRole('button', { name: 'Undo' }).click()
  await expect(page.getByText('Undone.')).toBeVisible()
  await expect(page.locator('body')).not.toBeFocused() // the button is gone, and the focus is not lost with it
  await expect(page.getByText('No user fits these filters')).toBeVisible()
  await page.getByRole('button', { name: 'Clear filters' }).click()
  await expect(page.locator('body')).not.toBeFocused()
  await expect(row).not.toContainText('batch, default')
  await expect(row).not.toContainText('may not sign in')
})

test('what a group grants stays with the group when one of its members is changed', async ({ page }) => {
  await signIn(page)
  await ask(page, 'POST', '/api/v2/groups', { groupname: 'granting', description: '', extension: { acls: { virtualClusters: ['elsewhere'] } } })
  await ask(page, 'POST', '/api/v2/users', { username: 'member', password: 'member-password', email: 'm@example.org', grouplist: ['granting'] })
  await page.goto('/admin?q=member')
  await page.getByRole('button', { name: 'Change member' }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByLabel('Mail address').fill('other@example.org')
  await dialog.getByRole('button', { name: 'Change', exact: true }).click()
  await expect(page.getByRole('row').filter({ hasText: 'other@example.org' })).toBeVisible()
  const read = () =>
    page.evaluate(async () => {
      const { token } = JSON.parse(sessionStorage.getItem('skep.session') ?? '{}') as { token?: string }
      return (await (await fetch('/api/v2/users/member', { headers: { Authorization: `Bearer ${token}` } })).json()) as { email: string; ownVirtualCluster: string[]; virtualCluster: string[] }
    })
  expect(await read()).toMatchObject({ ownVirtualCluster: [], virtualCluster: ['default', 'elsewhere'] })
  // taken back is the mail address, and nothing that somebody else has changed since
  await ask(page, 'PUT', '/api/v2/users', { patch: true, data: { username: 'member', virtualCluster: ['default'] } })
  await page.getByRole('button', { name: 'Undo' }).click()
  await expect(page.getByText('Undone.')).toBeVisible()
  expect(await read()).toMatchObject({ email: 'm@example.org', ownVirtualCluster: ['default'] })
})

test('the list is ordered by a column, filtered by what a user may, and saved', async ({ page }) => {
  await signIn(page)
  await page.goto('/admin?rights=admin')
  const names = page.getByRole('rowheader')
  await expect(names.filter({ hasText: 'admin' }).first()).toBeVisible()
  await page.getByLabel('Rights').selectOption('')
  await page.getByRole('button', { name: 'User ▲' }).click()
  await expect(page).toHaveURL(/order=-username/)
  await expect(page.getByRole('columnheader', { name: 'User' })).toHaveAttribute('aria-sort', 'descending')
  const shown = await names.allInnerTexts()
  expect(shown).toEqual([...shown].sort((a, b) => b.localeCompare(a)))
  const saved = page.waitForEvent('download')
  await page.getByRole('button', { name: 'Save as CSV' }).click()
  const text = readFileSync(await (await saved).path(), 'utf8')
  expect(text).toContain('username,email,admin,virtualCluster,groups,active')
  expect(text).toMatch(/^admin,.*,true,/m)
})

test('more users than a page are gone through by pages', async ({ page }) => {
  await signIn(page)
  await page.route('**/api/v2/users?cursor=', async (route) => {
    const reply = await fetched(route)
    const body = (await reply.json()) as { data: object[]; cursor: string | null }
    for (let i = 0; i < 1200; i++) body.data.push({ username: `made-${String(i).padStart(4, '0')}`, email: '', grouplist: [], virtualCluster: ['default'], admin: false, active: true })
    await route.fulfill({ json: body })
  })
  await page.goto('/admin?q=made-')
  await expect(page.getByText('1 to 100 of 1,200')).toBeVisible()
  await page.getByRole('button', { name: 'After' }).click()
  await expect(page.getByRole('rowheader').first()).toHaveText('made-0100')
  await page.getByLabel('Go to page').fill('12')
  await page.getByLabel('Go to page').press('Enter')
  await expect(page).toHaveURL(/page=12/)
  await expect(page.getByRole('button', { name: 'After' })).toBeDisabled()
  await expect(page.getByRole('rowheader').last()).toHaveText('made-1199')
})

test('a list that is refused once takes no open dialog away, nor what was typed there', async ({ page }) => {
  await signIn(page)
  await page.goto('/admin')
  await page.getByRole('button', { name: 'New user' }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByLabel('User name').fill('half-typed')
  await page.route('**/api/v2/users?cursor=', (route) => route.fulfill({ status: 429, json: { code: 'QuotaError', message: 'too many requests' } }))
  const refused = page.getByRole('alert').filter({ hasText: 'too many requests' })
  await expect(async () => {
    await page.evaluate(() => window.dispatchEvent(new Event('visibilitychange'))) // who comes back to the page has it read again
    expect(await page.getByText('too many requests').count()).toBe(1)
  }).toPass()
  await expect(dialog.getByLabel('User name')).toHaveValue('half-typed')
  await dialog.getByRole('button', { name: 'Cancel' }).click()
  await expect(refused).toBeVisible()
  await expect(page.getByRole('rowheader', { name: /^admin/ }).first()).toBeVisible()
})

test('a name that a removed user had is taken again for that name alone', async ({ page }) => {
  await signIn(page)
  const name = `gone-${Date.now()}`
  await ask(page, 'POST', '/api/v2/users', { username: name, password: 'gone-password', email: '' })
  await ask(page, 'DELETE', `/api/v2/users/${name}`)
  await page.goto('/admin')
  await page.getByRole('button', { name: 'New user' }).click()
  const dialog = page.getByRole('dialog')
  const box = dialog.getByLabel(/^Use the name again/)
  await dialog.getByLabel('User name').fill(name)
  await dialog.getByRole('button', { name: 'Make the user' }).click()
  await box.check()
  await dialog.getByLabel('User name').fill(`${name}-b`)
  await expect(box).toHaveCount(0)
  await dialog.getByLabel('User name').fill(name)
  await expect(box).not.toBeChecked()
  await box.check()
  await dialog.getByRole('button', { name: 'Make the user' }).click()
  await expect(page.getByText(`${name} is made.`)).toBeVisible()
})
