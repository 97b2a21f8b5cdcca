// Passwords of many users, made and shown once; and changes of groups and quotas, which are taken back.
import { readFileSync } from 'node:fs'
import type { Page } from '@playwright/test'
import { axePath, barriers, expect, picture, signIn, tabTo, test, VIEWS } from './portal'
import { ask } from './stage'

const read = <T>(page: Page, path: string): Promise<T> =>
  page.evaluate(async (path) => {
    const { token } = JSON.parse(sessionStorage.getItem('skep.session') ?? '{}') as { token?: string }
    return (await fetch(path, { headers: { Authorization: `Bearer ${token}` } })).json()
  }, path) as Promise<T>

/** The status of signing in. */
const tryPassword = (page: Page, username: string, password: string) => ask(page, 'POST', '/api/v2/authn/basic/login', { username, password })

test('several users get passwords of their own, which are shown once and saved', async ({ page }) => {
  await signIn(page)
  for (const username of ['word-a', 'word-b']) await ask(page, 'POST', '/api/v2/users', { username, password: 'word-password', email: '' })
  await page.goto('/admin?q=word-')
  await page.getByLabel('Select all on this page').check()
  const open = page.getByRole('button', { name: 'New passwords' })
  await tabTo(page, open)
  await page.keyboard.press('Enter')
  const dialog = page.getByRole('dialog')
  await expect(dialog).toContainText('New passwords for 2 users')
  await dialog.getByRole('button', { name: 'Set the passwords' }).click()
  const row = dialog.getByRole('row').filter({ hasText: 'word-b' })
  await expect(row).toBeVisible()
  await picture(page, 'passwords')
  const shown = await row.getByRole('cell').innerText()
  await page.keyboard.press('Escape') // not saved: it asks
  await expect(dialog.getByRole('alert')).toContainText('They are not saved')
  const saved = page.waitForEvent('download')
  await dialog.getByRole('button', { name: 'Save the passwords as CSV' }).click()
  expect(readFileSync(await (await saved).path(), 'utf8')).toContain(`word-b,${shown}\r\n`)
  await page.keyboard.press('Escape')
  await expect(dialog).toHaveCount(0)
  expect(await tryPassword(page, 'word-b', shown)).toBe(200)
  expect(await tryPassword(page, 'word-a', shown)).not.toBe(200)

  await open.click()
  await dialog.getByLabel('Which').selectOption('same')
  await dialog.getByLabel('New password').fill('the-same-for-all')
  await dialog.getByRole('button', { name: 'Set the passwords' }).click()
  await expect(dialog).toHaveCount(0)
  for (const name of ['word-a', 'word-b']) expect(await tryPassword(page, name, 'the-same-for-all')).toBe(200)
})

test('a file of users needs no passwords', async ({ page }) => {
  await signIn(page, undefined, '/admin')
  for (const name of ['filed-a', 'filed-b']) await ask(page, 'DELETE', `/api/v2/users/${name}`)
  await page.getByRole('button', { name: 'Users from a file' }).click()
  const dialog = page.getByRole('dialog')
  await dialog.locator('input[type=file]').setInputFiles({ name: 'users.csv', mimeType: 'text/csv', buffer: Buffer.from('username,email,password\nfiled-a,a@example.org,\nfiled-b,b@example.org,filed-b-password\n') })
  await expect(dialog.getByRole('row').filter({ hasText: 'filed-a' })).toContainText('made here')
  await dialog.getByRole('button', { name: 'Make the users' }).click()
  await expect(dialog.getByRole('row').filter({ hasText: 'filed-b' })).toContainText('✓')
  const made = dialog.getByRole('region', { name: 'New passwords' })
  await expect(made.getByRole('rowheader')).toHaveText(['filed-a'])
  expect(await tryPassword(page, 'filed-a', await made.getByRole('cell').innerText())).toBe(200)
  await dialog.getByRole('button', { name: 'Close', exact: true }).click()
  await dialog.getByRole('button', { name: 'Close', exact: true }).click()
  await expect(dialog).toHaveCount(0)
  await expect(page.getByRole('rowheader', { name: 'filed-b' })).toBeVisible()
})

