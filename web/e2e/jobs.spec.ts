import type { Locator } from '@playwright/test'
import { ADMIN, axePath, expect, IMAGE, jobFile, keysTo, signIn, submit, tabTo, test, type, violations } from './portal'

const COUNT = 'i=0; while true; do i=$((i+1)); echo line $i; sleep 0.2; done'

/** Of the last line of COUNT that the page holds. */
const newest = (log: Locator) =>
  log.evaluate((box) => Number([...box.querySelectorAll('.log-line')].at(-1)?.textContent?.replace('line ', '')))

test('a wrong password says so, a right one leads where one wanted to go', async ({ page }) => {
  await page.goto('/cluster?tab=nodes')
  await page.getByLabel('User name').fill('admin')
  await page.getByLabel('Password').fill('not this one')
  await page.getByRole('button', { name: 'Sign in' }).click()
  await expect(page.getByRole('alert')).toBeVisible()
  await page.getByLabel('Password').fill(ADMIN.password)
  await page.getByRole('button', { name: 'Sign in' }).click()
  await expect(page).toHaveURL(/\/cluster\?tab=nodes$/)
  await expect(page.getByRole('table')).toBeVisible()
})

test('submit, find, read the log and stop, by keyboard alone', async ({ page }) => {
  await page.goto('/')
  await expect(page.getByLabel('User name')).toBeFocused()
  await page.keyboard.type(ADMIN.name)
  await page.keyboard.press('Tab')
  await page.keyboard.type(ADMIN.password)
  await page.keyboard.press('Enter')
  await expect(page.getByRole('heading', { name: 'My work' })).toBeVisible()

  await keysTo(page, 's', '/submit')
  await expect(page.getByRole('heading', { name: 'Submit a job' })).toBeVisible()
  await type(page, page.getByRole('region', { name: 'Job', exact: true }).getByLabel('Name', { exact: true }), 'by-keyboard')
  await type(page, page.getByRole('region', { name: 'Job', exact: true }).getByLabel('Image', { exact: true }), IMAGE)
  await type(page, page.getByLabel('Memory, MB', { exact: true }), '64')
  await type(page, page.getByLabel('Commands, one a line'), COUNT)
  await page.keyboard.press('Shift+Tab')
  for (let i = 0; i < 60; i++) {
    if (await page.getByRole('button', { name: 'Submit', exact: true }).evaluate((button) => button === document.activeElement)) break
    await page.keyboard.press('Shift+Tab')
  }
  await page.keyboard.press('Enter')
  await expect(page.getByRole('heading', { name: 'admin~by-keyboard' })).toBeVisible()

  await keysTo(page, 'j', '/jobs')
  await expect(page.getByRole('grid')).toBeVisible()
  await page.keyboard.press('/')
  await page.keyboard.type('by-key')
  await expect(page).toHaveURL(/keyword=by-key/)
  const row = page.getByRole('row').filter({ hasText: 'by-keyboard' })
  await expect(row).toBeVisible()
  await tabTo(page, row)
  await page.keyboard.press('Enter')
  await expect(page.getByRole('heading', { name: 'admin~by-keyboard' })).toBeVisible()

  await tabTo(page, page.getByRole('link', { name: 'Logs', exact: true }))
  await page.keyboard.press('Enter')
  await expect.poll(() => newest(page.getByRole('log'))).toBeGreaterThanOrEqual(3)

  await tabTo(page, page.getByRole('button', { name: 'Stop' }))
  await page.keyboard.press('Enter')
  const dialog = page.getByRole('dialog')
  await expect(dialog).toContainText('admin~by-keyboard with its 1 task')
  await tabTo(page, dialog.getByRole('button', { name: 'Stop' }))
  await page.keyboard.press('Enter')
  await expect(page.getByRole('main').locator('h1 + .state')).toHaveText('Stopped')
})

