// The map of cells without a mouse, and the cluster as one virtual cluster sees it. Only where there are racks and switches
// (tests/system/portal/test_portal_map.py).
import type { Page } from '@playwright/test'
import { axePath, barriers, expect, jobFile, running, signIn, submit, tabTo, test } from './portal'
import { ANN, ask, settled } from './stage'

const SMALL = 26 // one more than the legend shows at first, beside the large one

const file = (name: string, gpus: number, vc: string) => jobFile(name, ['sleep 100000'], `defaults: {virtualCluster: ${vc}}\n`).replace('gpu: 0', `gpu: ${gpus}`)
const focused = (page: Page) => page.evaluate(() => document.activeElement?.getAttribute('aria-label') ?? document.activeElement?.textContent ?? '')
const mapOf = (page: Page) => page.getByRole('grid', { name: 'Map of FAKE' })

test.describe('the map of cells', () => {
  test.skip(!process.env['PORTAL_MAP'], 'there are no racks')
  test.describe.configure({ mode: 'serial' })

  test('says who holds which GPU, and which is bad, by keyboard alone', async ({ page }) => {
    await page.addInitScript({ path: axePath })
    await signIn(page)
    await submit(page, file('large', 3, 'vision'))
    await running(page, 'admin~large')
    await page.goto('/cluster')
    await settled(page)
    const map = mapOf(page)
    await expect(map.getByRole('gridcell')).toHaveCount(64)
    await expect(map.getByRole('row').filter({ hasText: 'RACK north' })).toHaveCount(1)
    await expect(map.getByRole('rowheader').getByRole('link')).toHaveText(['fake0', 'fake1', 'fake2', 'fake9'])

    const colours = page.getByLabel('Colour by')
    await tabTo(page, colours)
    for (let i = 0; i < 20 && !(await map.evaluate((grid) => grid.contains(document.activeElement))); i++) await page.keyboard.press('Tab')
    expect(await focused(page)).toMatch(/^fake0: /) // the one stop of Tab in it
    await page.keyboard.press('Tab')
    expect(await map.evaluate((grid) => grid.contains(document.activeElement))).toBe(false)
    await page.keyboard.press('Shift+Tab')

    await page.keyboard.press('ArrowRight')
    expect(await focused(page)).toMatch(/^fake0 0 · /)
    await page.keyboard.press('End')
    expect(await focused(page)).toMatch(/^fake0 15 · .*SOCKET 1 › SWITCH 3$/)
    await page.keyboard.press('ArrowRight')
    expect(await focused(page)).toMatch(/^fake1: /)
    await page.keyboard.press('Home')
    expect(await focused(page)).toMatch(/^fake1: /)
    await page.keyboard.press('Control+End')
    expect(await focused(page)).toMatch(/^fake9 15 · bad/)
    await expect(page.getByText(/^fake9 15 · bad/)).toBeVisible() // for who sees it, too
    await page.keyboard.press('ArrowRight') // nothing is behind it
    expect(await focused(page)).toMatch(/^fake9 15 · bad/)

    // whichever way one goes up, one comes back down
    await page.keyboard.press('Control+Home')
    await page.keyboard.press('ArrowDown')
    expect(await focused(page)).toMatch(/^fake0 \d+ · /)
    await page.keyboard.press('ArrowUp')
    expect(await focused(page)).toMatch(/^fake0: /)
    for (let i = 0; i < 40 && !(await focused(page)).startsWith('fake2'); i++) await page.keyboard.press('ArrowDown')
    expect(await focused(page)).toMatch(/^fake2: /) // of the rack below

    const held = await map.getByTitle(/ · admin~large · /).first().getAttribute('data-step')
    await page.keyboard.press('Control+Home')
    for (let i = 0; i < 80 && (await page.evaluate(() => document.activeElement?.getAttribute('data-step'))) !== held; i++) await page.keyboard.press('ArrowRight')
    expect(await focused(page)).toMatch(/^fake\d \d+ · admin~large · virtual cluster vision · SOCKET \d › SWITCH \d$/)
    await page.keyboard.press('Enter')
    await expect(page).toHaveURL(/\/jobs\/admin~large$/)
    await page.goBack()
    await expect(map.getByRole('gridcell')).toHaveCount(64)
    await tabTo(page, map.getByRole('rowheader').getByRole('link').first())
    await page.keyboard.press('Control+End')
    await page.keyboard.press('Enter') // nobody holds it: its node
    await expect(page).toHaveURL(/\/cluster\?tab=nodes&node=fake9$/)

    await page.goto('/cluster')
    await settled(page)
    expect(await barriers(page)).toEqual([])
  })

  test('shows what stands together, with room for each target', async ({ page }) => {
    await signIn(page)
    await page.goto('/cluster')
    await settled(page)
    const boxes = await mapOf(page).locator('.leaf[data-step^="north/fake0/"]').evaluateAll((leaves) => leaves.map((leaf) => leaf.getBoundingClientRect().toJSON() as DOMRect))
    expect(boxes).toHaveLength(16)
    const near = boxes.flatMap((a, i) => boxes.slice(i + 1).map((b) => Math.hypot(a.x - b.x, a.y - b.y)))
    expect(Math.min(...near)).toBeGreaterThanOrEqual(24)
    const groups = mapOf(page).locator('.node-box').first().locator(':scope > .leaf-group > .leaf-group')
    await expect(groups).toHaveCount(2)
    await expect(groups.first().locator(':scope > .leaf-group')).toHaveCount(2)
  })

  test('tells what is mine, and what is free for me', async ({ page, browser }) => {
    await signIn(page)
    expect(await ask(page, 'POST', '/api/v2/users', { username: ANN.name, password: ANN.password, email: 'ann@example.org', virtualCluster: ['vision'] })).toBe(201)
    const context = await browser.newContext()
    const other = await context.newPage()
    await signIn(other, ANN, '/cluster')
    const shares = other.getByRole('list', { name: 'Virtual clusters: FAKE' })
    const vision = shares.getByRole('listitem').filter({ hasText: 'vision' })
    await expect(vision).toContainText('yours')
    await expect(vision).toContainText('3 of 16 used')
    await expect(vision).toContainText('0 used opportunistically')
    await expect(shares.getByRole('listitem').filter({ hasText: 'default' })).toContainText('0 of 32 used')
    await expect(other.getByText(/^Free for you: \d+ with a guarantee; 45 of the whole cluster for opportunistic jobs\.$/)).toBeVisible()
    await context.close()
  })

  test('names all jobs in its legend', async ({ page }) => {
    await signIn(page)
    for (let i = 0; i < SMALL; i++) await submit(page, file(`small-${i}`, 1, 'default'))
    for (let i = 0; i < SMALL; i++) await running(page, `admin~small-${i}`)
    await page.goto('/cluster')
    const legend = page.getByRole('list', { name: 'Colours of the map' })
    const jobs = legend.getByRole('button', { name: /^admin~/ })
    await expect(jobs).toHaveCount(24)
    await legend.getByRole('button', { name: 'and 3 more' }).click()
    await expect(jobs).toHaveCount(SMALL + 1)
    await jobs.last().click()
    await expect(page).toHaveURL(/mark=/)
    await legend.getByRole('button', { name: 'Fewer' }).click()
    await expect(jobs).toHaveCount(25) // the one that stands out stays
  })

  test('is filtered by a virtual cluster, as all views of the cluster are, until the filter is cleared', async ({ page }) => {
    await page.addInitScript({ path: axePath })
    await signIn(page)
    await submit(page, file('waits', 17, 'vision')) // no node has so many
    await submit(page, file('waits-too', 17, 'default'))
    await page.goto('/jobs/admin~large')
    await page.getByRole('link', { name: 'vision', exact: true }).click()
    await expect(page).toHaveURL(/\/cluster\?vc=vision$/)
    const choice = page.getByLabel('Virtual cluster', { exact: true })
    await expect(choice).toHaveValue('vision')
    const map = mapOf(page)
    await expect(map.getByRole('rowheader').getByRole('link')).toHaveCount(1) // the node where its job is
    await expect(map.locator('.leaf[data-used]:not([data-dim])')).toHaveCount(3)
    await expect(page.getByText('1 of 4 nodes have cells of vision')).toBeVisible()
    await expect(page.getByRole('list', { name: 'Virtual clusters: FAKE' }).getByRole('listitem')).toHaveCount(1)
    await expect(page.getByRole('list', { name: 'Colours of the map' }).getByRole('button', { name: /^admin~/ })).toHaveText(['admin~large · 3'])
    expect(await barriers(page)).toEqual([])

    const tabs = page.getByRole('navigation', { name: 'Views of the cluster' })
    await tabs.getByRole('link', { name: 'Queue' }).click()
    await expect(page).toHaveURL(/vc=vision/)
    await expect(choice).toHaveValue('vision')
    await expect(page.getByRole('rowheader')).toHaveText(['admin~waits'])
    await tabs.getByRole('link', { name: 'Virtual clusters' }).click()
    await expect(page.getByRole('region', { name: 'vision', exact: true })).toBeVisible()
    await expect(page.getByRole('region', { name: 'default', exact: true })).toHaveCount(0)
    await tabs.getByRole('link', { name: 'Nodes' }).click()
    await expect(page.getByRole('rowheader').getByRole('link')).toHaveCount(1)
    await choice.selectOption('default')
    await expect(page).toHaveURL(/vc=default/)
    await page.getByRole('button', { name: 'Clear filters' }).click()
    await expect(page).toHaveURL(/\/cluster\?tab=nodes$/)
    await expect(choice).toHaveValue('')
    await expect(page.getByRole('rowheader').getByRole('link')).toHaveCount(3)
  })

  test('leads from a long queue to all jobs of the same virtual cluster that wait', async ({ page }) => {
    await signIn(page)
    for (let i = 0; i < 40; i++) await submit(page, file(`queued-${i}`, 17, 'vision'))
    await page.goto('/cluster?tab=queue&vc=vision')
    await page.getByRole('link', { name: 'All 41 jobs that wait' }).click()
    await expect(page).toHaveURL(/\/jobs\?state=WAITING&order=submissionTime,ASC&vc=vision/)
  })
})
