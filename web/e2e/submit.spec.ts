// The form of a new job and its text are one: what is chosen by keyboard stands in the text, comments stay, and nothing is left of what is taken back.
import { ADMIN, axePath, barriers, expect, jobFile, signIn, tabTo, test, type } from './portal'
import type { Page } from '@playwright/test'

const FILE = `${jobFile('formed', ['echo one'])}# the end\n`
const editorOf = (page: Page) => page.getByRole('textbox', { name: 'Job file, YAML' })

async function fileOpen(page: Page) {
  await page.addInitScript({ path: axePath })
  await signIn(page, ADMIN, '/submit')
  await editorOf(page).click()
  await page.keyboard.press('Control+A')
  await page.keyboard.press('Delete')
  await page.keyboard.insertText(FILE)
  await page.getByRole('heading', { name: 'Submit a job' }).click() // out of the editor, where Tab would be a text
}

async function accepted(page: Page) {
  await page.getByRole('button', { name: 'Try' }).click()
  await expect(page.getByText(/^It would (start now|wait)$/)).toBeVisible()
}

test('storages say what they are and where they are mounted', async ({ page }) => {
  await fileOpen(page)
  const storages = page.getByRole('region', { name: 'Storages' })
  const home = storages.getByRole('checkbox', { name: 'home' })
  await expect(home).toHaveAccessibleDescription('nfs files.example.org:/export/home the folder of its user read and write')
  await expect(storages.getByRole('checkbox', { name: 'datasets' })).toHaveAccessibleDescription(/all of it read only$/)
  await tabTo(page, home)
  await page.keyboard.press('Space')
  await expect(editorOf(page)).toContainText('mountPath: /mnt/home')
  await type(page, storages.getByLabel('home is mounted at'), '/home/me')
  await expect(editorOf(page)).toContainText('mountPath: /home/me')
  await expect(editorOf(page)).toContainText('# the end')
  expect(await barriers(page)).toEqual([])
  await page.setViewportSize({ width: 1280, height: 800 })
  await accepted(page)
  await home.uncheck()
  await expect(editorOf(page)).not.toContainText('extras')
})

test('ssh and TensorBoard are switched on with what they take, and off without a trace', async ({ page }) => {
  await fileOpen(page)
  const tools = page.getByRole('region', { name: 'Tools' })
  await tabTo(page, tools.getByRole('checkbox', { name: 'ssh to the tasks' }))
  await page.keyboard.press('Space')
  await expect(editorOf(page)).toContainText('jobssh: true')
  await tools.getByLabel('Begin when all tasks answer by ssh').check()
  await tools.getByLabel('Wait for them at most, minutes').fill('5')
  await expect(editorOf(page)).toContainText('sshbarrierTimeout: 5')
  await tools.getByLabel('A further public key to let in').fill('ssh-ed25519 AAAA me')
  await expect(editorOf(page)).toContainText('value: ssh-ed25519 AAAA me')
  await tabTo(page, tools.getByRole('checkbox', { name: 'TensorBoard', exact: true }))
  await page.keyboard.press('Space')
  await expect(tools.getByLabel('Port of TensorBoard')).toHaveValue(/^1[0-4]\d{3}$/)
  await tools.getByLabel('Folder of the logs').fill('/mnt/home/logs')
  await expect(editorOf(page)).toContainText('path: /mnt/home/logs')
  expect(await barriers(page)).toEqual([])
  await page.setViewportSize({ width: 1280, height: 800 })
  await accepted(page)
  await tools.getByRole('checkbox', { name: 'TensorBoard', exact: true }).uncheck()
  await tools.getByRole('checkbox', { name: 'ssh to the tasks' }).uncheck()
  await expect(editorOf(page)).not.toContainText('extras')
  await expect(editorOf(page)).toContainText('# the end')
})

test('variables of a role are lines at the head of its commands', async ({ page }) => {
  await fileOpen(page)
  const role = page.getByRole('region', { name: 'Role main' })
  await tabTo(page, role.getByText('Environment variables'))
  await page.keyboard.press('Enter')
  await tabTo(page, role.getByRole('button', { name: 'Add a variable' }))
  await page.keyboard.press('Enter')
  await expect(role.getByLabel('Commands, one a line')).toHaveValue('export NAME=\necho one')
  const name = role.getByLabel('Variable', { exact: true })
  await name.fill('1A')
  await name.press('Enter')
  await expect(name).toHaveAccessibleDescription('Letters, digits and _, and no digit first.')
  await name.fill('OUT')
  await name.press('Enter')
  await role.getByLabel('Value of OUT').fill('/mnt/home/$PAI_USER_NAME a')
  await expect(role.getByLabel('Commands, one a line')).toHaveValue('export OUT="/mnt/home/$PAI_USER_NAME a"\necho one')
  await page.getByText('What the platform tells tasks').click()
  await expect(page.getByText('PAI_HOST_IP_ROLE_i')).toBeVisible()
  await page.evaluate(() => window.scrollTo(0, 0)) // nothing stands half below the bar on top
  expect(await barriers(page)).toEqual([])
  await page.setViewportSize({ width: 1280, height: 800 })
  await accepted(page)
  // written in the commands, it stands in the table
  await role.getByLabel('Commands, one a line').fill('export RATE=0.1\necho two')
  await expect(role.getByLabel('Value of RATE')).toHaveValue('0.1')
  await role.getByRole('button', { name: 'Remove RATE' }).click()
  await expect(role.getByLabel('Commands, one a line')).toHaveValue('echo two')
})

test('a prepared image is chosen by its name', async ({ page }) => {
  await fileOpen(page)
  const image = page.getByLabel('Prepared image')
  await expect(image.getByRole('option')).toHaveText(['another, as below', 'Small', 'PyTorch 2.4'])
  await tabTo(page, image)
  await page.keyboard.press('P')
  await expect(image).toHaveAccessibleDescription('Python 3.11, CUDA 12.4')
  await expect(page.getByLabel('Image', { exact: true })).toHaveValue('example.org/pytorch:2.4')
  await expect(editorOf(page)).toContainText('uri: "example.org/pytorch:2.4"')
  expect(await barriers(page)).toEqual([])
  await page.setViewportSize({ width: 1280, height: 800 })
  await page.getByLabel('Image', { exact: true }).fill('example.org/mine')
  await expect(image).toHaveValue('')
})
