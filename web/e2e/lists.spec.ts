// Lists: to a row or a page by its number, what is in a row, filters that stay. And the page of services.
import { readFileSync } from 'node:fs'
import type { Page } from '@playwright/test'
import { axePath, barriers, expect, jobFile, keysTo, picture, roomMake, signIn, submit, tabTo, test } from './portal'

/** Nobody submits 5,000 jobs for a test: what is listed is not the server's. */
async function manyListed(page: Page) {
  await page.route('**/api/v2/jobs?*limit=*', async (route) => {
    const query = new URL(route.request().url()).searchParams
    const offset = Number(query.get('offset') ?? 0)
    const count = Math.max(0, Math.min(Number(query.get('limit')), 5000 - offset))
    const data = Array.from({ length: count }, (_, index) => ({ username: 'admin', name: `job-${offset + index + 1}`, state: 'SUCCEEDED', executionType: 'START', virtualCluster: 'default', totalGpuNumber: 0, retries: 0, submissionTime: Date.now() }))
    await route.fulfill({ json: { totalCount: 5000, data } })
  })
}

test('a row of a long list is one number away', async ({ page }) => {
  await signIn(page)
  await manyListed(page)
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

test('columns are made wider and narrower by pointer, by keyboard and without dragging, and stay so', async ({ page }) => {
  await page.addInitScript({ path: axePath })
  await signIn(page)
  await manyListed(page)
  await page.goto('/jobs')
  const head = (name: string) => page.getByRole('columnheader', { name })
  const widthOf = async (name: string) => Math.round((await head(name).boundingBox())!.width)
  const cell = (column: number) => page.getByRole('row').nth(1).getByRole('gridcell').nth(column)
  await expect(cell(1)).toContainText('job-1')
  const state = await widthOf('State')

  // by pointer: the edge stays below it, and so do the rows
  const box = (await head('Name').boundingBox())!
  const edge = box.x + box.width - 3
  await page.mouse.move(edge, box.y + box.height / 2)
  await page.mouse.down()
  await page.mouse.move(edge - 60, box.y + box.height / 2)
  expect(await widthOf('Name')).toBe(Math.round(box.width) - 60)
  expect(Math.round((await cell(1).boundingBox())!.width)).toBe(Math.round(box.width) - 60)
  await page.mouse.up()
  expect(await widthOf('Name')).toBe(Math.round(box.width) - 60)

  // by keyboard, on its title
  const title = head('State').getByRole('button')
  await tabTo(page, title)
  await page.keyboard.press('Shift+ArrowRight')
  await page.keyboard.press('Shift+ArrowRight')
  await page.keyboard.press('Shift+ArrowLeft')
  expect(await widthOf('State')).toBe(state + 16)
  await expect(page).toHaveURL(/\/jobs$/) // the order has not changed

  // with a pointer that drags nothing
  await page.getByRole('button', { name: 'Columns' }).click()
  await page.getByRole('button', { name: 'Duration: wider' }).click()
  await expect(page.getByRole('status').filter({ hasText: 'Duration: 126 pixels wide' })).toHaveCount(1)
  expect(await barriers(page)).toEqual([])
  await page.setViewportSize({ width: 1280, height: 800 })

  // so they are at the next visit, from the first frame on
  await page.reload()
  await expect(cell(1)).toContainText('job-1')
  expect([await widthOf('Name'), await widthOf('State'), await widthOf('Duration')]).toEqual([Math.round(box.width) - 60, state + 16, 126])

  // wider than the window: the list scrolls, and the page does not
  await page.getByRole('button', { name: 'Columns' }).click()
  for (let i = 0; i < 40; i++) await page.getByRole('button', { name: 'Name: wider' }).click()
  const [list, all] = await page.getByRole('grid').evaluate((grid) => [grid.scrollWidth - grid.clientWidth, document.documentElement.scrollWidth - document.documentElement.clientWidth])
  expect(list).toBeGreaterThan(0)
  expect(all).toBe(0)
  expect(await page.getByRole('row').nth(1).evaluate((row) => row.getBoundingClientRect().width)).toBe(await page.getByRole('grid').evaluate((grid) => grid.scrollWidth))

  await page.getByRole('button', { name: 'Set all widths back' }).click()
  expect([await widthOf('Name'), await widthOf('State')]).toEqual([Math.round(box.width), state])
  await page.keyboard.press('Escape')
  await page.mouse.dblclick(box.x + box.width - 3, box.y + box.height / 2)
  expect(await widthOf('Name')).toBe(Math.round(box.width))

  // a choice from before there were widths, and a column Actions
  await page.evaluate(() => localStorage.setItem('skep.settings', '{"columns":["state","user"]}'))
  await page.reload()
  await expect(page.getByRole('columnheader')).toHaveText([/Selected/, /Name/, /State/, /User/, /Actions/])
  // which filter chose the rows
  await page.getByRole('button', { name: 'My running jobs' }).click()
  await expect(page).toHaveURL(/\/jobs\?user=@me&state=RUNNING$/)
  await expect(head('State').getByText('filtered')).toHaveCount(1)
  await expect(head('User').getByText('filtered')).toHaveCount(1)
  await page.getByRole('button', { name: 'My running jobs' }).click()
  await expect(page).toHaveURL(/\/jobs$/)
  // a narrow window has its own columns
  await page.setViewportSize({ width: 320, height: 640 })
  await expect(page.getByRole('columnheader')).toHaveCount(3)
  expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(320)
})

test('a live job is stopped from its row, and the filters are there at the next visit', async ({ page }) => {
  await signIn(page)
  await roomMake(page)
  const name = `row-${Date.now()}`
  await submit(page, jobFile(name, ['sleep 100000']))
  await page.goto('/jobs')
  await page.getByRole('button', { name: 'Mine' }).click()
  const states = page.getByRole('group', { name: 'State' })
  await states.getByRole('button', { name: 'Running' }).click()
  await page.getByRole('searchbox', { name: 'Part of a name' }).fill(name)
  await expect(page).toHaveURL(new RegExp(`/jobs\\?(?=.*user=@me)(?=.*state=RUNNING)(?=.*keyword=${name})`))
  const row = page.getByRole('row').filter({ hasText: name })
  await expect(row).toContainText('Running')
  await row.getByRole('button', { name: `Stop admin~${name}` }).click()
  const dialog = page.getByRole('dialog')
  await expect(dialog).toContainText(`admin~${name}`)
  await dialog.getByRole('button', { name: 'Stop', exact: true }).click()
  await expect(row).toHaveCount(0) // it runs no more
  await expect(page.getByRole('button', { name: 'Save as CSV' })).toBeDisabled() // nothing is left that the filters find
  await states.getByRole('button', { name: 'Running' }).click()
  await expect(row).toContainText('Stopped')
  await expect(row.getByRole('button', { name: /^Stop / })).toHaveCount(0)
  const saving = page.waitForEvent('download')
  await page.getByRole('button', { name: 'Save as CSV' }).click()
  const lines = readFileSync(await (await saving).path(), 'utf8').trimEnd().split('\r\n')
  expect(lines).toHaveLength(2) // what the filters find, and nothing else
  expect(lines[1]).toMatch(new RegExp(`^admin,${name},STOPPED,default,`))
  await states.getByRole('button', { name: 'Stopped' }).click()
  // what was looked for was for once; the address itself has no memory
  await page.goto('/')
  await page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name: 'Jobs' }).click()
  await expect(page).toHaveURL(/\/jobs\?user=@me&state=STOPPED$/)
  await expect(states.getByRole('button', { name: 'Stopped' })).toHaveAttribute('aria-pressed', 'true')
  await keysTo(page, 'h', '/')
  await expect(page.getByRole('heading', { name: 'My work' })).toBeVisible()
  await keysTo(page, 'j', '/jobs')
  await expect(page).toHaveURL(/\/jobs\?user=@me&state=STOPPED$/)
  await page.goto('/jobs')
  await expect(states.getByRole('button', { name: 'Stopped' })).toHaveAttribute('aria-pressed', 'false')
  await page.goto('/jobs?state=FAILED')
  await page.getByRole('search').getByRole('button', { name: 'Clear filters' }).click()
  await expect(page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name: 'Jobs' })).toHaveAttribute('href', '/jobs')
})

