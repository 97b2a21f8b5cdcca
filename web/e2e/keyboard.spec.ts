// The pages that came after the first ones, without a mouse; and every page in a window as wide as four others.
import { expect, jobFile, roomMake, signIn, submit, tabTo, test, type } from './portal'
import { pagesOf, settled, stageSet, visit } from './stage'

test('administration, audit and settings, by keyboard alone', async ({ page }) => {
  await signIn(page)
  const press = async (name: string, within = page.getByRole('main')) => {
    await tabTo(page, within.getByRole('button', { name, exact: true }))
    await page.keyboard.press('Enter')
  }
  const follow = async (name: string, within: string) => {
    await tabTo(page, page.getByRole('navigation', { name: within }).getByRole('link', { name, exact: true }))
    await page.keyboard.press('Enter')
  }
  await follow('Administration', 'Pages')
  await press('New user')
  const dialog = page.getByRole('dialog')
  await type(page, dialog.getByLabel('User name'), 'by-keys')
  await type(page, dialog.getByLabel('Password'), 'by-keys-password')
  await page.keyboard.press('Enter')
  await expect(page.getByRole('row').filter({ hasText: 'by-keys' })).toBeVisible()
  await expect(dialog).toHaveCount(0)

  const views = await page.getByRole('main').getByRole('navigation').getAttribute('aria-label')
  await follow('Audit', views!)
  await type(page, page.getByLabel('About'), 'by-keys')
  await page.keyboard.press('Enter')
  await expect(page).toHaveURL(/subject=by-keys/)
  const row = page.getByRole('row').filter({ hasText: 'POST /api/v2/users' })
  await tabTo(page, row.getByRole('button', { name: 'What changed' }))
  await page.keyboard.press('Enter')
  await expect(page.getByRole('listitem').filter({ hasText: /username|→/ }).first()).toBeVisible()

  await follow('Settings', views!)
  await type(page, page.getByLabel('Key, value or meaning'), 'dataDirectory')
  await expect(page.getByRole('row').filter({ hasText: 'dataDirectory' }).first()).toContainText('command line')
  await expect(page.getByRole('row').filter({ hasText: 'retention.jobDays' })).toHaveCount(0)
  await follow('Storages', 'Pages')
  await expect(page.getByRole('heading', { name: 'Storages', level: 1 })).toBeVisible()
})

test('a line is searched in all logs, followed to its place, and a time is jumped to, by keyboard alone', async ({ page }) => {
  await signIn(page)
  await roomMake(page)
  await submit(page, jobFile('keys-log', ['seq 1 5000 | sed "s/^/step /"; echo all is said']))
  await page.goto('/jobs/admin~keys-log?tab=logs')
  const log = page.getByRole('log')
  await expect(log).toContainText('all is said')
  await type(page, page.getByRole('searchbox', { name: 'Search in all logs of the job' }), 'step 2345')
  await page.keyboard.press('Enter')
  const found = page.getByRole('list', { name: 'Lines found' }).getByRole('link')
  await expect(found).toHaveCount(1)
  await tabTo(page, found)
  await page.keyboard.press('Enter')
  await expect(log.locator('[data-hit]')).toHaveText('step 2345')
  await tabTo(page, page.getByLabel('Jump to a time'))
  await page.keyboard.type('01012020')
  await page.keyboard.press('Tab')
  await page.keyboard.type('010101AM')
  await expect(page.getByLabel('Jump to a time')).toHaveValue('2020-01-01T01:01:01')
  await tabTo(page, page.getByRole('button', { name: 'Jump', exact: true }))
  await page.keyboard.press('Enter')
  await expect(page).toHaveURL(/[?&]at=0(&|$)/)
  await expect(log.locator('[data-hit]')).toHaveText('step 1')
  await tabTo(page, page.getByRole('button', { name: 'Follow' }))
  await page.keyboard.press('Enter')
  await expect(log).toContainText('all is said')
})

test('no page scrolls sideways or runs out of its lines in a window of 3840 pixels', async ({ page }) => {
  test.setTimeout(900_000)
  await signIn(page)
  await stageSet(page)
  await page.setViewportSize({ width: 3840, height: 2160 })
  const wrong: string[] = []
  for (const path of pagesOf('admin~resnet-49')) {
    await visit(page, path)
    const { wide, longest } = await page.evaluate(() => {
      const root = document.documentElement
      const texts = [...document.querySelectorAll('main p')].filter((one) => (one.textContent ?? '').length > 200)
      return { wide: root.scrollWidth - root.clientWidth, longest: Math.max(0, ...texts.map((one) => one.getBoundingClientRect().width / parseFloat(getComputedStyle(one).fontSize))) }
    })
    if (wide > 0) wrong.push(`${path}: wider than the window by ${wide}`)
    if (longest > 120) wrong.push(`${path}: a paragraph is ${Math.round(longest)} em wide`)
  }
  expect(wrong).toEqual([])
})

test('what has the focus does not stand below the bar at the top, however one comes to it', async ({ page }) => {
  await signIn(page)
  await page.setViewportSize({ width: 1280, height: 420 })
  await page.goto('/submit')
  await settled(page)
  await page.getByRole('main').getByRole('button').last().focus()
  const hidden: string[] = []
  let isScrolled = false
  for (let isInForm = true, pressed = 0; isInForm && pressed < 100; pressed++) {
    await page.keyboard.press('Shift+Tab')
    const focused = await page.evaluate(() => {
      const one = document.activeElement!
      const bar = document.querySelector('.bar')!.getBoundingClientRect()
      return { isInForm: !!one.closest('main'), name: one.outerHTML.slice(0, 80), isHidden: one.getBoundingClientRect().top < bar.bottom, isScrolled: window.scrollY > 0 }
    })
    isInForm = focused.isInForm
    isScrolled ||= focused.isScrolled
    if (isInForm && focused.isHidden && !focused.name.includes('cm-content')) hidden.push(focused.name) // the text beside is as high as the window
  }
  expect(isScrolled).toBe(true)
  expect(hidden).toEqual([])
})
