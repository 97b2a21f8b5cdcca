// Logs: the server's search over all of them, the way to a line that it found, several beside each other.
import { readFile } from 'node:fs/promises'
import type { Locator } from '@playwright/test'
import { axePath, barriers, expect, jobFile, picture, roomMake, signIn, submit, test } from './portal'

const TALK = [
  'i=0; while [ $i -lt 20000 ]; do i=$((i+1)); echo step $i of task $PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX; if [ $i = 7000 ]; then echo "loss is NaN in $PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX"; fi; done',
  'while true; do sleep 0.2; done',
]

test('a line is found in the logs of all tasks, and leads to its place', async ({ page }) => {
  await page.addInitScript({ path: axePath })
  await signIn(page)
  await roomMake(page)
  await submit(page, jobFile('talking', TALK).replace('instances: 1', 'instances: 2'))
  for (const index of [1, 0]) {
    await page.goto(`/jobs/admin~talking?tab=logs&role=main&index=${index}`)
    await expect(page.getByRole('log')).toContainText(`step 20000 of task ${index}`) // neither writes any more
  }
  const field = page.getByRole('searchbox', { name: 'Search in all logs of the job' })
  const found = page.getByRole('list', { name: 'Lines found' }).getByRole('listitem')
  await field.fill('LOSS is nan')
  await field.press('Enter')
  await expect(found).toHaveCount(2)
  await page.getByLabel('Case counts').check()
  await expect(page.getByText('No line has this')).toBeVisible()
  await page.getByLabel('Case counts').uncheck()
  await page.getByLabel('Expression').check()
  await field.fill('^loss is N.N in 1$')
  await field.press('Enter')
  await expect(found).toHaveCount(1)
  await expect(found).toContainText('line 7001')
  // with what stands around it
  const before = found.getByRole('group', { name: 'Before it' })
  await expect(before).toHaveText('step 6999 of task 1\nstep 7000 of task 1')
  await expect(found.getByRole('group', { name: 'After it' })).toHaveText('step 7001 of task 1\nstep 7002 of task 1')
  await page.getByLabel('Lines around each that is found').selectOption('The line alone')
  await expect(before).toHaveCount(0)
  await page.getByLabel('Lines around each that is found').selectOption('5 lines before and after')
  await expect(before).toContainText('step 6996 of task 1')
  await page.getByLabel('Lines around each that is found').selectOption('2 lines before and after')
  await expect(before).not.toContainText('step 6998 of task 1')
  await picture(page, 'log-search')
  await found.getByRole('link').click()
  await expect(page).toHaveURL(/index=1/)
  const log = page.getByRole('log')
  await expect(log.locator('[data-hit]')).toHaveText('loss is NaN in 1')
  await expect(log.locator('[data-hit]')).toBeInViewport()
  await expect(page.getByText('A part of the log is shown')).toBeVisible()
  // in a low window, too, the log is what one sees most of
  for (const [width, height, least] of [[1280, 700, 300], [1280, 600, 230], [1000, 640, 160]] as const) {
    await page.setViewportSize({ width, height })
    await page.evaluate(() => window.scrollTo(0, 0))
    await expect.poll(() => log.evaluate((box) => Math.min(innerHeight, box.getBoundingClientRect().bottom) - box.getBoundingClientRect().top), `${width} × ${height}`).toBeGreaterThanOrEqual(least)
    await expect(found.first()).toBeInViewport()
    await page.reload()
    await expect(log.locator('[data-hit]')).toBeInViewport()
  }
  expect(await barriers(page)).toEqual([])
  await page.setViewportSize({ width: 1280, height: 800 })
  await page.getByRole('button', { name: 'Follow' }).click()
  await expect(log).toContainText('step 20000 of task 1')
  // a time: before everything was written
  await page.getByLabel('Jump to a time').fill('2020-01-01T00:00:01')
  await page.getByRole('button', { name: 'Jump', exact: true }).click()
  await expect(page).toHaveURL(/[?&]at=0(&|$)/)
  await expect(log.locator('[data-hit]')).toHaveText('step 1 of task 1')
  await page.getByRole('button', { name: 'Follow' }).click()
  await expect(log).toContainText('step 20000 of task 1')
  await field.fill('(')
  await field.press('Enter')
  await expect(page.getByRole('alert')).toBeVisible()
})

