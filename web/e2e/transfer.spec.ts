// A job is sent to another cluster: here the same server by another name, for which the browser keeps nothing of the first.
import { ADMIN, expect, jobFile, picture, roomMake, signIn, submit, tabTo, test } from './portal'
import { ask } from './stage'

const OTHER = (process.env['PORTAL_URL'] ?? 'http://127.0.0.1:9186').replace('127.0.0.1', 'localhost')

test('the file of a job is shown there before it becomes a new job, and the job here has the tag', async ({ page, context }) => {
  await signIn(page)
  await roomMake(page)
  await ask(page, 'PUT', '/api/v2/users/admin/extension', { extension: { boundedClusters: {} } })
  const name = `leaves-${Date.now()}`
  await submit(page, jobFile(name, ['sleep 100000'], 'parameters:\n  word: 训练 # kept\nsecrets:\n  key: never-leaves\n'))
  await page.goto(`/jobs/admin~${name}`)
  const open = async () => {
    await page.getByRole('button', { name: 'More actions' }).click()
    await page.getByRole('button', { name: 'Transfer to another cluster …' }).click()
  }
  const dialog = page.getByRole('dialog')
  await open()
  await dialog.getByRole('link', { name: 'Name one in your profile' }).click()
  await page.getByRole('button', { name: 'Add a cluster …' }).click()
  await dialog.getByLabel('Name').fill('west')
  await dialog.getByLabel('Address of its portal').fill('west.example')
  await dialog.getByRole('button', { name: 'Add', exact: true }).click()
  await expect(dialog).toContainText('This is no address')
  await dialog.getByLabel('Address of its portal').fill(`${OTHER}/`)
  await dialog.getByRole('button', { name: 'Add', exact: true }).click()
  await expect(page.getByRole('region', { name: 'Other clusters' })).toContainText(OTHER)

  await page.goto(`/job-transfer.html?userName=admin&jobName=${name}`) // where OpenPAI had it
  await expect(dialog).toContainText('Values of secrets do not go along')
  const opened = context.waitForEvent('page')
  await tabTo(page, dialog.getByRole('button', { name: 'Open it there' }))
  await page.keyboard.press('Enter')
  const other = await opened
  await other.getByLabel('User name').fill(ADMIN.name)
  await other.getByLabel('Password').fill(ADMIN.password)
  await other.getByRole('button', { name: 'Sign in', exact: true }).click()
  await expect(other).toHaveURL(`${OTHER}/transfer`) // without the file, which is in no address that one copies
  await expect(other.getByLabel('Job file')).toContainText(`name: ${name}`)
  await expect(other.getByLabel('Job file')).toContainText('训练 # kept')
  await expect(other.getByLabel('Job file')).not.toContainText('never-leaves')
  await expect(other.getByText(new URL(page.url()).origin)).toBeVisible()
  await picture(other, 'transfer')
  await other.getByRole('button', { name: 'Take it over into a new job' }).click()
  await expect(other).toHaveURL(`${OTHER}/submit`)
  await expect(other.getByRole('textbox', { name: 'Job file, YAML' })).toContainText('训练 # kept')
  await other.goto('/transfer')
  await expect(other.getByText('No job file came with this address')).toBeVisible()
  await other.close()

  await expect(page.getByText('whether it was submitted there is not known')).toBeVisible()
  await dialog.getByLabel('Stop it here').check()
  await dialog.getByRole('button', { name: 'Mark it as transferred' }).click()
  await expect(dialog).toHaveCount(0)
  await expect(page.getByText('Transferred to another cluster:')).toBeVisible()
  await expect(page.getByRole('link', { name: 'west' })).toHaveAttribute('href', OTHER)
  await expect(page.getByRole('list', { name: 'Tags' })).toContainText(`pai-transferred-to-west-url-${OTHER}`)
  await expect(page.getByRole('list', { name: 'Tags' })).not.toContainText('pai-transfer-attempt')
  await expect(page.getByRole('main').locator('h1 + .state')).toHaveText('Stopped')

  await page.goto('/profile')
  await page.getByRole('button', { name: 'Remove the cluster west' }).click()
  await expect(page.getByRole('region', { name: 'Other clusters' })).not.toContainText(OTHER)
  await page.keyboard.press('u')
  await expect(page.getByRole('region', { name: 'Other clusters' })).toContainText(OTHER)
  await ask(page, 'PUT', '/api/v2/users/admin/extension', { extension: { boundedClusters: {} } })
})