test('what the server finds wrong stands at its line', async ({ page }) => {
  await signIn(page, ADMIN, '/submit')
  const editor = page.getByRole('textbox', { name: 'Job file, YAML' })
  await editor.click()
  await page.keyboard.press('Control+A')
  await page.keyboard.press('Delete')
  await page.keyboard.insertText(jobFile('wrong', ['true']).replace('instances: 1', 'instances: none'))
  await page.getByRole('button', { name: 'Submit', exact: true }).click()
  const problems = page.getByRole('alert')
  await expect(problems).toContainText('taskRoles.main.instances')
  await expect(problems.getByRole('button', { name: 'line 10' })).toBeVisible()
  // the form and the text are one: mended in the form, it is submitted
  await page.getByLabel('Instances').fill('1')
  await expect(problems).toBeHidden()
  await page.getByRole('button', { name: 'Try' }).click()
  await expect(page.getByText('It would start now')).toBeVisible()
  await page.getByRole('button', { name: 'Submit', exact: true }).click()
  await expect(page.getByRole('heading', { name: 'admin~wrong' })).toBeVisible()
  await expect(page.getByRole('main').locator('h1 + .state')).toHaveText('Succeeded')
})

test('a failure shows its exit, its rule and its last lines, and can be cloned', async ({ page }) => {
  await signIn(page)
  await submit(page, jobFile('broken', ['echo before the end', 'nosuchprogram']))
  await page.goto('/jobs/admin~broken')
  const why = page.getByRole('region', { name: 'Why it failed' })
  await expect(why).toContainText('exit code 127')
  await expect(why).toContainText('before the end')
  await page.goto('/')
  await expect(page.getByRole('region', { name: 'Failed' })).toContainText('broken')
  await page.goto('/jobs/admin~broken')
  await page.getByRole('link', { name: 'Clone' }).click()
  await expect(page.getByRole('region', { name: 'Job', exact: true }).getByLabel('Name', { exact: true })).toHaveValue('broken_2')
})

test('a clone keeps its secrets, and says so', async ({ page }) => {
  await signIn(page)
  const name = `sealed-${Date.now()}`
  await submit(page, jobFile(name, ['test <% $secrets.key %> = k1', 'test <% $secrets.other %> = o1'], 'secrets: {key: k1, other: o1}\n'))
  await page.goto(`/jobs/admin~${name}`)
  await page.getByRole('link', { name: 'Clone' }).click()
  await expect(page.getByText(`These secrets are taken from admin~${name}: key, other. Write one anew to change it.`)).toBeVisible()
  const secrets = page.getByRole('region', { name: 'Secrets', exact: true })
  await secrets.getByLabel('Value').last().fill('o1')
  await expect(page.getByText(`These secrets are taken from admin~${name}: key. Write one anew to change it.`)).toBeVisible()
  await page.getByRole('button', { name: 'Submit', exact: true }).click()
  await expect(page.getByRole('heading', { name: `admin~${name}_2` })).toBeVisible()
  await expect(page.getByRole('main').locator('h1 + .state')).toHaveText('Succeeded') // the secret is what it was
})

test('a task says where it ran, what is to be copied, and how each of its attempts ended, by keyboard', async ({ page, context }) => {
  await context.grantPermissions(['clipboard-read', 'clipboard-write'])
  await signIn(page)
  const name = `tried-${Date.now()}`
  await submit(page, `jobRetryCount: 1\n${jobFile(name, ['echo before the end', 'exit 3'], 'extras: {gangAllocation: false}\n').replace('gpu: 0}', 'gpu: 0}\n    taskRetryCount: 1')}`)
  await page.goto(`/jobs/admin~${name}`)
  await expect(page.getByRole('main').locator('h1 + .state')).toHaveText('Failed')
  const open = page.getByRole('button', { name: 'Details of main[0]' })
  await tabTo(page, open)
  await page.keyboard.press('Enter')
  await expect(page).toHaveURL(/task=main\.0/)
  const dialog = page.getByRole('dialog', { name: 'Task main[0]' })
  const last = dialog.getByRole('region', { name: 'Attempt 1 of the task' })
  await expect(last).toContainText('Failed')
  await expect(last.getByText(/^3 /)).toBeVisible()
  await expect(dialog.getByRole('region', { name: 'Attempt 0 of the task' })).toContainText('Failed')
  const port = last.getByRole('button', { name: 'Copy: Port http' })
  await tabTo(page, port)
  await page.keyboard.press('Enter')
  expect(await page.evaluate(() => navigator.clipboard.readText())).toMatch(/^[\d.]+:\d+$/)
  await page.keyboard.press('Escape')
  await expect(dialog).toHaveCount(0)
  await expect(open).toBeFocused()

  // the tasks of the attempt of the job before, and their logs
  await page.getByRole('link', { name: 'Attempts', exact: true }).click()
  const before = page.getByRole('region', { name: 'Attempt 0', exact: true })
  await expect(before).toContainText('Ended by main[0]')
  await before.getByText('Tasks of attempt 0').click()
  await before.getByRole('row').getByRole('link', { name: 'main[0]', exact: true }).click()
  await expect(dialog).toContainText('In attempt 0 of the job')
  await dialog.getByRole('region', { name: 'Attempt 0 of the task' }).getByRole('link', { name: /^Log/ }).click()
  await expect(page).toHaveURL(/tab=logs.*run=0/)
  await expect(page.getByRole('log')).toContainText('before the end')

  // its file, as it was written and as JSON
  await page.getByRole('link', { name: 'Configuration', exact: true }).click()
  await expect(page.getByRole('textbox', { name: 'Job file, read only' })).toContainText('taskRetryCount: 1')
  await page.getByRole('button', { name: 'JSON', exact: true }).click()
  await expect(page.getByRole('textbox', { name: 'Job file as JSON, read only' })).toContainText('"taskRetryCount": 1')
})

