// What administrators see beside users and groups: who asked for which change, storages, alerts.
import { expect, signIn, test } from './portal'

test('the audit names who made a user and what changed, and what was refused', async ({ page }) => {
  await signIn(page)
  await page.goto('/admin')
  await page.getByRole('button', { name: 'New user' }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByLabel('User name').fill('audited')
  await dialog.getByLabel('Password').fill('audited-password')
  await dialog.getByRole('button', { name: 'Make the user' }).click()
  await expect(page.getByRole('row').filter({ hasText: 'audited' })).toBeVisible()
  await page.goto('/admin?tab=audit')
  await page.getByLabel('About').fill('audited')
  await page.getByRole('button', { name: 'Search', exact: true }).click()
  await expect(page).toHaveURL(/subject=audited/)
  const row = page.getByRole('row').filter({ hasText: 'POST /api/v2/users' })
  await expect(row).toContainText('admin')
  await row.getByRole('button', { name: 'What changed' }).click()
  const changes = page.getByRole('listitem').filter({ hasText: 'username' }).or(page.getByRole('listitem').filter({ hasText: '→' }))
  await expect(changes.first()).toBeVisible()
  await expect(page.getByText('audited-password')).toHaveCount(0) // secrets are in no record
  await page.getByLabel('Only what was refused').check()
  await expect(page.getByText('Nothing was asked for that is like this')).toBeVisible()
})

test('storages say how a job file asks for them, or that there are none', async ({ page }) => {
  await signIn(page)
  await page.getByRole('link', { name: 'Storages' }).click()
  await expect(page.getByText('No storage is offered to you').or(page.getByRole('table'))).toBeVisible()
})
