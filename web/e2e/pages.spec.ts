import type { Page } from '@playwright/test'
import { ADMIN, axePath, expect, jobFile, roomMake, signIn, submit, test, VIEWS, violations } from './portal'

const PAGES = [
  '/',
  '/jobs',
  '/jobs?keyword=no-such-job',
  '/jobs/admin~shown',
  '/jobs/admin~shown?tab=logs',
  '/jobs/admin~shown?tab=use',
  '/jobs/admin~shown?tab=terminal',
  '/jobs/admin~shown?tab=config',
  '/jobs/admin~shown?tab=attempts',
  '/jobs/admin~none',
  '/submit',
  '/cluster',
  '/cluster?tab=nodes',
  '/cluster?tab=queue',
  '/cluster?tab=quotas',
  '/admin',
  '/admin?tab=groups',
  '/admin?tab=clusters',
  '/admin?tab=nodes',
  '/admin?tab=exits',
  '/admin?tab=audit',
  '/storages',
  '/profile',
  '/design',
]
const settled = async (page: Page) => {
  await expect(page.getByRole('heading', { level: 1 })).toBeVisible()
  await expect(page.getByText('Loading …')).toHaveCount(0)
}

test('no page has a barrier or scrolls sideways, in both themes and at both widths', async ({ page }) => {
  test.setTimeout(400_000)
  await page.addInitScript({ path: axePath })
  await page.goto('/')
  await expect(page.getByLabel('Password')).toBeVisible()
  expect(await violations(page), 'sign in').toEqual([])
  await signIn(page)
  await roomMake(page)
  await submit(page, jobFile('shown', ['echo hello', 'nosuchprogram'], 'parameters:\n  rate: 1\n'))
  await page.goto('/jobs/admin~shown')
  await expect(page.getByRole('region', { name: 'Why it failed' })).toBeVisible()
  const wrong: string[] = []
  for (const view of VIEWS) {
    await page.setViewportSize(view)
    await page.emulateMedia({ colorScheme: view.theme })
    for (const path of PAGES) {
      await page.goto(path)
      await settled(page)
      for (const one of await violations(page)) wrong.push(`${path} ${view.theme} ${view.width}: ${one}`)
      const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth)
      if (wide > 0) wrong.push(`${path} ${view.width}: wider than the window by ${wide}`)
    }
  }
  expect(wrong).toEqual([])
})

test('a user made by the administrator signs in, and sees no administration', async ({ page, browser }) => {
  await signIn(page, ADMIN, '/admin')
  await page.getByRole('button', { name: 'New user' }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByLabel('User name').fill('ann')
  await dialog.getByLabel('Password').fill('ann-password')
  await dialog.getByRole('button', { name: 'Make the user' }).click()
  await expect(page.getByRole('row').filter({ hasText: 'ann' })).toBeVisible()
  const context = await browser.newContext()
  const other = await context.newPage()
  await signIn(other, { name: 'ann', password: 'ann-password' })
  await expect(other.getByRole('link', { name: 'Administration' })).toHaveCount(0)
  await other.goto('/jobs/admin~shown?tab=logs')
  await expect(other.getByRole('alert')).toBeVisible() // not her own
  await other.goto('/profile')
  await other.getByRole('button', { name: 'New token …' }).click()
  await other.getByRole('dialog').getByRole('button', { name: 'Make the token' }).click()
  await expect(other.getByRole('dialog')).toContainText('eyJ')
  await context.close()
})

test('Chinese, the dark theme and the help are one key or choice away', async ({ page }) => {
  await signIn(page)
  await page.keyboard.press('?')
  await expect(page.getByRole('dialog')).toContainText('Go to the jobs')
  await page.keyboard.press('Escape')
  await page.getByRole('button', { name: 'Account of admin' }).click()
  await page.getByLabel('Theme').selectOption('contrast')
  await expect(page.locator('html')).toHaveAttribute('data-theme', 'contrast')
  await page.getByLabel('Language').selectOption('zh-CN')
  await expect(page.getByRole('heading', { name: '我的工作' })).toBeVisible()
  await expect(page.locator('html')).toHaveAttribute('lang', 'zh-CN')
})

test('a second tab needs no sign-in, and signing out ends both', async ({ page, context }) => {
  await signIn(page)
  const second = await context.newPage()
  await second.goto('/jobs')
  await expect(second.getByRole('heading', { name: 'Jobs' })).toBeVisible()
  await second.getByRole('button', { name: 'Account of admin' }).click()
  await second.getByRole('button', { name: 'Sign out' }).click()
  await expect(page.getByRole('button', { name: 'Sign in' })).toBeVisible()
})

test('addresses of the portal before lead to the pages of this one', async ({ page }) => {
  await signIn(page)
  await page.goto('/job-detail.html?username=admin&jobName=shown')
  await expect(page).toHaveURL(/\/jobs\/admin~shown$/)
})
