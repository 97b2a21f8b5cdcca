import { ADMIN, axePath, barriers, expect, signIn, test, violations } from './portal'
import { pagesOf, settled, stageSet, visit } from './stage'

test('no page has a barrier or scrolls sideways, in any theme and at both widths', async ({ page }) => {
  test.setTimeout(900_000)
  await page.addInitScript({ path: axePath })
  await page.goto('/')
  await expect(page.getByLabel('Password')).toBeVisible()
  expect(await violations(page), 'sign in').toEqual([])
  await signIn(page)
  await stageSet(page)
  const wrong: string[] = []
  for (const path of [...pagesOf('admin~resnet-49'), '/jobs/admin~resnet-50', '/jobs/admin~resnet-50?tab=terminal', '/jobs/admin~resnet-50?tab=config&with=admin~resnet-48']) {
    await visit(page, path)
    for (const one of await barriers(page)) wrong.push(`${path} ${one}`)
  }
  expect(wrong).toEqual([])
})

test('a user made by the administrator signs in, and sees no administration', async ({ page, browser }) => {
  await signIn(page, ADMIN, '/admin')
  await page.getByRole('button', { name: 'New user' }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByLabel('User name').fill('anton')
  await dialog.getByLabel('Password').fill('anton-password')
  await dialog.getByRole('button', { name: 'Make the user' }).click()
  await expect(page.getByRole('row').filter({ hasText: 'anton' })).toBeVisible()
  const context = await browser.newContext()
  const other = await context.newPage()
  await signIn(other, { name: 'anton', password: 'anton-password' })
  await expect(other.getByRole('link', { name: 'Administration' })).toHaveCount(0)
  await other.goto('/jobs/admin~resnet-49?tab=logs')
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
  await expect(page.getByRole('dialog').getByRole('link', { name: 'Manual' })).toHaveAttribute('href', 'https://wiki.example.org/cluster')
  await expect(page.getByRole('dialog').getByRole('link', { name: 'Say what is wrong' })).toHaveAttribute('rel', /noopener/)
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
  await page.goto('/job-detail.html?username=admin&jobName=resnet-49')
  await expect(page).toHaveURL(/\/jobs\/admin~resnet-49$/)
  for (const [before, now] of [
    ['/home.html', '/'],
    ['/job-list.html?vcName=default&status=Running', '/jobs?vc=default&state=RUNNING'],
    ['/view.html?username=admin&jobName=resnet-49', '/jobs/admin~resnet-49'],
    ['/submit.html?op=resubmit&type=job&user=admin&jobName=resnet-49#/general', '/submit?clone=admin~resnet-49'],
    ['/submit.html#/general?op=resubmit&type=job&user=admin&jobName=resnet-49', '/submit?clone=admin~resnet-49'],
    ['/task-attempt.html?username=admin&jobName=resnet-49&jobAttemptIndex=0&taskRoleName=main&taskIndex=0', '/jobs/admin~resnet-49?task=main.0&run=0'],
    ['/user-profile.html', '/profile'],
  ] as const) {
    await page.goto(before)
    await expect.poll(() => page.evaluate(() => decodeURIComponent(location.pathname + location.search + location.hash)), before).toBe(now)
    await settled(page)
  }
})

test('an address of the portal before leads where it should after signing in, too', async ({ page }) => {
  await page.goto('/submit.html#/general?op=resubmit&type=job&user=admin&jobName=resnet-49')
  await page.getByLabel('User name').fill(ADMIN.name)
  await page.getByLabel('Password').fill(ADMIN.password)
  await page.getByRole('button', { name: 'Sign in', exact: true }).click()
  await expect.poll(() => decodeURIComponent(new URL(page.url()).pathname + new URL(page.url()).search)).toBe('/submit?clone=admin~resnet-49')
})
