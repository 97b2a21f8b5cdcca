// The table of a job's tasks: which of them, by how they ended and where, and in which order.
import type { Page } from '@playwright/test'
import { axePath, barriers, expect, jobFile, roomMake, signIn, submit, tabTo, test } from './portal'

// 0 and 2 end well, 1 and 3 with a code each
const JOB = jobFile('ends', ['exit $(( PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX % 2 * PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX ))'], 'extras: {gangAllocation: false}').replace(
  'instances: 1',
  'instances: 4\n    completion: {minFailedInstances: -1, minSucceededInstances: -1}',
)

const card = (page: Page) => page.getByRole('region', { name: 'Tasks', exact: true })
const table = (page: Page) => card(page).getByRole('table', { name: 'Tasks' })
const tasksOf = (page: Page) => table(page).getByRole('link')
const menu = (page: Page, name: string) => card(page).getByRole('button', { name: new RegExp(`^${name}`) }).first()
const head = (page: Page, name: string) => table(page).getByRole('columnheader', { name })

test('tasks are found by exit type, exit code and node, and stand by state or exit type', async ({ page }) => {
  test.setTimeout(300_000)
  await page.addInitScript({ path: axePath })
  await signIn(page)
  await roomMake(page)
  await submit(page, JOB)
  await page.goto('/jobs/admin~ends')
  await expect(card(page).getByRole('group', { name: 'State' }).getByRole('button', { name: 'Failed' })).toContainText('2', { timeout: 120_000 })
  await expect(card(page).getByRole('group', { name: 'State' }).getByRole('button', { name: 'Succeeded' })).toContainText('2', { timeout: 120_000 })
  await expect(tasksOf(page)).toHaveText(['main[0]', 'main[1]', 'main[2]', 'main[3]'])
  await expect(table(page).getByRole('row').nth(1)).toContainText('USER_SUCCESS')

  // by keyboard: only what the tasks have is offered, several may be chosen
  const filters = card(page).getByRole('group', { name: 'Filters' })
  await tabTo(page, menu(page, 'Exit code'))
  await page.keyboard.press('Enter')
  const codes = filters.getByRole('group', { name: 'Exit code' })
  await expect(codes.getByRole('checkbox')).toHaveCount(3)
  await tabTo(page, codes.getByRole('checkbox', { name: '3', exact: true }))
  await page.keyboard.press('Space')
  await expect(tasksOf(page)).toHaveText(['main[3]'])
  await expect(card(page).getByRole('status')).toHaveText('1 of 4 tasks')
  await expect(page).toHaveURL(/exitCode=3/)
  await codes.getByRole('checkbox', { name: '0', exact: true }).check()
  await expect(tasksOf(page)).toHaveText(['main[0]', 'main[2]', 'main[3]'])
  expect(await barriers(page)).toEqual([])
  await page.setViewportSize({ width: 1280, height: 800 })
  await page.keyboard.press('Escape')
  await expect(codes).toHaveCount(0)
  await expect(menu(page, 'Exit code')).toHaveText('Exit code (2)')
  await expect(head(page, 'Exit').last()).toContainText('filtered')

  // by type, too, and at an address that one can send
  await menu(page, 'Exit type').click()
  await filters.getByRole('group', { name: 'Exit type' }).getByRole('checkbox', { name: 'USER_SUCCESS' }).check()
  await expect(tasksOf(page)).toHaveText(['main[0]', 'main[2]'])
  await page.reload()
  await expect(tasksOf(page)).toHaveText(['main[0]', 'main[2]'])
  await expect(head(page, 'Exit type')).toContainText('filtered')
  await filters.getByRole('button', { name: 'Clear filters' }).click()
  await expect(tasksOf(page)).toHaveCount(4)
  await expect(page).toHaveURL(/\/jobs\/admin~ends$/)

  await menu(page, 'Node').click()
  await filters.getByRole('group', { name: 'Node' }).getByRole('checkbox').check()
  await expect(page).toHaveURL(/node=/)
  await expect(head(page, 'Node')).toContainText('filtered')
  await expect(tasksOf(page)).toHaveCount(4)
  await page.keyboard.press('Escape')
  await filters.getByRole('button', { name: 'Clear filters' }).click()

  // the failed ones first; those that ended well first; then as they are numbered
  const state = head(page, 'State').getByRole('button')
  await tabTo(page, state)
  await page.keyboard.press('Enter')
  await expect(tasksOf(page)).toHaveText(['main[1]', 'main[3]', 'main[0]', 'main[2]'])
  await expect(head(page, 'State')).toHaveAttribute('aria-sort', 'descending')
  await page.keyboard.press('Enter')
  await expect(tasksOf(page)).toHaveText(['main[0]', 'main[2]', 'main[1]', 'main[3]'])
  await head(page, 'Exit type').getByRole('button').click()
  await expect(page).toHaveURL(/order=exitType/)
  await expect(tasksOf(page)).toHaveText(['main[0]', 'main[2]', 'main[1]', 'main[3]'])
  await expect(head(page, 'State')).not.toHaveAttribute('aria-sort')
  expect(await barriers(page)).toEqual([])
})