test('logs of several tasks stand beside each other, also after a reload', async ({ page }) => {
  await page.addInitScript({ path: axePath })
  await signIn(page)
  await page.goto('/jobs/admin~talking?tab=logs')
  await page.getByRole('button', { name: 'Keep it beside' }).click()
  await page.getByLabel('Task', { exact: true }).selectOption('1')
  const first = page.getByRole('region', { name: 'Log of main[0]' })
  const second = page.getByRole('region', { name: 'Log of main[1]' })
  await expect(first.getByRole('log')).toContainText('step 20000 of task 0')
  await expect(second.getByRole('log')).toContainText('step 20000 of task 1')
  await picture(page, 'logs-beside')
  await page.reload()
  await expect(first.getByRole('log')).toContainText('step 20000 of task 0')
  const saved = page.waitForEvent('download')
  await first.getByRole('button', { name: 'Download' }).click()
  expect((await saved).suggestedFilename()).toBe('admin~talking-main-0.log')
  expect((await saved).url()).toMatch(/\/logs\/all\?link=/) // the browser fetches it: the page holds nothing of it
  const text = await readFile(await (await saved).path(), 'utf8')
  expect(text.split('\n').filter((line) => line.startsWith('step ') && line.endsWith(' of task 0'))).toHaveLength(20_000)
  expect(await barriers(page)).toEqual([])
  await page.setViewportSize({ width: 1280, height: 800 })
  await page.getByRole('button', { name: 'Close the log of main[0]' }).click()
  await expect(first).toHaveCount(0)
})

/** The line at the top of the window, as who reads sees it; undefined: those that stand there are yet to be drawn. */
const topLine = (log: Locator) =>
  log.evaluate((box) => {
    const edge = box.getBoundingClientRect().top + 2
    const isThere = ({ top, bottom }: DOMRect) => top <= edge && bottom > edge
    return [...box.querySelectorAll('.log-line')].find((line) => isThere(line.getBoundingClientRect()))?.textContent
  })

test('who scrolls up just before the lines are drawn anew is not led back', async ({ page }) => {
  await signIn(page)
  await roomMake(page)
  await submit(page, jobFile('left', ['seq 1 2000; sleep 1000']))
  await page.goto('/jobs/admin~left?tab=logs')
  const log = page.getByRole('log')
  const follow = page.getByRole('button', { name: 'Follow' })
  await expect(log).toContainText('2000')
  await expect(follow).toHaveAttribute('aria-pressed', 'true')
  // a search draws them anew at once, as a line that comes does; the browser tells of the scrolling with the next picture
  await log.evaluate((box) => {
    const search = box.closest('.log-view')!.querySelector<HTMLInputElement>('input[type=search]')!
    box.scrollTop = 1900
    Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, 'value')!.set!.call(search, 'none')
    search.dispatchEvent(new Event('input', { bubbles: true }))
  })
  await expect(follow).toHaveAttribute('aria-pressed', 'false')
  await expect.poll(() => topLine(log)).toBe('101')
  await follow.click()
  await expect(log).toContainText('2000')
  await expect(follow).toHaveAttribute('aria-pressed', 'true')
})

