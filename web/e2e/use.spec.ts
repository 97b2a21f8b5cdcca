// What was used over time: of a job that works, and of the machine.
import { expect, jobFile, roomMake, signIn, submit, test } from './portal'
import { fetched } from './stage'

test('charts tell what a job and a machine used', async ({ page }) => {
  await signIn(page)
  await roomMake(page)
  await submit(page, jobFile('busy', ['while :; do :; done']))
  await page.goto('/jobs/admin~busy?tab=use')
  const processors = page.getByRole('slider', { name: 'Processors' })
  await expect(processors).toBeVisible() // two samples, ten seconds apart
  await expect(page.getByText(/Sum of 1 of 1 tasks/)).toBeVisible()
  await expect(page.getByText(/^skep use .*busy/)).toBeVisible()
  await processors.focus()
  await expect(async () => {
    await page.keyboard.press('End') // of the first point it may have worked for a moment only
    // of the others all the time, however little a machine that others use leaves it
    await expect(processors).toHaveAttribute('aria-valuetext', /: (0\.0*[1-9]|[1-9])/, { timeout: 500 })
  }).toPass()
  await page.getByLabel('Time shown').selectOption('recent')
  await expect(processors).toBeVisible()
  await page.getByLabel('Task role').selectOption('main')
  await expect(page).toHaveURL(/role=main/)
  await expect(processors).toBeVisible()
  if (process.env['PORTAL_PICTURES']) await page.screenshot({ path: `${process.env['PORTAL_PICTURES']}/use.png` })
  await page.goto('/cluster?tab=nodes')
  await page.getByRole('rowheader').getByRole('link').first().click()
  await expect(page).toHaveURL(/node=/)
  await expect(page.getByRole('slider', { name: 'Memory' })).toBeVisible()
  if (process.env['PORTAL_PICTURES']) await page.screenshot({ path: `${process.env['PORTAL_PICTURES']}/use-node.png` })
  // a machine whose engine tells neither, as a cluster without metrics-server
  const unknown = page.getByText(/Of its processors and memory nothing is known/)
  await expect(unknown).toHaveCount(0)
  await page.route('**/api/v2/nodes/*/use?*', async (route) => {
    const reply = await fetched(route)
    const said = (await reply.json()) as { use: { cpu?: unknown; memory?: unknown } }
    delete said.use.cpu
    delete said.use.memory
    await route.fulfill({ json: said })
  })
  await page.reload()
  await expect(unknown).toBeVisible()
  await expect(page.getByRole('slider', { name: 'Memory' })).toHaveCount(0)
})
