// What is typed, pressed or shown while the server has not answered yet, or when it answers late: replies are held here.
import type { Page, Route } from '@playwright/test'
import { expect, signIn, test } from './portal'

/** By the API, as the person who is signed in. */
async function ask(page: Page, method: string, path: string, json: unknown = null) {
  const status = await page.evaluate(
    async ([method, path, body]) => {
      const { token } = JSON.parse(sessionStorage.getItem('skep.session') ?? '{}') as { token?: string }
      const reply = await fetch(path, { method, headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' }, body })
      return reply.ok ? 'ok' : await reply.text()
    },
    [method, path, json === null ? null : JSON.stringify(json)] as const,
  )
  expect(status).toBe('ok')
}

/** Requests of this method wait until `release`. */
async function held(page: Page, path: string | RegExp, method: string) {
  const waiting: Route[] = []
  let isOpen = false
  let count = 0
  await page.route(path, async (route) => {
    if (route.request().method() !== method) return route.fallback()
    count++
    if (isOpen) return route.continue()
    waiting.push(route)
  })
  const release = async () => {
    isOpen = true
    for (const route of waiting.splice(0)) await route.continue()
  }
  return { count: () => count, release }
}

test('a comma or a space that is typed last stays while the list is filtered by what stands before it', async ({ page }) => {
  await signIn(page)
  await page.goto('/jobs')
  await page.getByRole('button', { name: 'More filters' }).click()
  const tags = page.getByLabel('Tags, by comma')
  await tags.pressSequentially('red,')
  await expect(page).toHaveURL(/tag=red$/)
  await tags.pressSequentially(' blue')
  await expect(page).toHaveURL(/tag=red,blue$/)
  await expect(tags).toHaveValue('red, blue')
  const name = page.getByLabel('Part of a name')
  await name.pressSequentially('night ')
  await expect(page).toHaveURL(/keyword=night$/)
  await name.pressSequentially('run')
  await expect(page).toHaveURL(/keyword=night(\+|%20)run$/)
  await page.getByRole('search').getByRole('button', { name: 'Clear filters' }).click()
  await expect(name).toHaveValue('')
})

test('quotas are shown as they are, not as they were when they were looked at before', async ({ page }) => {
  await signIn(page)
  await ask(page, 'POST', '/api/v2/groups', { groupname: 'fresh', extension: {} })
  await page.goto('/admin?tab=groups')
  const dialog = page.getByRole('dialog')
  const field = dialog.getByLabel('GPUs of these')
  const open = () => page.getByRole('button', { name: 'Quotas of fresh' }).click()
  await open()
  await expect(field).toHaveValue('')
  await dialog.getByRole('button', { name: 'Cancel' }).click()
  await ask(page, 'PUT', '/api/v2/groups/fresh/quota', { gpus: 7 })
  await open()
  await expect(field).toHaveValue('7')
})

test('what is pressed again while it is under way is done once, and a dialog that was closed closes no other', async ({ page }) => {
  await signIn(page)
  await page.goto('/admin?tab=groups')
  const dialog = page.getByRole('dialog')
  const name = dialog.getByLabel('Name', { exact: true })
  const make = dialog.getByRole('button', { name: 'Make the group' })
  const posts = await held(page, '**/api/v2/groups', 'POST')
  await page.getByRole('button', { name: 'New group' }).click()
  await name.fill('once')
  await make.click()
  await expect(make).toBeDisabled()
  await name.press('Enter')
  await dialog.getByRole('button', { name: 'Cancel' }).click()
  await page.getByRole('button', { name: 'New group' }).click()
  await name.fill('another')
  await posts.release()
  await expect(page.getByText('The group once is made.')).toBeVisible()
  expect(posts.count()).toBe(1)
  await expect(name).toHaveValue('another')
  await make.click()
  await expect(dialog).toHaveCount(0)
})

test('the next member can be typed while the list is read again', async ({ page }) => {
  await signIn(page)
  for (const username of ['first', 'second']) await ask(page, 'POST', '/api/v2/users', { username, password: `${username}-password` })
  await ask(page, 'POST', '/api/v2/groups', { groupname: 'crew', extension: {} })
  await page.goto('/admin?tab=groups')
  await page.getByRole('button', { name: 'Members of crew' }).click()
  const dialog = page.getByRole('dialog')
  const user = dialog.getByLabel('User name')
  await expect(dialog.getByText('Nobody is in this group')).toBeVisible()
  const reads = await held(page, '**/api/v2/groups/crew/userlist', 'GET')
  await user.fill('first')
  await dialog.getByRole('button', { name: 'Add to the group' }).click()
  await expect(user).toHaveValue('')
  await user.fill('second')
  await reads.release()
  await expect(dialog.getByRole('row').filter({ hasText: 'first' })).toBeVisible()
  await expect(page.getByText('first is in the group crew.')).toBeVisible()
  await expect(user).toHaveValue('second')
})

test('the messages about a new job can be asked for when it is known which the user wants', async ({ page }) => {
  await signIn(page)
  const users = await held(page, '**/api/v2/users/admin', 'GET')
  await page.goto('/submit')
  const box = page.getByRole('checkbox', { name: 'Tell me when the job changes' })
  await expect(box).toBeDisabled()
  await users.release()
  await expect(box).toBeEnabled()
  await box.check()
  await expect(page.getByRole('group', { name: 'Tell me when the job changes' })).toBeVisible()
})

test('the keyboard goes to the name of the folder when what it was on is gone with a file', async ({ page }) => {
  await signIn(page)
  await ask(page, 'POST', '/api/v2/storages/home/folders', { path: 'passing' })
  await page.goto('/storages/home')
  await page.getByRole('checkbox', { name: 'Select passing' }).check()
  const remove = page.getByRole('button', { name: 'Delete 1 selected …' })
  await remove.focus()
  await ask(page, 'DELETE', '/api/v2/storages/home/files?path=passing')
  await expect(async () => {
    await page.evaluate(() => dispatchEvent(new Event('visibilitychange'))) // as for who comes back to the tab: the list is read again
    await expect(remove).toHaveCount(0, { timeout: 1000 })
  }).toPass()
  await expect(page.getByRole('navigation', { name: 'Folders' }).getByText('home')).toBeFocused()
})
