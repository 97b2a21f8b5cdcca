// What a page lives through: many tabs, a machine that sleeps, a clock that is set, a session that ends, a server that is killed.
import type { BrowserContext, Locator, Page } from '@playwright/test'
import { ADMIN, axePath, barriers, expect, jobFile, signIn, submit, test } from './portal'
import { ask } from './stage'

const TABS = 50
const SHORTEST_S = 60 // that the server gives a token

/** How many streams the server serves now. */
const streamsOf = async (page: Page) => {
  const text = await page.evaluate(async () => (await fetch('/metrics')).text())
  return Number(/^skep_http_streams (\d+)/m.exec(text)?.[1] ?? NaN)
}

/** A session that the server has ended is noticed by any request, and by the stream: the dialog that says so may lie over the button already. */
const pressUnder = (button: Locator) => button.dispatchEvent('click')

const rowOf = (page: Page, name: string) => page.getByRole('row').filter({ hasText: name })

test('fifty tabs of a browser have one stream of changes, also when the tab that reads it is closed', async ({ page, context }) => {
  test.setTimeout(900_000)
  await signIn(page, ADMIN, '/jobs')
  await expect.poll(() => streamsOf(page)).toBe(1)
  const tabs: Page[] = [page]
  while (tabs.length < TABS) {
    const tab = await context.newPage()
    await tab.goto('/jobs')
    await expect(tab.getByRole('heading', { name: 'Jobs' })).toBeVisible()
    tabs.push(tab)
  }
  const last = tabs.at(-1)!
  await expect.poll(() => streamsOf(last)).toBe(1)
  await submit(last, jobFile('told-to-all', ['true']))
  for (const tab of tabs) await expect(rowOf(tab, 'told-to-all')).toContainText('Succeeded') // nobody has reloaded
  await page.close() // which has read the stream
  await submit(last, jobFile('told-again', ['true']))
  for (const tab of tabs.slice(1)) await expect(rowOf(tab, 'told-again')).toContainText('Succeeded')
  await expect.poll(() => streamsOf(last)).toBe(1)
})

/** By somebody else, while this page cannot hear of it. */
async function elsewhere(context: BrowserContext, name: string) {
  const other = await context.browser()!.newContext()
  const page = await other.newPage()
  await signIn(page)
  await submit(page, jobFile(name, ['true']))
  await page.goto(`/jobs/admin~${name}`)
  await expect(page.getByRole('main').locator('h1 + .state')).toHaveText('Succeeded')
  await other.close()
}

test('a page that slept is up to date when it wakes', async ({ page, context }) => {
  await signIn(page, ADMIN, '/jobs')
  const machine = await context.newCDPSession(page)
  await machine.send('Page.setWebLifecycleState', { state: 'frozen' })
  await elsewhere(context, 'while-asleep')
  await machine.send('Page.setWebLifecycleState', { state: 'active' })
  await expect(rowOf(page, 'while-asleep')).toContainText('Succeeded')
})

test('a clock that is set, forward or back, stops nothing', async ({ page, context }) => {
  const hour = 3_600_000
  for (const [name, step] of [
    ['clock-forward', hour],
    ['clock-back', -hour],
  ] as const) {
    await signInOnce(page)
    await page.evaluate((by) => {
      const now = Date.now.bind(Date)
      Date.now = () => now() + by
    }, step)
    await elsewhere(context, name)
    await expect(rowOf(page, name)).toContainText('Succeeded')
  }
})

async function signInOnce(page: Page) {
  if (page.url().startsWith('http')) await page.goto('/jobs')
  else await signIn(page, ADMIN, '/jobs')
  await expect(page.getByRole('heading', { name: 'Jobs' })).toBeVisible()
}

test('a session that ends asks for the password, and leaves the page with what was typed', async ({ page }) => {
  await page.addInitScript({ path: axePath })
  await signIn(page, ADMIN, '/admin')
  await page.getByRole('button', { name: 'New user' }).click()
  const user = page.getByRole('dialog').filter({ hasText: 'Make the user' })
  await user.getByLabel('User name').fill('half-typed')
  await user.getByLabel('Password').fill('half-typed-password')
  expect(await ask(page, 'DELETE', '/api/v2/authn/basic/logout')).toBe(200)
  await pressUnder(user.getByRole('button', { name: 'Make the user' }))
  const again = page.getByRole('dialog', { name: 'Your session has ended' })
  await expect(again).toContainText('Sign in again as admin')
  await expect(again.getByLabel('Password')).toBeFocused()
  expect(await barriers(page)).toEqual([])
  await page.setViewportSize({ width: 1280, height: 800 })
  for (let i = 0; i < 3; i++) await page.keyboard.press('Escape') // goes nowhere; a browser would close it at the second
  await expect(again).toBeVisible()
  await again.getByLabel('Password').fill('wrong')
  await page.keyboard.press('Enter')
  await expect(again.getByRole('alert')).toBeVisible()
  await again.getByLabel('Password').fill(ADMIN.password)
  await page.keyboard.press('Enter')
  await expect(again).toBeHidden()
  // what was asked for is done, and once
  await expect(rowOf(page, 'half-typed')).toHaveCount(1)
  await expect(page).toHaveURL(/\/admin$/)
})