test('rows of a file are corrected, added and removed by keyboard, and what failed is sent again alone', async ({ page }) => {
  await page.addInitScript({ path: axePath })
  await signIn(page, undefined, '/admin')
  for (const name of ['row-a', 'row-b', 'row-c', 'row-d']) await ask(page, 'DELETE', `/api/v2/users/${name}`)
  await page.getByRole('button', { name: 'Users from a file' }).click()
  const dialog = page.getByRole('dialog')
  const template = page.waitForEvent('download')
  await dialog.getByRole('button', { name: 'Save a template as CSV' }).click()
  expect(readFileSync(await (await template).path(), 'utf8')).toMatch(/^username,password,email,admin,virtual cluster,groups\r\nalice,/)
  const file = 'username,email,password,groups\nrow-a,a@example.org,row-a-password,\nrow b,b,short,\nrow-c,,,no-such-group\nrow-x,,,\n'
  await dialog.locator('input[type=file]').setInputFiles({ name: 'users.csv', mimeType: 'text/csv', buffer: Buffer.from(file) })
  const state = dialog.getByText(/to be sent/)
  await expect(state).toHaveText('3 to be sent, 0 made, 1 to be corrected first')
  const wrong = dialog.getByRole('row').filter({ hasText: 'row b' })
  await expect(wrong).toContainText('This is no mail address.')
  expect(await barriers(page, VIEWS.slice(0, 3))).toEqual([])
  await page.setViewportSize({ width: 1280, height: 800 })

  // a row goes, and the focus stays in the dialog
  await tabTo(page, dialog.getByRole('button', { name: 'Remove line 5: row-x' }))
  await page.keyboard.press('Enter')
  const add = dialog.getByRole('button', { name: 'Add a row' })
  await expect(add).toBeFocused()
  // another comes, and is taken back with Escape, which leaves the dialog open
  await page.keyboard.press('Enter')
  const row = dialog.getByRole('form', { name: 'Line 5' })
  await expect(row.getByLabel('User name')).toBeFocused()
  await page.keyboard.press('Escape')
  await expect(row).toHaveCount(0)
  await expect(add).toBeFocused()
  await page.keyboard.press('Enter')
  await page.keyboard.type('row-a')
  await page.keyboard.press('Enter')
  await expect(row.getByLabel('User name')).toHaveAccessibleDescription('Another row has this user name.')
  await expect(row.getByLabel('User name')).toBeFocused()
  expect(await barriers(page, VIEWS.slice(0, 3))).toEqual([])
  await page.setViewportSize({ width: 1280, height: 800 })
  await row.getByLabel('User name').fill('row-d')
  await page.keyboard.press('Enter')
  await expect(dialog.getByRole('button', { name: 'Change line 5: row-d' })).toBeFocused()

  // two rows can be sent as they are: the server refuses one of them
  const posts: string[] = []
  page.on('request', (request) => {
    if (request.method() === 'POST' && request.url().endsWith('/api/v2/users')) posts.push((request.postDataJSON() as { username: string }).username)
  })
  await expect(state).toHaveText('3 to be sent, 0 made, 1 to be corrected first')
  const send = dialog.getByRole('button', { name: 'Make the users' })
  await send.click()
  await expect(state).toHaveText('1 to be sent, 2 made, 1 to be corrected first')
  expect(posts.splice(0)).toEqual(['row-a', 'row-c', 'row-d'])
  await expect(dialog.getByRole('row').filter({ hasText: 'row-c' })).toContainText('no-such-group')

  // both are corrected, and only they are sent
  await tabTo(page, dialog.getByRole('button', { name: 'Change line 3: row b' }))
  await page.keyboard.press('Enter')
  const second = dialog.getByRole('form', { name: 'Line 3' })
  await second.getByLabel('User name').fill('row-b')
  await second.getByLabel('Mail address').fill('b@example.org')
  await second.getByLabel('Password').fill('row-b-password')
  await page.keyboard.press('Enter')
  await dialog.getByRole('button', { name: 'Change line 4: row-c' }).click()
  await dialog.getByRole('form', { name: 'Line 4' }).getByLabel('Groups').fill('')
  await dialog.getByRole('button', { name: 'Keep' }).click()
  await send.click()
  await expect(state).toHaveText('0 to be sent, 4 made, 0 to be corrected first')
  expect(posts).toEqual(['row-b', 'row-c'])
  await expect(send).toBeDisabled()
  expect(await tryPassword(page, 'row-b', 'row-b-password')).toBe(200)
  await expect(dialog.getByRole('region', { name: 'New passwords' }).getByRole('rowheader')).toHaveText(['row-c', 'row-d'])
})

interface Group {
  groupname: string
  description: string
  extension: { acls?: { admin?: boolean; virtualClusters?: string[] } }
}

