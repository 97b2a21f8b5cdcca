// GPUs that are sampled: what a job holds beside what works, now and over time. Only where the test has such GPUs
// (tests/system/portal/test_portal_gpus.py).
import { renameSync, writeFileSync } from 'node:fs'
import type { Locator, Page } from '@playwright/test'
import { axePath, barriers, expect, jobFile, picture, signIn, submit, test } from './portal'

const STATE = process.env['PORTAL_GPUS'] ?? ''
const JOB = 'admin~trains'

/** How the GPUs are from now on: whoever reads sees all of it. */
function gpusSay(lines: string[]) {
  writeFileSync(`${STATE}~`, lines.map((line) => `${line}\n`).join(''))
  renameSync(`${STATE}~`, STATE)
}

async function gpusOf(page: Page, job: string): Promise<number[]> {
  return page.evaluate(async (name) => {
    const { token } = JSON.parse(sessionStorage.getItem('skep.session') ?? '{}') as { token?: string }
    const reply = await fetch(`/api/v2/jobs/${name}`, { headers: { Authorization: `Bearer ${token}` } })
    const detail = (await reply.json()) as { jobStatus?: { state: string }; taskRoles?: Record<string, { taskStatuses: { gpus?: number[] }[] }> }
    if (detail.jobStatus?.state !== 'RUNNING') return []
    return Object.values(detail.taskRoles ?? {}).flatMap((role) => role.taskStatuses.flatMap((task) => task.gpus ?? []))
  }, job)
}

const meter = (within: Locator, label: string) => within.locator('.meter').filter({ has: within.page().getByText(label, { exact: true }) })

