// Nothing that one reads moves because something else has come: the layout shift of each page while it opens, as the browser measures
// it (https://web.dev/articles/cls), at both widths.
import type { Page } from '@playwright/test'
import { expect, signIn, test } from './portal'
import { fetched, pagesOf, settled, stageSet } from './stage'

const SHIFT_MAX = 0.05 // half of what counts as good

interface Shift {
  at: number
  value: number
  sources: string[]
}

/** Keep all shifts of the page that follow no input, each with what moved from where to where. */
async function shiftsKeep(page: Page) {
  await page.addInitScript(() => {
    interface Source {
      node: Node | null
      previousRect: DOMRectReadOnly
      currentRect: DOMRectReadOnly
    }
    const shifts: Shift[] = []
    Object.assign(globalThis, { shifts })
    const nameOf = (node: Node | null) => {
      const element = node instanceof Element ? node : node?.parentElement
      return element ? `${element.tagName.toLowerCase()}.${element.className} “${element.textContent.slice(0, 30)}”` : 'what is gone'
    }
    const box = (rect: DOMRectReadOnly) => [rect.x, rect.y, rect.width, rect.height].map(Math.round).join(' ')
    new PerformanceObserver((list) => {
      for (const entry of list.getEntries() as (PerformanceEntry & { value: number; hadRecentInput: boolean; sources: Source[] })[])
        if (!entry.hadRecentInput)
          shifts.push({ at: entry.startTime, value: entry.value, sources: entry.sources.map((one) => `${nameOf(one.node)} ${box(one.previousRect)} → ${box(one.currentRect)}`) })
    }).observe({ type: 'layout-shift', buffered: true })
  })
}

/** The worst window of at most five seconds, in which no shift is a second later than the one before. */
function worstOf(shifts: Shift[]): { sum: number; shifts: Shift[] } {
  const windows: Shift[][] = []
  for (const shift of shifts) {
    const last = windows.at(-1)
    if (last && shift.at - last.at(-1)!.at < 1000 && shift.at - last[0]!.at < 5000) last.push(shift)
    else windows.push([shift])
  }
  const sums = windows.map((shifts) => ({ shifts, sum: shifts.reduce((sum, { value }) => sum + value, 0) }))
  return sums.sort((a, b) => b.sum - a.sum)[0] ?? { sum: 0, shifts: [] }
}

/** It goes on for as long as the page is open. */
const isStream = (url: string) => /\/changes|follow=true/.test(url)

/** Replies come one after the other, as from far away, and not in the order of the requests. */
async function farAway(page: Page) {
  let count = 0
  await page.route(/\/(api|v1|marketplace|readyz)\b/, async (route) => {
    if (isStream(route.request().url())) return route.continue()
    const reply = await fetched(route)
    const ms = 40 * ((count++ * 3) % 5)
    setTimeout(() => void route.fulfill({ response: reply }).catch(() => undefined), ms) // the page may have been left
  })
}

for (const isFar of [false, true]) test(`no page shifts what one reads while it opens${isFar ? ', of a server far away' : ''}`, async ({ page, context }) => {
  test.setTimeout(900_000)
  await signIn(page)
  await stageSet(page)
  const other = await context.newPage() // it takes the session of the first
  await shiftsKeep(other)
  if (isFar) await farAway(other)
  const pending = new Set<unknown>()
  other.on('request', (request) => void (isStream(request.url()) || pending.add(request)))
  for (const event of ['requestfinished', 'requestfailed'] as const) other.on(event, (request) => void pending.delete(request))
  const wrong: string[] = []
  for (const view of [{ width: 1280, height: 800 }, { width: 320, height: 640 }]) {
    await other.setViewportSize(view)
    for (const path of [...pagesOf('admin~resnet-49'), '/jobs/admin~resnet-50', '/jobs/admin~resnet-50?tab=logs', '/jobs/admin~resnet-50?tab=use']) {
      pending.clear()
      await other.goto(path)
      await settled(other)
      await expect.poll(() => pending.size).toBe(0)
      const shifts = await other.evaluate(
        () => new Promise<Shift[]>((resolve) => requestAnimationFrame(() => requestIdleCallback(() => resolve((globalThis as unknown as { shifts: Shift[] }).shifts)))),
      )
      const { sum, shifts: worst } = worstOf(shifts)
      if (sum < SHIFT_MAX) continue
      wrong.push(`${view.width} ${path} ${sum.toFixed(3)}:`, ...worst.flatMap(({ at, value, sources }) => [`  ${value.toFixed(3)} at ${Math.round(at)} ms`, ...sources.map((source) => `    ${source}`)]))
    }
  }
  expect(wrong.join('\n')).toBe('')
})