test('changes of a group, of its members and of quotas are taken back, and so is its removal', async ({ page }) => {
  await signIn(page)
  for (const username of ['back-a', 'back-b']) await ask(page, 'POST', '/api/v2/users', { username, password: 'undo-password', email: '' })
  await ask(page, 'DELETE', '/api/v2/groups/revert') // of a run before
  await ask(page, 'POST', '/api/v2/groups', { groupname: 'revert', description: 'before', extension: { acls: { virtualClusters: ['default'] } } })
  await ask(page, 'PUT', '/api/v2/users/back-a/group', { groupname: 'revert', admin: true })
  await ask(page, 'PUT', '/api/v2/groups/revert/quota', { gpus: 7, liveJobs: null })
  await page.goto('/admin?tab=groups')
  const dialog = page.getByRole('dialog')
  const undo = page.getByRole('button', { name: 'Undo', exact: true })
  const undone = page.getByText('Undone.')
  const group = () => read<Group>(page, '/api/v2/groups/revert')

  await page.getByRole('button', { name: 'Change revert' }).click()
  await dialog.getByLabel('Description').fill('after')
  await dialog.getByRole('group', { name: 'Virtual clusters granted' }).getByLabel('default').uncheck()
  await dialog.getByRole('button', { name: 'Change', exact: true }).click()
  await expect(page.getByRole('row').filter({ hasText: 'after' })).toBeVisible()
  await undo.hover() // under the pointer it stays
  expect((await group()).extension.acls?.virtualClusters).toEqual([])
  await ask(page, 'PUT', '/api/v2/groups', { patch: true, data: { groupname: 'revert', externalName: 'meanwhile' } })
  await tabTo(page, undo)
  await page.keyboard.press('Enter')
  await expect(undone).toBeVisible()
  expect(await group()).toMatchObject({ description: 'before', externalName: 'meanwhile', extension: { acls: { virtualClusters: ['default'] } } })

  // in a dialog its notes are within reach
  await page.getByRole('button', { name: 'Members of revert' }).click()
  await dialog.getByLabel('User name').fill('back-b')
  await dialog.getByRole('button', { name: 'Add to the group' }).click()
  await expect(dialog.getByRole('rowheader', { name: 'back-b' })).toBeVisible()
  const inDialog = dialog.getByRole('button', { name: 'Undo', exact: true })
  await inDialog.hover()
  await picture(page, 'members')
  await tabTo(page, inDialog)
  await page.keyboard.press('Enter')
  await expect(dialog.getByRole('rowheader', { name: 'back-b' })).toHaveCount(0)
  await dialog.getByRole('button', { name: 'Take out back-a' }).click()
  await expect(dialog.getByText('Nobody is in this group')).toBeVisible()
  await expect(dialog.getByText('back-a is taken out of the group revert.')).toBeVisible()
  await dialog.getByRole('heading').click()
  await page.keyboard.press('u')
  await expect(dialog.getByRole('row').filter({ hasText: 'back-a' })).toContainText('administrator of the group')
  await page.keyboard.press('Escape')
  await expect(dialog).toHaveCount(0)

  await page.getByRole('button', { name: 'Quotas of revert' }).click()
  await dialog.getByLabel('GPUs of these').fill('3')
  await dialog.getByLabel('Jobs that have not ended').fill('5')
  await dialog.getByRole('button', { name: 'Change', exact: true }).click()
  await expect(page.getByText('The quotas of revert are changed.')).toBeVisible()
  await page.keyboard.press('u')
  type Quotas = Record<string, { value: number | null }>
  await expect.poll(async () => (await read<Quotas>(page, '/api/v2/groups/revert/quota'))['gpus']?.value).toBe(7)
  expect((await read<Quotas>(page, '/api/v2/groups/revert/quota'))['liveJobs']?.value).toBeNull()

  await page.getByRole('button', { name: 'Remove revert' }).click()
  await dialog.getByRole('button', { name: 'Remove' }).click()
  await expect(page.getByText('The group revert is removed.')).toBeVisible()
  await expect(page.getByRole('button', { name: 'Remove revert' })).toHaveCount(0)
  await page.keyboard.press('u')
  await expect(page.getByRole('row').filter({ hasText: 'revert' })).toContainText('back-a')
  expect(await group()).toMatchObject({ description: 'before', externalName: 'meanwhile', extension: { acls: { virtualClusters: ['default'] } } })
  expect((await read<Quotas>(page, '/api/v2/groups/revert/quota'))['gpus']?.value).toBe(7)
  expect(await read<unknown[]>(page, '/api/v2/groups/revert/userlist')).toMatchObject([{ username: 'back-a', groupAdmin: true }])
})
