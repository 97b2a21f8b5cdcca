// Every dialog and menu: no barrier in any theme or at either width, it holds the focus, Escape closes it, and the focus goes back.
import type { Page } from '@playwright/test'
import { axePath, barriers, expect, signIn, test, VIEWS } from './portal'
import { settled, stageSet } from './stage'

const press = (name: string) => async (page: Page) => page.getByRole('button', { name, exact: true }).click()
const more = (name: string) => async (page: Page) => {
  await press('More actions')(page)
  await press(name)(page)
}
const selected = (job: string, name: string) => async (page: Page) => {
  await page.getByLabel(`Select ${job}`).check()
  await press(name)(page)
}

const DIALOGS: [string, (page: Page) => Promise<void>][] = [
  ['/', press('Help and keys')],
  ['/profile', press('Change the password …')],
  ['/profile', press('Add a key …')],
  ['/profile', press('New token …')],
  ['/profile', async (page) => page.getByRole('button', { name: /^Revoke the token/ }).first().click()],
  ['/admin', press('New user')],
  ['/admin', press('Users from a file')],
  ['/admin', press('Change ann')],
  ['/admin', press('Quotas of ann')],
  ['/admin', selected('ann', 'Remove')],
  ['/admin', selected('ann', 'Change the selected')],
  ['/cluster?tab=nodes', async (page) => page.getByRole('button', { name: /^Cordon or drain / }).first().click()],
  ['/admin?tab=groups', press('New group')],
  ['/admin?tab=groups', press('Change lab')],
  ['/admin?tab=groups', press('Members of lab')],
  ['/admin?tab=groups', press('Quotas of lab')],
  ['/admin?tab=groups', press('Remove lab')],
  ['/jobs?keyword=resnet', selected('admin~resnet-50', 'Stop')],
  ['/jobs?keyword=resnet', selected('admin~resnet-49', 'Archive')],
  ['/jobs?keyword=resnet', selected('admin~resnet-49', 'Delete')],
  ['/jobs/admin~resnet-50', press('Stop')],
  ['/jobs/admin~resnet-50', more('Open a port …')],
  ['/jobs/admin~resnet-50', more('Put a tag …')],
  ['/jobs/admin~resnet-50', more('Change the number of tasks …')],
  ['/jobs/admin~resnet-49', more('Delete …')],
  [
    '/submit',
    async (page) => {
      await press('Templates')(page)
      await press('Keep this job as a template …')(page)
    },
  ],
  ['/templates?item=admin~resnet', press('Change')],
  ['/templates?item=admin~resnet', press('Remove')],
  ['/templates?item=admin~resnet', press('Reject …')],
]

/** Each theme once, and the narrow window: what a dialog is made of is the same in all of them. */
const FEW = [VIEWS[0], VIEWS[3], VIEWS[4]]

const MENUS: [string, string][] = [
  ['/', 'Account of admin'],
  ['/jobs', 'More filters'],
  ['/jobs', 'Columns'],
  ['/jobs/admin~resnet-50', 'More actions'],
  ['/submit', 'Templates'],
]

test.beforeEach(async ({ page }) => {
  await page.addInitScript({ path: axePath })
  await signIn(page)
  await stageSet(page)
})

test('no dialog has a barrier, and each closes with Escape', async ({ page }) => {
  test.setTimeout(900_000)
  const wrong: string[] = []
  for (const [path, open] of DIALOGS) {
    await page.setViewportSize({ width: 1280, height: 800 })
    await page.goto(path)
    await settled(page)
    await open(page)
    const dialog = page.getByRole('dialog')
    await expect(dialog).toBeVisible()
    await expect(dialog.getByText('Loading …')).toHaveCount(0)
    const title = `${path} ${await dialog.getByRole('heading').first().innerText()}`
    for (const one of await barriers(page, FEW)) wrong.push(`${title}: ${one}`)
    if (!(await dialog.evaluate((element) => element.contains(document.activeElement)))) wrong.push(`${title}: does not have the focus`)
    await page.keyboard.press('Escape')
    await expect(dialog).toBeHidden()
  }
  expect(wrong).toEqual([])
})

test('no menu has a barrier, and Escape gives the focus back to its button', async ({ page }) => {
  test.setTimeout(900_000)
  const wrong: string[] = []
  for (const [path, name] of MENUS) {
    await page.setViewportSize({ width: 1280, height: 800 })
    await page.goto(path)
    await settled(page)
    const button = page.getByRole('button', { name, exact: true })
    await button.click()
    await expect(button).toHaveAttribute('aria-expanded', 'true')
    await page.keyboard.press('Escape')
    await expect(button).toHaveAttribute('aria-expanded', 'false')
    await expect(button).toBeFocused()
    await button.click()
    for (const one of await barriers(page, FEW)) wrong.push(`${path} ${name}: ${one}`)
  }
  expect(wrong).toEqual([])
})
