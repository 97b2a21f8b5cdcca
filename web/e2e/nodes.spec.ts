// What administrators do to nodes, and who cannot; and jobs that are abnormal.
import { axePath, barriers, expect, jobFile, roomMake, signIn, submit, tabTo, test } from './portal'
import { ANN, ask, fetched, stageSet } from './stage'

const stateOf = (page: Parameters<typeof ask>[0], job: string) =>
  page.evaluate(async (name) => {
    const { token } = JSON.parse(sessionStorage.getItem('skep.session') ?? '{}') as { token?: string }
    const reply = await fetch(`/api/v2/jobs/${name}`, { headers: { Authorization: `Bearer ${token}` } })
    return ((await reply.json()) as { jobStatus: { state: string; retryDetails: { user: number } } }).jobStatus
  }, job)

/** Whatever became of a test, the next one has nodes. */
test.afterEach(async ({ page }) => {
  const cordoned = await page.evaluate(async () => {
    const { token } = JSON.parse(sessionStorage.getItem('skep.session') ?? '{}') as { token?: string }
    const reply = await fetch('/api/v2/nodes', { headers: { Authorization: `Bearer ${token}` } })
    const { data = [] } = (await reply.json()) as { data?: { name: string; isCordoned: boolean }[] }
    return data.filter(({ isCordoned }) => isCordoned).map(({ name }) => name)
  })
  for (const name of cordoned) await ask(page, 'PUT', `/api/v2/nodes/${name}/uncordon`)
})

test('a node is cordoned by keyboard, jobs are told why, and the key "u" undoes it', async ({ page }) => {
  await signIn(page)
  await roomMake(page)
  await page.goto('/cluster?tab=nodes')
  const cordon = page.getByRole('button', { name: /^Cordon or drain / }).first()
  await expect(cordon).toBeVisible()
  await tabTo(page, cordon)
  await page.keyboard.press('Enter')
  const dialog = page.getByRole('dialog')
  await expect(dialog).toContainText('Nothing runs there.')
  await tabTo(page, dialog.getByLabel('Reason, for people'))
  await page.keyboard.type('a disk is replaced')
  await tabTo(page, dialog.getByRole('button', { name: 'Cordon', exact: true }))
  await page.keyboard.press('Enter')
  await expect(dialog).toHaveCount(0)
  await page.getByRole('button', { name: 'Undo' }).hover() // under the pointer it stays
  await expect(page.getByRole('status').filter({ hasText: 'is cordoned.' })).toBeVisible() // read aloud
  const row = page.getByRole('row').filter({ has: cordon })
  await expect(row).toContainText('Cordoned by admin')
  await expect(row).toContainText('a disk is replaced')
  const name = `waits-${Date.now()}`
  await submit(page, jobFile(name, ['true']))
  await expect.poll(async () => (await stateOf(page, `admin~${name}`)).state).toBe('WAITING')
  await page.keyboard.press('u')
  await expect(page.getByText('Undone.')).toBeVisible()
  await expect(row).not.toContainText('Cordoned by admin')
  await expect.poll(async () => (await stateOf(page, `admin~${name}`)).state).toBe('SUCCEEDED')
})

test('who drains a node that is cordoned finds the reason that was given', async ({ page }) => {
  await signIn(page, undefined, '/cluster?tab=nodes')
  const cordon = page.getByRole('button', { name: /^Cordon or drain / }).first()
  const row = page.getByRole('row').filter({ has: cordon })
  const node = (await row.getByRole('rowheader').getByRole('link').innerText()).trim()
  expect(await ask(page, 'PUT', `/api/v2/nodes/${node}/cordon`, { reason: 'a disk is replaced' })).toBe(202)
  await expect(row).toContainText('Cordoned by admin')
  await cordon.click()
  await expect(page.getByRole('dialog').getByLabel('Reason, for people')).toHaveValue('a disk is replaced')
})

test('a drain names what it ends, and what it ended starts again after the node is uncordoned', async ({ page }) => {
  await signIn(page)
  await roomMake(page)
  const name = `moved-${Date.now()}`
  await submit(page, jobFile(name, ['sleep 1000']))
  await expect.poll(async () => (await stateOf(page, `admin~${name}`)).state).toBe('RUNNING')
  await page.goto('/admin?tab=nodes')
  await page.getByRole('button', { name: /^Cordon or drain / }).first().click()
  const dialog = page.getByRole('dialog')
  await dialog.getByLabel('Drain: end what runs there').check()
  await expect(dialog.getByRole('list', { name: /^Tasks on / })).toContainText(`admin~${name} main[0]`)
  await dialog.getByRole('button', { name: 'Drain', exact: true }).click()
  await expect(dialog).toHaveCount(0)
  await expect.poll(async () => (await stateOf(page, `admin~${name}`)).state).toBe('WAITING')
  await page.getByRole('button', { name: /^Uncordon / }).click()
  await expect(page.getByText('is used again.')).toBeVisible()
  await expect(page.getByRole('button', { name: /^Uncordon / })).toHaveCount(0)
  await expect.poll(async () => (await stateOf(page, `admin~${name}`)).state).toBe('RUNNING')
  expect((await stateOf(page, `admin~${name}`)).retryDetails.user).toBe(0)
  await roomMake(page)
})

