// A page that a task serves: opened from its job, by keyboard, in a tab of its own, from which nothing of the portal can be reached.
import { axePath, barriers, expect, IMAGE, jobFile, picture, roomMake, signIn, submit, tabTo, test } from './portal'

const PAGE = '<!doctype html><html lang="en"><title>Notebook</title><h1>Served by a task</h1>'

/** A command that serves it at the port of this variable. httpd listens before it goes on in the background. */
const serve = (port: string) =>
  `mkdir /tmp/www; echo '${PAGE}' > /tmp/www/lab.html; httpd -p 127.0.0.1:$${port} -h /tmp/www; echo serving; exec sleep 100000`

test('a page of a task opens in a tab of its own, and reaches nothing of the portal', async ({ page, context }) => {
  await page.addInitScript({ path: axePath })
  await signIn(page)
  await roomMake(page)
  await submit(page, jobFile('notebook', [serve('PAI_CURRENT_CONTAINER_PORT')]).replace('gpu: 0}', 'gpu: 0, ports: {tensorboard: 1}}'))
  await page.goto('/jobs/admin~notebook?tab=logs')
  await expect(page.getByRole('log')).toContainText('serving')
  await tabTo(page, page.getByRole('button', { name: 'More actions' }))
  await page.keyboard.press('Enter')
  await tabTo(page, page.getByRole('button', { name: 'Open a port …' }))
  await page.keyboard.press('Enter')
  const dialog = page.getByRole('dialog', { name: 'Open a port' })
  await expect(dialog.getByLabel('Port').getByRole('option').first()).toHaveText(/^TensorBoard · \d+$/)
  await dialog.getByLabel('Port').selectOption({ label: (await dialog.getByLabel('Port').getByRole('option', { name: /^http/ }).innerText()).trim() })
  expect(await barriers(page)).toEqual([])
  await page.setViewportSize({ width: 1280, height: 800 })
  await page.emulateMedia({ colorScheme: 'light' })
  await picture(page, 'port')
  await tabTo(page, dialog.getByLabel('Path'))
  await page.keyboard.type('/lab.html')
  const opened = context.waitForEvent('page')
  await page.keyboard.press('Enter')
  const tab = await opened
  await expect(tab.getByRole('heading', { name: 'Served by a task' })).toBeVisible()
  expect(new URL(tab.url()).pathname).toBe('/lab.html')
  await expect(dialog).toHaveCount(0)

  // what a script of that page would find
  const portal = new URL(page.url()).origin
  expect(new URL(tab.url()).origin).not.toBe(portal)
  const found = await tab.evaluate(async (address) => {
    const read = async (path: string) => {
      try {
        return (await fetch(address + path, { credentials: 'include' })).status
      } catch {
        return 'refused'
      }
    }
    return { opener: window.opener as unknown, cookies: document.cookie, stored: sessionStorage.length + localStorage.length, jobs: await read('/api/v2/jobs'), page: await read('/') }
  }, portal)
  expect(found).toEqual({ opener: null, cookies: '', stored: 0, jobs: 'refused', page: 'refused' })
  await tab.close()
})

test('a notebook is begun by one press, and its port is the first that is offered', async ({ page, context }) => {
  await signIn(page, undefined, '/submit')
  await roomMake(page)
  await page.getByRole('button', { name: 'Templates' }).click()
  await page.getByRole('link', { name: 'A notebook (Jupyter)' }).click()
  await expect(page.getByRole('textbox', { name: 'Job file, YAML' })).toContainText('jupyter: 1')
  // no image of the tests has JupyterLab: something else listens where it would
  const job = page.getByRole('region', { name: 'Job', exact: true })
  const name = await job.getByLabel('Name', { exact: true }).inputValue()
  await job.getByLabel('Image', { exact: true }).fill(IMAGE)
  await page.getByLabel('CPUs').fill('1')
  await page.getByLabel('Memory, MB', { exact: true }).fill('64')
  await page.getByLabel('Commands, one a line').fill(serve('PAI_CONTAINER_HOST_jupyter_PORT_LIST'))
  await page.getByRole('button', { name: 'Submit', exact: true }).click()
  await expect(page.getByRole('main').locator('h1 + .state')).toHaveText('Running')
  expect(page.url()).toContain(`admin~${name}`)
  await page.getByRole('link', { name: 'Logs', exact: true }).click()
  await expect(page.getByRole('log')).toContainText('serving')
  await page.getByRole('button', { name: 'More actions' }).click()
  await page.getByRole('button', { name: 'Open a port …' }).click()
  const dialog = page.getByRole('dialog', { name: 'Open a port' })
  await expect(dialog.getByLabel('Port').getByRole('option').first()).toHaveText(/^Jupyter · \d+$/)
  await dialog.getByLabel('Path').fill('/lab.html')
  const opened = context.waitForEvent('page')
  await dialog.getByRole('button', { name: 'Open', exact: true }).click()
  await expect((await opened).getByRole('heading', { name: 'Served by a task' })).toBeVisible()
  await roomMake(page)
})