test('the tasks of each role are counted by state, and shown alone', async ({ page }) => {
  await signIn(page)
  await roomMake(page)
  const name = `roles-${Date.now()}`
  const ps = jobFile(name, ['sleep 100000']).replace('  main:\n', '  ps:\n')
  const main = jobFile(name, ['exit 3']).replace('instances: 1', 'instances: 1\n    completion: {minFailedInstances: -1}')
  await submit(page, ps.trimEnd() + '\n' + main.slice(main.indexOf('  main:\n')))
  await page.goto(`/jobs/admin~${name}`)
  const roles = page.getByRole('list', { name: 'Roles' }).getByRole('listitem')
  await expect(roles.filter({ hasText: 'ps' })).toContainText('Running 1')
  const one = roles.filter({ hasText: 'main' })
  await expect(one).toContainText('Failed 1')
  const tasks = page.getByRole('table', { name: 'Tasks' })
  await expect(tasks).toHaveAttribute('aria-rowcount', '3')
  const press = one.getByRole('button', { name: 'main' })
  await tabTo(page, press)
  await page.keyboard.press('Space')
  await expect(tasks).toHaveAttribute('aria-rowcount', '2')
  await expect(tasks).not.toContainText('ps[0]')
  await page.getByRole('group', { name: 'State' }).getByRole('button', { name: 'Failed' }).click()
  await page.getByRole('searchbox', { name: 'Task, node, address or exit' }).fill('0')
  await expect(tasks).toHaveAttribute('aria-rowcount', '2')
  await expect(tasks).toContainText('main[0]')
  await roomMake(page)
})

test('administrators see how each part of the server is, and each node', async ({ page }) => {
  await signIn(page)
  await page.goto('/cluster-view/services.html') // where OpenPAI had them
  await expect(page).toHaveURL(/\/admin\?tab=services$/)
  const server = page.getByRole('region', { name: 'The server', exact: true })
  await expect(server.getByRole('row').filter({ hasText: 'Database' })).toContainText('Healthy')
  await expect(server.getByRole('row').filter({ hasText: 'Engines that run tasks' })).toContainText('1 node,')
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