test('who is no administrator sees nodes, and has no way to close one', async ({ page, browser }) => {
  await signIn(page)
  await stageSet(page)
  const context = await browser.newContext()
  const other = await context.newPage()
  await signIn(other, ANN, '/cluster?tab=nodes')
  await expect(other.getByRole('table')).toBeVisible()
  await expect(other.getByRole('button', { name: /ordon/ })).toHaveCount(0)
  const node = (await other.getByRole('rowheader').first().getByRole('link').innerText()).trim()
  for (const what of ['cordon', 'drain', 'uncordon', 'pardon']) expect(await ask(other, 'PUT', `/api/v2/nodes/${node}/${what}`, {})).toBe(403)
  await other.goto('/')
  await expect(other.getByRole('region', { name: 'Abnormal jobs' })).toHaveCount(0)
  await context.close()
})

test('nodes are found by name and ordered by a column, and the address has both', async ({ page }) => {
  await page.addInitScript({ path: axePath })
  await signIn(page)
  // this machine is one node alone: what it has is what the others have
  await page.route('**/api/v2/nodes', async (route) => {
    const reply = await fetched(route)
    const body = (await reply.json()) as { data: { name: string }[] }
    const [own] = body.data
    for (const [i, memoryMB] of [300, 100, 200].entries()) body.data.push({ ...own, name: `played-${9 + i}`, memoryMB } as never)
    await route.fulfill({ json: body })
  })
  await page.goto('/cluster?tab=nodes')
  const search = page.getByLabel('Name or address')
  const names = page.getByRole('rowheader').getByRole('link')
  await expect(search).toBeVisible()
  await tabTo(page, search)
  await page.keyboard.type('PLAYED')
  await expect(page).toHaveURL(/q=PLAYED/)
  await expect(page.getByText('3 nodes', { exact: true })).toBeVisible()
  await expect(names).toHaveText(['played-9', 'played-10', 'played-11']) // numbers as numbers
  await tabTo(page, page.getByRole('button', { name: 'Memory' }))
  await page.keyboard.press('Enter')
  await expect(page.getByRole('columnheader', { name: 'Memory' })).toHaveAttribute('aria-sort', 'ascending')
  await expect(names).toHaveText(['played-10', 'played-11', 'played-9'])
  await page.keyboard.press('Enter') // the button keeps the focus
  await expect(page).toHaveURL(/order=-memory/)
  await expect(names).toHaveText(['played-9', 'played-11', 'played-10'])
  for (const title of ['Node', 'State', 'GPUs', 'Used now', 'CPUs', 'Jobs', 'Remarks']) {
    await page.getByRole('columnheader', { name: title, exact: false }).first().getByRole('button').click()
    await expect(page.getByRole('columnheader', { name: title }).first()).toHaveAttribute('aria-sort', 'ascending')
  }
  await page.goto('/cluster?tab=nodes&q=played&order=-memory')
  await expect(names).toHaveText(['played-9', 'played-11', 'played-10'])
  await names.first().click() // its use stands above the same list
  await expect(page.getByRole('heading', { name: 'Use of played-9' })).toBeVisible()
  await expect(names).toHaveText(['played-9', 'played-11', 'played-10'])
  await page.getByRole('link', { name: 'Close' }).click()
  await expect(page).toHaveURL(/tab=nodes&q=played&order=-memory$/)
  expect(await barriers(page)).toEqual([])
  await search.fill('nowhere')
  await expect(page.getByText('No node has this in its name or address')).toBeVisible()
  await page.getByRole('button', { name: 'Clear filters' }).click()
  await expect(names).toHaveCount(4)
})

test('abnormal jobs are none, or each says why', async ({ page }) => {
  await signIn(page)
  const job = { username: 'admin', name: 'old', state: 'RUNNING', executionType: 'START', virtualCluster: 'default', totalGpuNumber: 0, retries: 12, submissionTime: Date.now() - 8 * 86_400_000, launchedTime: Date.now() - 6 * 86_400_000 }
  await page.goto('/admin?tab=abnormal')
  await expect(page.getByText('Nothing is abnormal')).toBeVisible()
  // nobody waits six days for this test: what the list says is the server's, but for these two times
  await page.route('**/api/v2/jobs?state=RUNNING&order=submissionTime*', async (route) => route.fulfill({ json: { totalCount: 1, data: [job] } }))
  await page.reload()
  const row = page.getByRole('row').filter({ hasText: 'admin~old' })
  await expect(row).toContainText('runs for 6 d 0 h')
  await expect(row).toContainText('12 retries')
  await expect(row.getByRole('button', { name: 'Stop admin~old' })).toBeEnabled()
  await page.goto('/')
  await expect(page.getByRole('region', { name: 'Abnormal jobs' })).toContainText('runs for 6 d 0 h')
})