test.describe('GPUs that are sampled', () => {
  test.skip(!STATE, 'there are none')
  test.describe.configure({ mode: 'serial' })

  test('every page says what is allocated, and what of it is busy', async ({ page }) => {
    await page.addInitScript({ path: axePath })
    await signIn(page)
    await submit(page, jobFile('trains', ['sleep 100000']).replace('gpu: 0', 'gpu: 2'))
    let held: number[] = []
    await expect.poll(async () => (held = await gpusOf(page, JOB)).length).toBe(2)
    // one works, one idles; a third, which no job holds, is busy with something that the platform has not started
    const other = [0, 1, 2, 3].find((gpu) => !held.includes(gpu))!
    gpusSay([`gpu ${held[0]} busy 90`, `gpu ${held[0]} used 12288`, `gpu ${held[0]} power 250000`, `gpu ${held[1]} power 40000`, `gpu ${other} busy 30`])

    await page.goto('/')
    const free = page.getByRole('region', { name: 'Free GPUs' })
    await expect(meter(free, 'Allocated')).toContainText('2 / 4')
    await expect(meter(free, 'Busy now')).toContainText('1.2 of 4')
    await expect(meter(page.getByRole('region', { name: 'Virtual clusters' }), 'Busy, of the GPUs its jobs hold')).toContainText('0.9 of 2')
    expect(await barriers(page)).toEqual([])

    await page.setViewportSize({ width: 1280, height: 800 })
    await page.goto('/cluster?by=use')
    await expect(page.getByRole('row', { name: 'gpu-node: 2 of 4 in use' })).toBeVisible()
    const map = page.getByRole('region', { name: 'Test-V100-16GB' })
    await expect(map.getByRole('button', { name: /^below 10 %/ })).toContainText('· 1')
    await expect(map.getByRole('button', { name: /^70 % and more/ })).toContainText('· 1')
    await expect(map.getByTitle(`gpu-node ${held[0]} · ${JOB} · 90 % busy`)).toBeVisible()
    await expect(map.getByTitle(`gpu-node ${held[1]} · ${JOB} · 0 % busy`)).toBeVisible()
    await expect(map.getByTitle(`gpu-node ${other} · free · 30 % busy`)).toBeVisible()
    // what works without a job is told by a sign in its cell and by a sentence, in every colouring
    for (const by of ['use', 'job', 'health']) {
      await page.getByLabel('Colour by').selectOption(by)
      await expect(map.locator('.leaf[data-stray]')).toHaveCount(2) // the cell, and the sign of the sentence
      await expect(map.getByText(`1 GPU is busy without a job: gpu-node ${other}`)).toBeVisible()
    }
    await expect(map.getByRole('row', { name: /^gpu-node: .*1 busy without a job/ })).toBeVisible()
    await expect(map.getByRole('list', { name: 'Health of the nodes' })).toHaveText('Ready · 1')
    await page.getByLabel('Colour by').selectOption('use')
    await expect(page.getByRole('region', { name: /^CPU/ }).getByRole('row', { name: /^gpu-node: 0 of \d+ in use$/ })).toBeVisible() // the cells of processors have no GPU
    await picture(page, 'map-use')
    expect(await barriers(page)).toEqual([])

    await page.goto('/cluster?tab=nodes')
    const row = page.getByRole('row').filter({ hasText: 'gpu-node' })
    await expect(meter(row, 'Test-V100-16GB')).toContainText('2 / 4')
    await expect(row).toContainText('30 %') // 90, 0, 30 and 0
    await expect(row.getByRole('link', { name: JOB })).toBeVisible()
    // what the machine uses now: a rate is known from the second sample on
    await expect(row).toContainText(/[KMG]?i?B\/s \/ /)
    await page.getByRole('columnheader', { name: 'RAM in use' }).getByRole('button').click()
    await expect(page).toHaveURL(/order=taken/)
    await expect(page.getByRole('columnheader', { name: 'CPU load' })).toBeVisible()
    expect(await barriers(page)).toEqual([])

    await page.goto('/cluster?tab=quotas')
    await expect(meter(page.getByRole('region', { name: 'default', exact: true }), 'Busy, of the GPUs its jobs hold')).toContainText('0.9 of 2')
  })

  // how much a GPU was busy is summed up from sample to sample: what falls into ten seconds is nearly, and seldom exactly, what it was told
  const CHARTS: [string, RegExp, RegExp][] = [
    ['GPUs that were busy', /(0\.[6-9]\d*|1|1\.[0-2]\d*) at most, of 2/, /: (0\.[6-9]\d*|1|1\.[0-2]\d*)$/],
    ['GPU memory', /12\.0 GiB at most/, /: 12\.0 GiB$/],
    ['Power of the GPUs', /290 W at most/, /: 290 W$/],
  ]

  async function chartsTell(page: Page) {
    for (const [title, most, last] of CHARTS) {
      const chart = page.getByRole('slider', { name: title, exact: true })
      await expect(chart).toHaveAttribute('aria-valuetext', most)
      await chart.focus()
      await page.keyboard.press('End')
      await expect(chart).toHaveAttribute('aria-valuetext', last)
      await chart.blur()
    }
  }

  test('charts of a running job show busy GPUs, their memory and their power', async ({ page }) => {
    await page.addInitScript({ path: axePath })
    await signIn(page)
    await page.goto(`/jobs/${JOB}`)
    await expect(page.getByText(/^(0\.[6-9]|1|1\.[0-2]) of 2$/)).toBeVisible() // after its first samples; the page asks again by itself
    await page.goto(`/jobs/${JOB}?tab=use`)
    await chartsTell(page)
    await page.evaluate(() => scrollTo(0, 0))
    await picture(page, 'use-gpus')
    expect(await barriers(page)).toEqual([])
    await page.goto('/cluster?tab=nodes&node=gpu-node')
    const machine = page.getByRole('slider', { name: 'GPUs that were busy' })
    await machine.focus()
    await page.keyboard.press('End')
    await expect(machine).toHaveAttribute('aria-valuetext', /: (0\.[89]\d*|1|1\.[0-5]\d*)$/) // of the machine, what no job holds counts as well
  })

  test('the charts outlive the job', async ({ page }) => {
    await signIn(page)
    await page.goto(`/jobs/${JOB}`)
    await page.getByRole('button', { name: 'Stop', exact: true }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Stop' }).click()
    await expect(page.locator('.state').first()).toHaveText('Stopped')
    await expect(page.getByText('Busy now')).toHaveCount(0)
    gpusSay([])
    await page.goto(`/jobs/${JOB}?tab=use`)
    await chartsTell(page)
    await page.goto('/')
    await expect(meter(page.getByRole('region', { name: 'Free GPUs' }), 'Allocated')).toContainText('0 / 4')
    await expect(meter(page.getByRole('region', { name: 'Free GPUs' }), 'Busy now')).toContainText('0 of 4')
  })
})
