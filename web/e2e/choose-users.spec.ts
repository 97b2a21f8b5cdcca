// Whose jobs are listed: chosen from a list by who may see the names, and named in a field by others.
import { axePath, barriers, expect, signIn, tabTo, test } from './portal'
import { ANN, ask, GRETA } from './stage'

test('users are chosen from a list by those who may see their names', async ({ page, browser }) => {
  await page.addInitScript({ path: axePath })
  await signIn(page)
  for (const who of [ANN, GRETA]) expect([201, 409]).toContain(await ask(page, 'POST', '/api/v2/users', { username: who.name, password: who.password, email: `${who.name}@example.org` }))
  expect([201, 409]).toContain(await ask(page, 'POST', '/api/v2/groups', { groupname: 'lab', description: 'The vision laboratory', extension: { acls: { virtualClusters: ['default'] } } }))
  for (const username of [ANN.name, GRETA.name]) expect(await ask(page, 'PUT', `/api/v2/users/${username}/group`, { groupname: 'lab', admin: username === GRETA.name })).toBe(201)
  for (let i = 0; i < 9; i++) expect([201, 409]).toContain(await ask(page, 'POST', '/api/v2/users', { username: `many-${i}`, password: 'many-password', email: `many-${i}@example.org` }))

  // an administrator: all of them, oneself first, by keyboard
  await page.goto('/jobs')
  const search = page.getByRole('search')
  const users = search.getByRole('group', { name: 'Users' })
  await tabTo(page, search.getByRole('button', { name: 'Users' }))
  await page.keyboard.press('Enter')
  await expect(users.getByRole('checkbox').first()).toHaveAccessibleName('@Me')
  for (const name of ['admin', 'ann', 'greta', 'many-8']) await expect(users.getByRole('checkbox', { name, exact: true })).toBeVisible()
  await tabTo(page, users.getByRole('searchbox'))
  await page.keyboard.type('gre')
  await expect(users.getByRole('checkbox')).toHaveCount(1)
  await page.keyboard.press('Tab')
  await page.keyboard.press('Space')
  await expect(page).toHaveURL(/user=greta/)
  await users.getByRole('searchbox').fill('@m')
  await users.getByRole('checkbox', { name: '@Me' }).check()
  await expect(page).toHaveURL(/user=greta(,|%2C)(@|%40)me/)
  expect(await barriers(page)).toEqual([])
  await page.setViewportSize({ width: 1280, height: 800 })
  await page.keyboard.press('Escape')
  await expect(search.getByRole('button', { name: 'Users (2)' })).toBeVisible()
  await search.getByRole('button', { name: 'Clear filters' }).click()
  await expect(page).toHaveURL(/\/jobs$/)

  // the administrator of a group: its members; others: a field
  for (const [who, names] of [[GRETA, ['@Me', 'ann', 'greta']], [ANN, null]] as const) {
    const context = await browser.newContext()
    const other = await context.newPage()
    await signIn(other, who)
    await other.goto('/jobs')
    const filters = other.getByRole('search')
    if (names) {
      await filters.getByRole('button', { name: /^Users/ }).click()
      const boxes = filters.getByRole('group', { name: 'Users' }).getByRole('checkbox')
      for (const name of names) await expect(boxes.and(other.getByRole('checkbox', { name, exact: true }))).toHaveCount(1)
      await expect(boxes.first()).toHaveAccessibleName(names[0]!)
      await expect(boxes.and(other.getByRole('checkbox', { name: 'many-8' }))).toHaveCount(0) // of another group
    } else {
      await filters.getByRole('button', { name: 'More filters' }).click()
      await expect(filters.getByRole('searchbox', { name: 'Users, by comma' })).toBeVisible()
      await expect(filters.getByRole('button', { name: /^Users/ })).toHaveCount(0)
    }
    await context.close()
  }
  for (let i = 0; i < 9; i++) expect(await ask(page, 'DELETE', `/api/v2/users/many-${i}`)).toBe(200)
})
