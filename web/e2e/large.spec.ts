// A job of 20,000 tasks: the page holds a letter of each, and the rows that one looks at. Only where the test has room for it
// (tests/system/portal/test_portal_large.py).
import type { Page } from '@playwright/test'
import { axePath, barriers, expect, picture, signIn, submit, tabTo, test } from './portal'

const LARGE = process.env['PORTAL_LARGE_JOB'] ?? ''
const RUNNING = 15_000
const WAITING = 5000

test.describe('a job of 20,000 tasks', () => {
  test.skip(!LARGE, 'there is no room for it')
  test.describe.configure({ mode: 'serial', timeout: 900_000 })

  const card = (page: Page) => page.getByRole('region', { name: 'Tasks', exact: true })
  const rowsOf = (page: Page) => card(page).getByRole('table', { name: 'Tasks' })
  const stateOf = (page: Page, state: string) => card(page).getByRole('group', { name: 'State' }).getByRole('button', { name: state })

  test('is read a stretch at a time, and fills as its tasks start', async ({ page }) => {
    await page.addInitScript({ path: axePath })
    await signIn(page)
    await submit(page, LARGE)
    const sizes: number[] = []
    page.on('response', (reply) => {
      if (/\/api\/v2\/jobs\/admin~large(\/tasks)?\?/.test(reply.url())) void reply.body().then((body) => sizes.push(body.length), () => undefined)
    })
    await page.goto('/jobs/admin~large')
    // no reload: the stream of changes tells
    await expect(stateOf(page, 'Running')).toContainText(String(RUNNING), { timeout: 600_000 })
    await expect(stateOf(page, 'Waiting')).toContainText(String(WAITING))
    await expect(rowsOf(page)).toHaveAttribute('aria-rowcount', '20001')
    await expect(rowsOf(page).getByRole('row').filter({ hasText: 'first[0]' })).toContainText('fake')
    await rowsOf(page).evaluate((grid) => (grid.scrollTop = grid.scrollHeight))
    await expect(rowsOf(page).getByRole('row').filter({ hasText: 'second[9999]' })).toContainText('Waiting')
    await card(page).getByLabel('Go to row').fill('15001')
    await card(page).getByLabel('Go to row').press('Enter')
    await expect(rowsOf(page).getByRole('link', { name: 'second[5000]' })).toBeFocused()
    expect(await rowsOf(page).getByRole('row').count()).toBeLessThan(60) // the others are not in the document
    expect(Math.max(...sizes)).toBeLessThan(200_000) // all of them would be some 20 MB
    await picture(page, 'large')
    expect(await barriers(page)).toEqual([])
  })

  test('is filtered by state, and a task is found by its number', async ({ page }) => {
    await signIn(page)
    await page.goto('/jobs/admin~large')
    await stateOf(page, 'Waiting').click()
    await expect(rowsOf(page)).toHaveAttribute('aria-rowcount', String(WAITING + 1))
    await expect(rowsOf(page).getByRole('row').nth(1)).toContainText('Waiting')
    await stateOf(page, 'Waiting').click()
    const search = card(page).getByRole('searchbox')
    await search.fill('second[1234]')
    await expect(rowsOf(page)).toHaveAttribute('aria-rowcount', '2')
    await search.fill('1234')
    await expect(rowsOf(page)).toHaveAttribute('aria-rowcount', '3')
    await search.fill('fake99')
    await expect(rowsOf(page).getByRole('row').nth(1)).toContainText('fake99')
    // those that are named so, and those that are on a node of this name: each row is read
    await search.fill('42')
    await expect(rowsOf(page).getByRole('row').nth(1)).toContainText('first[42]')
    await expect(rowsOf(page).getByRole('row').nth(2)).toContainText('second[42]')
    await expect.poll(async () => (await rowsOf(page).getByRole('row').allInnerTexts()).filter((row) => row.includes('…'))).toEqual([])
    await search.fill('no such task')
    await expect(rowsOf(page)).toHaveAttribute('aria-rowcount', '1')
    await search.fill('second[1234]')
    await rowsOf(page).getByRole('link', { name: 'second[1234]' }).click()
    await expect(page).toHaveURL(/tab=logs&role=second&index=1234/)
    await expect(page.getByRole('region', { name: 'Log of second[1234]' })).toBeVisible()
    await expect(page.getByLabel('Task, 0 to 9,999')).toHaveValue('1234')
  })

  test('is ordered and filtered by the server, a page at a time', async ({ page }) => {
    await signIn(page)
    await page.goto('/jobs/admin~large')
    await expect(rowsOf(page)).toHaveAttribute('aria-rowcount', '20001')
    await rowsOf(page).getByRole('columnheader', { name: 'State' }).getByRole('button').click()
    await expect(rowsOf(page).getByRole('row').nth(1)).toContainText('Running')
    await rowsOf(page).evaluate((grid) => (grid.scrollTop = grid.scrollHeight))
    await expect(rowsOf(page).getByRole('row').filter({ hasText: 'second[9999]' })).toContainText('Waiting')
    await card(page).getByRole('button', { name: 'Node', exact: true }).click()
    const nodes = card(page).getByRole('group', { name: 'Node' })
    await nodes.getByRole('searchbox').fill('fake99')
    await nodes.getByRole('checkbox').check()
    await expect(rowsOf(page)).toHaveAttribute('aria-rowcount', String(RUNNING / 100 + 1))
    await expect(card(page).getByRole('status')).toHaveText('150 of 20,000 tasks')
    expect(await rowsOf(page).getByRole('row').count()).toBeLessThan(60)
  })

  test('has a time line of its tasks, of which those in sight are read', async ({ page }) => {
    await page.addInitScript({ path: axePath })
    await signIn(page)
    await page.goto('/jobs/admin~large')
    const line = page.getByRole('region', { name: 'Time line', exact: true })
    const summary = line.getByText('Tasks of attempt 0')
    await tabTo(page, summary)
    await page.keyboard.press('Enter')
    await expect(line).toContainText('20,000 tasks: 15,000 Running, 5,000 Waiting')
    const tasks = line.getByRole('region', { name: 'Time line of the tasks' })
    const task = (name: string) => tasks.getByRole('listitem').filter({ hasText: name })
    await expect(task('first[0]')).toContainText('Running, ran')
    await expect(task('first[0]').locator('.timeline-bar')).toHaveAttribute('data-state', 'RUNNING')
    await expect(task('first[0]')).toHaveAttribute('aria-setsize', '20000')
    await page.keyboard.press('Tab')
    await expect(tasks).toBeFocused()
    await picture(page, 'time-line')
    expect(await barriers(page)).toEqual([])
    await page.setViewportSize({ width: 1280, height: 800 })
    await tasks.focus()
    await page.keyboard.press('End')
    await expect(task('second[9999]')).toContainText('Waiting')
    await expect(task('second[9999]').locator('.timeline-bar')).toHaveCount(0)
    expect(await tasks.getByRole('listitem').count()).toBeLessThan(60)
    await tasks.getByRole('link', { name: 'second[9990]' }).click()
    await expect(page).toHaveURL(/task=second\.9990/)
  })

  test('shows any of its tasks in an attempt, and what one used', async ({ page }) => {
    await signIn(page)
    await page.goto('/jobs/admin~large?tab=attempts')
    await page.getByText('Tasks of attempt 0').click()
    const table = page.getByRole('region', { name: 'Tasks of attempt 0' })
    await expect(table.getByRole('row')).toHaveCount(101)
    await expect(page.getByText('The first 100 are shown')).toBeVisible()
    await page.getByLabel('Role', { exact: true }).selectOption('second')
    await expect(table.getByRole('row').nth(1)).toContainText('second[0]')
    await page.getByLabel('From task, 0 to 9,999').fill('9990')
    await expect(table.getByRole('row').nth(1)).toContainText('second[9990]')
    await expect(table.getByRole('row')).toHaveCount(11)
    await page.goto('/jobs/admin~large?tab=use')
    await page.getByLabel('Task role').selectOption('first')
    const asked = page.waitForRequest(/\/use\?.*index=1234/)
    await page.getByLabel('Task, 0 to 9,999').fill('1234')
    await asked
    await page.getByLabel('Task, 0 to 9,999').fill('')
    await expect(page).not.toHaveURL(/index=/)
  })

  test('is counted anew when it is stopped', async ({ page }) => {
    await signIn(page)
    await page.goto('/jobs/admin~large')
    await page.getByRole('button', { name: 'Stop', exact: true }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Stop' }).click()
    await expect(stateOf(page, 'Stopped')).toContainText('20000', { timeout: 600_000 })
    await expect(rowsOf(page).getByRole('row').nth(1)).toContainText('Stopped')
  })
})