test('several jobs are stopped at once, archived and deleted', async ({ page }) => {
  await signIn(page)
  for (const name of ['many-1', 'many-2', 'many-3']) await submit(page, jobFile(name, ['sleep 1000']))
  await page.goto('/jobs?keyword=many-')
  const rows = page.getByRole('row').filter({ hasText: 'many-' })
  await expect(rows).toHaveCount(3)
  await rows.first().focus()
  for (let i = 0; i < 3; i++) {
    await page.keyboard.press('Space')
    await page.keyboard.press('ArrowDown')
  }
  await expect(page.getByText('3 selected')).toBeVisible()
  await page.getByRole('button', { name: 'Stop', exact: true }).click()
  const dialog = page.getByRole('dialog')
  await expect(dialog).toContainText('admin~many-2')
  await dialog.getByRole('button', { name: 'Stop' }).click()
  // the list is fresh without a reload
  await expect(rows.getByText('Stopped')).toHaveCount(3)
  await expect(dialog).toHaveCount(0) // with it goes what was selected
  await page.getByLabel('Select admin~many-1').check()
  await page.getByRole('button', { name: 'Archive' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Archive' }).click()
  await expect(rows).toHaveCount(2)
  await page.getByLabel('Select admin~many-2').check()
  await page.getByRole('button', { name: 'Delete' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click()
  await expect(rows).toHaveCount(1)
})

test('what a failure leaves for debugging is shown, and can be let go as long as it is there', async ({ page }) => {
  await signIn(page)
  const name = `kept-${Date.now()}`
  await submit(page, jobFile(name, ['exit 3'], 'extras: {debug: true}\n'))
  await page.goto(`/jobs/admin~${name}`)
  const held = page.getByRole('region', { name: 'Kept for debugging' })
  await expect(held).toContainText('The container of 1 task is kept for debugging.')
  await expect(held).toContainText('main[0]')
  await expect(held.getByRole('time')).toBeVisible()
  await page.getByRole('button', { name: 'More actions' }).click()
  await page.getByRole('button', { name: 'Let go what is held for debugging' }).click()
  await expect(held).toHaveCount(0)
  await page.getByRole('button', { name: 'More actions' }).click()
  await expect(page.getByRole('button', { name: 'Archive' })).toBeVisible()
  await expect(page.getByRole('button', { name: 'Let go what is held for debugging' })).toHaveCount(0)
})

test('many jobs are selected by range, all that are shown, and all that the filters find', async ({ page }) => {
  await page.addInitScript({ path: axePath })
  await signIn(page)
  const prefix = `bulk${Date.now()}-`
  for (let i = 0; i < 6; i++) await submit(page, jobFile(`${prefix}${i}`, ['true']).replace('cpu: 1,', 'cpu: 100000,'))
  await page.goto(`/jobs?keyword=${prefix}&state=WAITING&order=jobName,ASC`)
  const rows = page.getByRole('row').filter({ hasText: prefix })
  await expect(rows).toHaveCount(6)
  const selected = page.getByRole('row', { selected: true })
  const box = (i: number) => page.getByLabel(`Select admin~${prefix}${i}`)
  // by pointer, and back again
  await box(1).click()
  await box(4).click({ modifiers: ['Shift'] })
  await expect(selected).toHaveCount(4)
  await page.getByRole('button', { name: 'Select none' }).click()
  await expect(selected).toHaveCount(0)
  await expect(page.locator('body')).not.toBeFocused() // the button is gone, and the focus is not lost with it
  await box(1).click()
  await page.getByRole('button', { name: 'Select all 6' }).click()
  await expect(selected).toHaveCount(6)
  await expect(page.locator('body')).not.toBeFocused()
  await page.getByRole('button', { name: 'Select none' }).click()
  // by keyboard
  await rows.nth(2).focus()
  await page.keyboard.press('Shift+ArrowDown')
  await page.keyboard.press('Shift+ArrowDown')
  await expect(selected).toHaveCount(3)
  await expect(rows.nth(4)).toBeFocused()
  await page.keyboard.press('Control+a')
  await expect(selected).toHaveCount(6)
  // all of the list, and what is done to it says for how many
  const all = page.getByRole('checkbox', { name: 'Select all shown' })
  await expect(all).toBeChecked()
  await all.click()
  await expect(selected).toHaveCount(0)
  await tabTo(page, all)
  await page.keyboard.press('Space')
  await expect(page.getByText('6 selected')).toBeVisible()
  expect(await violations(page)).toEqual([])
  await page.getByRole('button', { name: 'Stop', exact: true }).click()
  const dialog = page.getByRole('dialog', { name: 'Stop 6 jobs?' })
  await dialog.getByRole('button', { name: 'Stop', exact: true }).click()
  await expect(page.getByText('6 jobs are being stopped.')).toBeVisible()
  await expect(page.getByText('No job fits these filters')).toBeVisible()
  await page.getByRole('button', { name: 'Undo' }).click()
  await expect(rows).toHaveCount(6)
  await page.getByRole('checkbox', { name: 'Select all shown' }).check()
  await page.getByRole('button', { name: 'Stop', exact: true }).click()
  await dialog.getByRole('button', { name: 'Stop', exact: true }).click()
  await expect(page.getByText('No job fits these filters')).toBeVisible()
  await page.goto(`/jobs?keyword=${prefix}&state=STOPPED`)
  await expect(rows).toHaveCount(6)
  await page.getByRole('checkbox', { name: 'Select all shown' }).check()
  await page.getByRole('button', { name: 'Delete', exact: true }).click()
  await page.getByRole('dialog', { name: 'Delete 6 jobs?' }).getByRole('button', { name: 'Delete', exact: true }).click()
  await expect(page.getByText('6 jobs are deleted.')).toBeVisible()
})

test('who closes the question while the server is busy stops what was asked for', async ({ page }) => {
  await signIn(page)
  const prefix = `spared${Date.now()}-`
  for (const end of ['a', 'b']) await submit(page, jobFile(`${prefix}${end}`, ['true']).replace('cpu: 1,', 'cpu: 100000,'))
  let tries = 0
  await page.route('**/api/v2/bulk/jobs', async (route) => {
    tries++
    await route.fulfill({ status: 429, headers: { 'Retry-After': '2' }, json: { code: 'QuotaError', message: 'too many requests' } })
  })
  await page.goto(`/jobs?keyword=${prefix}`)
  await page.getByRole('checkbox', { name: 'Select all shown' }).check()
  await page.getByRole('button', { name: 'Stop', exact: true }).click()
  await page.getByRole('dialog', { name: 'Stop 2 jobs?' }).getByRole('button', { name: 'Stop', exact: true }).click()
  await expect.poll(() => tries).toBe(1)
  await page.keyboard.press('Escape')
  await expect(page.getByText('2 jobs are left as they were.')).toBeVisible()
  await page.waitForTimeout(3000)
  expect(tries).toBe(1)
  await expect(page.getByRole('row').filter({ hasText: prefix }).getByText('Waiting')).toHaveCount(2)
})

test('what was found for another filter is not selected when it comes late', async ({ page }) => {
  await signIn(page)
  const prefix = `late${Date.now()}-`
  for (const end of ['a', 'b']) await submit(page, jobFile(`${prefix}${end}`, ['true']).replace('cpu: 1,', 'cpu: 100000,'))
  await page.goto(`/jobs?keyword=${prefix}`)
  await page.getByLabel(`Select admin~${prefix}a`).check()
  let answer = () => undefined as unknown
  const isHeld = new Promise((resolve) => (answer = () => resolve(undefined)))
  const isAsked = page.waitForRequest(/jobs\?.*cursor=/)
  await page.route(/jobs\?.*cursor=/, async (route) => {
    await isHeld
    await route.continue()
  })
  await page.getByRole('button', { name: 'Select all 2' }).click()
  await isAsked
  await page.getByLabel('Part of a name').fill(`${prefix}b`)
  await expect(page.getByRole('row').filter({ hasText: prefix })).toHaveCount(1)
  const isAnswered = page.waitForResponse(/jobs\?.*cursor=/)
  answer()
  await (await isAnswered).finished()
  await page.waitForTimeout(300)
  await expect(page.getByText(/^\d+ selected$/)).toHaveCount(0)
  await page.getByLabel(`Select admin~${prefix}b`).check()
  await expect(page.getByText('1 selected')).toBeVisible()
})

test('what the server finds wrong is shown while one types, asked for seldom', async ({ page }) => {
  await signIn(page, ADMIN, '/submit')
  let checks = 0
  const began = Date.now()
  page.on('request', (request) => {
    if (request.url().includes('placement=false')) checks++
  })
  const editor = page.getByRole('textbox', { name: 'Job file, YAML' })
  await editor.click()
  await page.keyboard.press('Control+A')
  await page.keyboard.press('Delete')
  await page.keyboard.insertText(jobFile('typed', ['true']).replace('instances: 1', 'instances: none'))
  await page.keyboard.type('# one letter after the other', { delay: 30 })
  await expect(page.getByRole('status').filter({ hasText: 'taskRoles.main.instances' })).toBeVisible()
  await expect(page.getByRole('button', { name: 'line 10' })).toBeVisible()
  await expect(editor).toBeFocused()
  expect(checks).toBeLessThanOrEqual(2 + (Date.now() - began) / 1000) // a second after a key, at the earliest
  // it stays while one types on, and moves nothing
  const top = async () => (await page.getByRole('region', { name: 'Job file', exact: true }).boundingBox())?.y
  const before = await top()
  await page.keyboard.type(' and more')
  expect(await page.getByRole('button', { name: 'line 10' }).count()).toBe(1)
  expect(await top()).toBe(before)
  await page.getByLabel('Instances').fill('1')
  await expect(page.getByRole('button', { name: 'line 10' })).toBeHidden()
  // what was tried is not asked for again
  await page.getByRole('button', { name: 'Try' }).click()
  await expect(page.getByText('It would start now')).toBeVisible()
  const asked = checks
  await page.waitForTimeout(1500)
  expect(checks).toBe(asked)
})

test('a changed copy is kept until it is submitted or dropped', async ({ page }) => {
  await signIn(page)
  const name = `source-${Date.now()}`
  await submit(page, jobFile(name, ['true']))
  await page.goto(`/submit?clone=admin~${name}`)
  const field = page.getByRole('region', { name: 'Job', exact: true }).getByLabel('Name', { exact: true })
  const before = await field.inputValue()
  await field.fill('my-own-name')
  await page.reload()
  await expect(field).toHaveValue('my-own-name')
  await expect(page.getByText('This is what you wrote here before, and did not submit.')).toBeVisible()
  // a new job and its draft know nothing of it
  await page.goto('/submit')
  await expect(field).not.toHaveValue('my-own-name')
  await page.goto(`/submit?clone=admin~${name}`)
  await page.getByRole('button', { name: 'Begin again with the copy' }).click()
  await expect(field).toHaveValue(before)
  await page.reload()
  await expect(field).toHaveValue(before)
  await expect(page.getByText('This is what you wrote here before')).toHaveCount(0)
})

test('a log goes on where it was after the server was killed', async ({ page, request }) => {
  const control = process.env['PORTAL_CONTROL']
  test.skip(!control, 'only where the test may restart the server')
  await signIn(page)
  await submit(page, jobFile('survivor', [COUNT]))
  await page.goto('/jobs/admin~survivor?tab=logs')
  const log = page.getByRole('log')
  await expect.poll(() => newest(log)).toBeGreaterThanOrEqual(5)
  expect((await request.post(`${control}/restart`)).ok()).toBe(true)
  const now = await newest(log)
  await expect.poll(() => newest(log)).toBeGreaterThanOrEqual(now + 10)
  // nothing twice, nothing left out: each stands where it would in the whole log
  const lines = await log
    .locator('.log-line')
    .evaluateAll((all) => all.map((line) => [line.textContent, Number(line.getAttribute('data-index'))] as const))
  expect(lines.map(([text]) => text)).toEqual(lines.map(([, index]) => `line ${index + 1}`))
})
