// Ways by ssh: the job's commands and its key, and a key pair made in the browser.
import { execFileSync } from 'node:child_process'
import { chmodSync, copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, jobFile, picture, roomMake, signIn, submit, tabTo, test } from './portal'
import { ask } from './stage'

const SSH = `extras:
  com.microsoft.pai.runtimeplugin:
    - plugin: ssh
      parameters: {jobssh: true}
      failurePolicy: ignore
`

/** The public key of a file of a private one, by OpenSSH. */
function publicOf(path: string): string {
  chmodSync(path, 0o600)
  return execFileSync('ssh-keygen', ['-y', '-f', path], { encoding: 'utf8' }).trim()
}

test.beforeEach(async ({ context }) => context.grantPermissions(['clipboard-read', 'clipboard-write']))

test('a running task has the commands by which it is reached, and the key of its job is saved', async ({ page }) => {
  await signIn(page)
  await roomMake(page)
  const name = `reach-${Date.now()}`
  await submit(page, jobFile(name, ['sleep 100000'], SSH).replace('instances: 1', 'instances: 2'))
  await page.goto(`/jobs/admin~${name}`)
  const button = page.getByRole('button', { name: 'Reach main[1] by ssh' })
  await tabTo(page, button)
  await page.keyboard.press('Enter')
  const dialog = page.getByRole('dialog')
  await expect(dialog.getByLabel('Task', { exact: true }).locator('option:checked')).toHaveText('main[1]')
  const task = await page.evaluate(async (job) => {
    const { token } = JSON.parse(sessionStorage.getItem('skep.session') ?? '{}') as { token?: string }
    const reply = await fetch(`/api/v2/jobs/${job}/tasks?role=main&from=1&limit=1&fields=containerIp,containerPorts`, { headers: { Authorization: `Bearer ${token}` } })
    return ((await reply.json()) as { containerIp: string; containerPorts: { ssh: string } }[])[0]!
  }, `admin~${name}`)
  await expect(dialog).toContainText(`-p ${task.containerPorts.ssh} root@${task.containerIp}`)
  await dialog.getByLabel('User in the container').fill('ann')
  await dialog.getByRole('button', { name: 'Copy: With the key of the job' }).click()
  // the note of what was done is in the dialog: outside it nobody could reach it
  const toast = dialog.locator('.toast').filter({ hasText: 'Copied.' })
  await toast.hover() // under the pointer it stays
  expect(await page.evaluate(() => navigator.clipboard.readText())).toBe(
    `ssh -i ~/Downloads/admin-${name}.pem -o IdentitiesOnly=yes -o HostKeyAlias=admin~${name} -o StrictHostKeyChecking=accept-new -p ${task.containerPorts.ssh} ann@${task.containerIp}`,
  )
  await expect(dialog.getByRole('status').filter({ hasText: 'Copied.' })).toBeVisible()
  await tabTo(page, toast.getByRole('button', { name: 'Close' }))
  await page.keyboard.press('Enter')
  await expect(toast).toBeHidden()
  expect(await dialog.evaluate((element) => element.contains(document.activeElement))).toBe(true)
  const saved = page.waitForEvent('download')
  await dialog.getByRole('button', { name: 'Save the private key of the job' }).click()
  const file = await saved
  expect(file.suggestedFilename()).toBe(`admin-${name}.pem`)
  expect(publicOf(await file.path())).toMatch(/^ssh-ed25519 /)
  await picture(page, 'ssh')
  await page.keyboard.press('Escape')
  await expect(button).toBeFocused()
  await roomMake(page)
})

/** What a shell of a person with this home prints for a command of the dialog. ssh keeps what it learns there, too, and nothing from elsewhere counts. */
function inShell(home: string, command: string, more = '') {
  const line = command.replace(/^ssh /, `ssh -F none -o BatchMode=yes -o UserKnownHostsFile=${home}/known_hosts ${more}`)
  return execFileSync('sh', ['-c', `${line} 'echo in $SKEP_JOB_ID as $(id -un); hostname'`], { encoding: 'utf8', timeout: 60_000, env: { PATH: process.env['PATH'] ?? '', HOME: home } })
}

/** A home directory that is gone after the test. */
const testAtHome = test.extend<{ home: string }>({
  home: async ({}, use) => {
    const home = mkdtempSync(join(tmpdir(), 'skep-ssh-'))
    mkdirSync(join(home, 'Downloads'))
    await use(home)
    rmSync(home, { recursive: true })
  },
})