test('a long log is read from its beginning to its end, while it grows', async ({ page }) => {
  await page.addInitScript({ path: axePath })
  await signIn(page)
  await roomMake(page)
  await submit(page, jobFile('long', ['i=400000; seq 1 $i; while true; do i=$((i+1)); echo $i; sleep 0.2; done']))
  await page.goto('/jobs/admin~long?tab=logs')
  const log = page.getByRole('log')
  const part = page.getByText('A part of the log is shown')
  const later = page.getByRole('button', { name: 'Show later lines' })
  const lines = () => log.evaluate((box) => Math.round(box.scrollHeight / 19))
  const newest = () => log.evaluate((box) => Number([...box.querySelectorAll('.log-line')].at(-1)?.textContent))
  await expect.poll(newest).toBeGreaterThan(400_000)
  await page.reload() // what stands before the last 256 KiB is not here
  await expect.poll(newest).toBeGreaterThan(400_000)
  // read back: the line on which one is stays, and what is farthest from it is let go
  await log.evaluate((box) => (box.scrollTop = 1900))
  await expect(page.getByRole('button', { name: 'Follow' })).toHaveAttribute('aria-pressed', 'false')
  let line: string | null | undefined
  await expect.poll(async () => Number((line = await topLine(log)))).toBeGreaterThan(300_000)
  const earlier = page.getByRole('button', { name: 'Show earlier lines' })
  for (let before = await lines(); before < 200_000; before = await lines()) {
    await earlier.click()
    await expect.poll(lines).toBeGreaterThan(before)
    await expect.poll(() => topLine(log)).toBe(line)
  }
  await earlier.click()
  await expect(part).toBeVisible() // the end has been let go, and what is written does not move the lines
  expect(await lines()).toBeLessThanOrEqual(300_001)
  // nor is it kept when it is farthest from what one asks for
  await expect.poll(async () => [undefined, line].includes(await topLine(log))).toBe(false)
  await earlier.click()
  await expect(earlier).toHaveCount(0)
  // with the keyboard to the beginning, and on to the end
  await page.getByRole('button', { name: 'Follow' }).click()
  await expect(part).toHaveCount(0)
  // who is at the end is led to the lines that have come
  await expect.poll(newest).toBeGreaterThan(400_000)
  await earlier.click()
  await expect.poll(async () => Number(await topLine(log))).toBeLessThan(380_000)
  await expect(page.getByRole('button', { name: 'Follow' })).toHaveAttribute('aria-pressed', 'false')
  await log.focus()
  await page.keyboard.press('Home')
  await expect.poll(() => topLine(log)).toBe('1')
  await expect(part).toBeVisible()
  await picture(page, 'log-part')
  expect(await barriers(page)).toEqual([])
  await page.setViewportSize({ width: 1280, height: 800 })
  const few = await lines()
  await later.focus()
  await page.keyboard.press('Enter')
  await expect.poll(lines).toBeGreaterThan(few)
  await expect.poll(() => topLine(log)).toBe('1')
  let most = 0
  await expect(async () => {
    // it goes on where one comes to what is loaded
    most = Math.max(most, await lines())
    await log.evaluate((box) => (box.scrollTop = box.scrollHeight))
    await expect(part).toHaveCount(0, { timeout: 500 })
  }).toPass()
  expect(most).toBeLessThanOrEqual(300_001)
  await log.focus()
  await page.keyboard.press('End')
  await expect(page.getByRole('button', { name: 'Follow' })).toHaveAttribute('aria-pressed', 'true')
  const now = await newest()
  await expect.poll(newest).toBeGreaterThan(now)
  await page.keyboard.press('Home')
  await page.getByRole('button', { name: 'Go to the beginning' }).waitFor({ state: 'detached' })
  await expect.poll(() => topLine(log)).toBe('1')
})

test('a template asks for its parameters, and keeps no secret', async ({ page }) => {
  await page.addInitScript({ path: axePath })
  await signIn(page)
  await roomMake(page)
  await page.goto('/submit')
  const editor = page.getByRole('textbox', { name: 'Job file, YAML' })
  await editor.click()
  await page.keyboard.press('Control+A')
  await page.keyboard.press('Delete')
  await page.keyboard.insertText(jobFile('kept', ['echo rate <% $parameters.rate %>'], 'parameters:\n  rate: 0.1 # of learning\n  model: small\nsecrets:\n  key: very-secret\n'))
  await page.getByRole('button', { name: 'Templates' }).click()
  await page.getByRole('button', { name: 'Keep this job as a template …' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Keep', exact: true }).click()
  await expect(page.getByText('kept is saved as a template.')).toBeVisible()
  await page.goto('/jobs')
  await page.goto('/submit')
  await page.getByRole('button', { name: 'Templates' }).click()
  await page.getByRole('button', { name: 'kept', exact: true }).click()
  const parameters = page.getByRole('region', { name: 'Parameters' })
  await expect(parameters.getByLabel('rate')).toBeFocused()
  await expect(parameters.getByLabel('model')).toHaveValue('small')
  await parameters.getByLabel('rate').fill('0.5')
  await expect(editor).toContainText('rate: 0.5 # of learning')
  await expect(editor).not.toContainText('very-secret')
  await picture(page, 'template')
  expect(await barriers(page)).toEqual([])
  await page.setViewportSize({ width: 1280, height: 800 })
  await page.getByRole('button', { name: 'Submit', exact: true }).click()
  await expect(page.getByRole('main').locator('h1 + .state')).toHaveText('Succeeded')
  await page.goto('/templates?item=admin~kept')
  await expect(page.getByText('1 time')).toBeVisible()
  await expect(page.getByRole('region', { name: 'Job file, YAML' })).toContainText('key: ""')
  await page.getByRole('button', { name: 'Remove', exact: true }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Remove' }).click()
  await expect(page.getByText('The template kept is removed.')).toBeVisible()
  await expect(page.getByRole('link', { name: 'kept', exact: true })).toHaveCount(0)
  await page.keyboard.press('u')
  await expect(page.getByRole('link', { name: 'kept', exact: true })).toBeVisible()
})
