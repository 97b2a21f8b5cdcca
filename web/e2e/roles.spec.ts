// Each role walks all pages, and sees what it may and only that: a user, the administrator of a group, an administrator.
import type { Browser, Page } from '@playwright/test'
import { ADMIN, expect, jobFile, signIn, submit, test } from './portal'
import { ANN, GRETA, pagesOf, settled, stageSet, visit } from './stage'

async function others(browser: Browser, who: typeof ADMIN, act: (page: Page) => Promise<void>) {
  const context = await browser.newContext()
  const page = await context.newPage()
  const wrong: string[] = []
  page.on('pageerror', (error) => wrong.push(String(error.stack)))
  await signIn(page, who)
  await act(page)
  expect(wrong).toEqual([])
  await context.close()
}

test.beforeEach(async ({ page }) => {
  test.setTimeout(900_000)
  await signIn(page)
  await stageSet(page)
})

test('a user walks all pages, and has no way to what is not theirs', async ({ browser }) => {
  await others(browser, ANN, async (page) => {
    await expect(page.getByRole('navigation', { name: 'Pages' }).getByRole('link')).toHaveText(['Home', 'Jobs', 'Submit', 'Templates', 'Cluster', 'Storages'])
    for (const path of pagesOf('admin~resnet-50')) {
      await visit(page, path)
    }
    // what the administration has is for nobody else
    for (const tab of ['users', 'groups', 'clusters', 'nodes', 'abnormal', 'exits', 'audit', 'settings']) {
      await page.goto(`/admin?tab=${tab}`)
      await expect(page.getByText('This page is for administrators')).toBeVisible()
      await expect(page.getByRole('table')).toHaveCount(0)
    }
    // the job of somebody else is seen, and not touched: no button offers what the server would refuse
    await page.goto('/jobs/admin~resnet-50')
    await settled(page)
    await expect(page.getByRole('region', { name: 'Facts' })).toBeVisible()
    for (const name of ['Clone', 'Logs', 'Configuration', 'Terminal']) await expect(page.getByRole('main').getByRole('link', { name, exact: true })).toHaveCount(0)
    await expect(page.getByRole('button', { name: 'Stop', exact: true })).toHaveCount(0)
    await expect(page.getByRole('button', { name: 'More actions' })).toHaveCount(0)
    for (const tab of ['logs', 'config']) {
      await page.goto(`/jobs/admin~resnet-50?tab=${tab}`)
      await expect(page.getByRole('alert').first()).toContainText(/owner|admin/)
    }
    // one's own has them
    await submit(page, jobFile('of-ann', ['true']))
    await page.goto('/jobs/ann~of-ann')
    await expect(page.getByRole('button', { name: 'More actions' })).toBeVisible()
    await page.goto('/profile')
    await expect(page.getByRole('region', { name: 'Account' })).toContainText('user')
  })
})

test('the administrator of a group sees that group alone', async ({ browser }) => {
  await others(browser, GRETA, async (page) => {
    await page.getByRole('link', { name: 'Administration' }).click()
    const rows = page.getByRole('table').getByRole('rowheader')
    await expect(rows).toHaveText(['lab'])
    await expect(page.getByRole('navigation', { name: 'Views of the administration' })).toHaveCount(0)
    await page.getByRole('button', { name: 'Quotas of lab' }).click()
    await expect(page.getByRole('dialog').getByRole('button', { name: 'Change', exact: true })).toHaveCount(0)
    await page.keyboard.press('Escape')
    await page.getByRole('button', { name: 'Members of lab' }).click()
    const members = page.getByRole('dialog')
    await expect(members.getByRole('row').filter({ hasText: 'ann' })).toBeVisible()
    await expect(members.getByRole('button', { name: /dministrator of it/ })).toHaveCount(0)
    await page.keyboard.press('Escape')
    for (const path of pagesOf('admin~resnet-50')) {
      await visit(page, path)
    }
  })
})

test('an administrator sees all of it', async ({ page }) => {
  await page.goto('/admin')
  await expect(page.getByRole('navigation', { name: 'Views of the administration' }).getByRole('link')).toHaveText(['Users', 'Groups', 'Virtual clusters', 'Requests', 'Storages', 'Nodes', 'Services', 'Abnormal jobs', 'Exit codes', 'Audit', 'Settings'])
  await page.goto('/jobs/admin~resnet-50')
  await expect(page.getByRole('button', { name: 'Stop', exact: true })).toBeVisible()
  await expect(page.getByRole('link', { name: 'Clone' })).toBeVisible()
})
