// Every dialog and menu: no barrier in any theme or at either width, it holds the focus, Escape closes it, and the focus goes back.
import { dialogsOf, menusOf } from './dialogs'
import { axePath, barriers, expect, signIn, test, VIEWS } from './portal'
import { stageSet, visit } from './stage'

/** Each theme once, and the narrow window: what a dialog is made of is the same in all of them. */
const FEW = [VIEWS[0], VIEWS[3], VIEWS[4]]

test.beforeEach(async ({ page }) => {
  await page.addInitScript({ path: axePath })
  await signIn(page)
  await stageSet(page)
})

test('no dialog has a barrier, and each closes with Escape', async ({ page }) => {
  test.setTimeout(900_000)
  const wrong: string[] = []
  for (const [path, open] of dialogsOf('en')) {
    await page.setViewportSize({ width: 1280, height: 800 })
    await visit(page, path)
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

test('every dialog can be closed by touch', async ({ page }) => {
  test.setTimeout(900_000)
  const wrong: string[] = []
  for (const [path, open] of dialogsOf('en')) {
    await page.setViewportSize({ width: 1280, height: 800 })
    await visit(page, path)
    await open(page)
    const dialog = page.getByRole('dialog')
    await expect(dialog).toBeVisible()
    await page.setViewportSize({ width: 320, height: 640 })
    const close = dialog.getByRole('button', { name: 'Close the dialog', exact: true })
    const place = await close.boundingBox()
    if (!place || place.width < 24 || place.height < 24) wrong.push(`${path}: its close button is too small`)
    await close.click()
    await expect(dialog).toBeHidden()
  }
  expect(wrong).toEqual([])
})

test('no menu has a barrier, and Escape gives the focus back to its button', async ({ page }) => {
  test.setTimeout(900_000)
  const wrong: string[] = []
  for (const [path, name] of menusOf('en')) {
    await page.setViewportSize({ width: 1280, height: 800 })
    await visit(page, path)
    const button = page.getByRole('button', { name, exact: true })
    await button.click()
    await expect(button).toHaveAttribute('aria-expanded', 'true')
    await page.keyboard.press('Escape')
    await expect(button).toHaveAttribute('aria-expanded', 'false')
    await expect(button).toBeFocused()
    await button.click()
    for (const one of await barriers(page, FEW)) wrong.push(`${path} ${name}: ${one}`)
    await page.keyboard.press('Escape')
  }
  expect(wrong).toEqual([])
})