test('a token that expires while one writes asks for the password, and nothing that was written is lost', async ({ page }) => {
  const began = Date.now()
  await page.route('**/api/v2/authn/basic/login', (route) => route.continue({ postData: JSON.stringify({ ...(route.request().postDataJSON() as object), expiration: SHORTEST_S }) }))
  await signIn(page, ADMIN, '/submit')
  await page.unroute('**/api/v2/authn/basic/login') // the next one is as long as usual
  const name = page.getByRole('region', { name: 'Job', exact: true }).getByLabel('Name', { exact: true })
  const typed = `expired-${Date.now()}`
  await name.fill(typed)
  const again = page.getByRole('dialog', { name: 'Your session has ended' })
  // nobody does anything: the page learns of it by itself, and not before
  await expect(again).toBeVisible({ timeout: (SHORTEST_S + 60) * 1000 })
  expect(Date.now() - began).toBeGreaterThanOrEqual((SHORTEST_S - 1) * 1000) // a token tells whole seconds
  await again.getByLabel('Password').fill(ADMIN.password)
  await page.keyboard.press('Enter')
  await expect(again).toBeHidden()
  await expect(name).toHaveValue(typed)
  await page.getByRole('button', { name: 'Submit', exact: true }).click()
  await expect(page.getByRole('heading', { name: `admin~${typed}` })).toBeVisible()
})

test('a session that ends in one tab is renewed in all, and somebody else sees nothing of it', async ({ page, context }) => {
  await signIn(page, ADMIN, '/jobs')
  const second = await context.newPage()
  await second.goto('/submit')
  const name = second.getByRole('region', { name: 'Job', exact: true }).getByLabel('Name', { exact: true })
  await name.fill('typed-before')
  expect(await ask(page, 'DELETE', '/api/v2/authn/basic/logout')).toBe(200)
  const ended = (tab: Page) => tab.getByRole('dialog', { name: 'Your session has ended' })
  await pressUnder(second.getByRole('button', { name: 'Try' }))
  await expect(ended(second)).toBeVisible()
  await expect(ended(page)).toBeVisible() // its stream was cut
  await ended(page).getByLabel('Password').fill(ADMIN.password)
  await page.keyboard.press('Enter')
  await expect(ended(page)).toBeHidden()
  await expect(ended(second)).toBeHidden()
  await expect(name).toHaveValue('typed-before')
  expect(await ask(page, 'DELETE', '/api/v2/authn/basic/logout')).toBe(200)
  await expect(ended(page)).toBeVisible()
  await ended(page).getByRole('button', { name: 'Sign in as somebody else' }).click()
  await expect(page.getByRole('heading', { name: 'Sign in to Skep' })).toBeVisible()
  await expect(rowOf(page, 'job')).toHaveCount(0)
})

test('a server that is killed and comes back is heard again, without a reload and without anything twice', async ({ page, request }) => {
  const control = process.env['PORTAL_CONTROL']
  test.skip(!control, 'only where the test may restart the server')
  await signIn(page, ADMIN, '/jobs')
  await submit(page, jobFile('before-the-kill', ['true']))
  await expect(rowOf(page, 'before-the-kill')).toContainText('Succeeded')
  expect((await request.post(`${control}/restart`)).ok()).toBe(true)
  await submit(page, jobFile('after-the-kill', ['true']))
  await expect(rowOf(page, 'after-the-kill')).toContainText('Succeeded')
  await expect(rowOf(page, 'after-the-kill')).toHaveCount(1)
  await expect(rowOf(page, 'before-the-kill')).toHaveCount(1)
  await expect.poll(() => streamsOf(page)).toBe(1)
  await expect(page.getByRole('dialog')).toHaveCount(0) // the token is good after a restart
})