testAtHome('the commands of the dialog log in, by Debian’s ssh, with the key of the job and with one of one’s own', async ({ page, home }) => {
  const image = process.env['PORTAL_SSH_IMAGE']
  test.skip(!image, 'no ssh server for an image: tools/install-deps --test')
  await signIn(page)
  await roomMake(page)
  const own = join(home, 'own')
  execFileSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', own])
  await ask(page, 'PUT', '/api/v2/users/admin/extension', { extension: { sshKeys: [{ title: 'own', value: readFileSync(`${own}.pub`, 'utf8').trim() }] } })
  const name = `login-${Date.now()}`
  const serve = ['echo up', 'sleep 100000']
  await submit(page, jobFile(name, serve, SSH.replace('      failurePolicy: ignore\n', '')).replace(/uri: .*/, `uri: "${image}"`))
  await page.goto(`/jobs/admin~${name}?tab=logs`)
  await expect(page.getByRole('log')).toContainText('up') // the server stands before the commands
  await page.goto(`/jobs/admin~${name}`)
  await page.getByRole('button', { name: 'Reach main[0] by ssh' }).click()
  const dialog = page.getByRole('dialog')
  const saved = page.waitForEvent('download')
  await dialog.getByRole('button', { name: 'Save the private key of the job' }).click()
  const file = await saved
  copyFileSync(await file.path(), join(home, 'Downloads', file.suggestedFilename()))
  const copied = async (what: string) => {
    await dialog.getByRole('button', { name: `Copy: ${what}` }).click()
    return page.evaluate(() => navigator.clipboard.readText())
  }
  execFileSync('sh', ['-c', await copied('Once, as ssh takes no key that others may read')], { env: { PATH: process.env['PATH'] ?? '', HOME: home } })
  const byJob = await copied('With the key of the job')
  await expect(() => expect(inShell(home, byJob)).toMatch(/^in \S+ as root\n/)).toPass()
  expect(inShell(home, await copied('With a key of your own'), `-o IdentitiesOnly=yes -o IdentityFile=${own} `)).toBe(inShell(home, byJob))
  // the host is the job, whatever its address
  expect(readFileSync(join(home, 'known_hosts'), 'utf8')).toMatch(new RegExp(`^admin~${name} ssh-ed25519 `))
  // who has neither key is not let in
  execFileSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', join(home, 'stranger')])
  expect(() => inShell(home, byJob.replace(/-i \S+/, `-i ${join(home, 'stranger')}`))).toThrow(/Permission denied/)
  await page.keyboard.press('Escape')
  await ask(page, 'PUT', '/api/v2/users/admin/extension', { extension: { sshKeys: [] } })
  await roomMake(page)
})

test('a job without ssh says what its file lacks', async ({ page }) => {
  await signIn(page)
  await roomMake(page)
  const name = `closed-${Date.now()}`
  await submit(page, jobFile(name, ['sleep 100000']))
  await page.goto(`/jobs/admin~${name}`)
  await page.getByRole('button', { name: 'Reach main[0] by ssh' }).click()
  await expect(page.getByRole('dialog')).toContainText('This job has no ssh')
  await expect(page.getByRole('dialog')).toContainText('jobssh: true')
  await roomMake(page)
})

for (const kind of ['ed25519', 'rsa'] as const)
  test(`a key pair of the kind ${kind} is made by keyboard; its private half goes to a file alone`, async ({ page }) => {
    const sent: string[] = []
    page.on('request', (request) => sent.push(request.postData() ?? ''))
    await signIn(page, undefined, '/profile')
    await ask(page, 'PUT', '/api/v2/users/admin/extension', { extension: { sshKeys: [] } })
    await page.reload()
    const open = page.getByRole('button', { name: 'Make a key …' })
    await tabTo(page, open)
    await page.keyboard.press('Enter')
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel('Name').fill('laptop')
    await dialog.getByLabel('Kind').selectOption(kind)
    await dialog.getByRole('button', { name: 'Make the key' }).click()
    await expect(dialog.getByRole('button', { name: 'Add the public key' })).toBeDisabled()
    const saved = page.waitForEvent('download')
    await dialog.getByRole('button', { name: 'Save the private key' }).click()
    const file = await saved
    expect(file.suggestedFilename()).toBe('laptop')
    const path = await file.path()
    const shown = await dialog.getByLabel('Public key').innerText()
    expect(publicOf(path)).toBe(shown.trim())
    await dialog.getByRole('button', { name: 'Add the public key' }).click()
    await expect(dialog).toHaveCount(0)
    await expect(page.getByRole('region', { name: 'Keys for ssh' })).toContainText(shown.trim())
    const lines = readFileSync(path, 'utf8').split('\n').slice(1, -2)
    expect(sent.some((body) => body.includes('PRIVATE') || lines.some((line) => body.includes(line)))).toBe(false)
    await page.getByRole('button', { name: 'Remove the key laptop' }).click()
    await dialog.getByRole('button', { name: 'Remove' }).click()
    await expect(page.getByText('There is no key yet')).toBeVisible()
    await expect(page.getByText('The key laptop is removed.')).toBeVisible()
    await page.keyboard.press('u')
    await expect(page.getByRole('region', { name: 'Keys for ssh' })).toContainText(shown.trim())
    await ask(page, 'PUT', '/api/v2/users/admin/extension', { extension: { sshKeys: [] } })
  })
