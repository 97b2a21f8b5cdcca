// What the tests share: a page that fails the test when it logs an error or breaks the Content-Security-Policy, and
// ways to act as a person does.
import { createRequire } from 'node:module'
import { test as base, expect, type Locator, type Page } from '@playwright/test'

export { expect }
export const ADMIN = { name: 'admin', password: process.env['PORTAL_PASSWORD'] ?? '' }
export const IMAGE = process.env['PORTAL_IMAGE'] ?? 'skep/base'

export const test = base.extend<{ page: Page }>({
  // a page asks on while its test ends: what then still waits for the server's reply, to change it, fails with the browser
  context: async ({ context }, use) => {
    await use(context)
    await Promise.all(context.pages().map((page) => page.unrouteAll({ behavior: 'ignoreErrors' })))
  },
  page: async ({ page }, use) => {
    const wrong: string[] = []
    await page.addInitScript(() => {
      document.addEventListener('securitypolicyviolation', (event) => console.error(`policy: ${event.violatedDirective} ${event.blockedURI}`))
    })
    page.on('console', (message) => {
      // the browser itself says so of every reply that is an error, also of those that a test asks for
      if (message.type() === 'error' && !message.text().startsWith('Failed to load resource')) wrong.push(message.text())
    })
    page.on('pageerror', (error) => wrong.push(String(error.stack)))
    await use(page)
    expect(wrong).toEqual([])
  },
})

export async function signIn(page: Page, who = ADMIN, to = '/') {
  await page.goto(to)
  await page.getByLabel('User name').fill(who.name)
  await page.getByLabel('Password').fill(who.password)
  await page.getByRole('button', { name: 'Sign in', exact: true }).click()
  await expect(page.getByRole('button', { name: `Account of ${who.name}` })).toBeVisible()
}

/** Also of what lies in a shadow tree, as the editors do. */
const hasFocus = (target: Locator) => target.evaluate((element) => element === (element.getRootNode() as Document | ShadowRoot).activeElement)

/** Tab until the element has the focus, as who has no mouse does. */
export async function tabTo(page: Page, target: Locator) {
  // in a list that other tests have filled as well
  for (let i = 0; i < 300; i++) {
    if (await hasFocus(target)) return
    await page.keyboard.press('Tab')
  }
  throw new Error('the keyboard does not reach it')
}

export async function type(page: Page, field: Locator, text: string) {
  await tabTo(page, field)
  await page.keyboard.press('Control+A')
  await page.keyboard.type(text)
}

/** By the two keys of a shortcut, `g` and another, as often as the second comes too late after the first. */
export async function keysTo(page: Page, key: string, path: string) {
  await expect(async () => {
    if (new URL(page.url()).pathname === path) return
    await page.keyboard.press('g')
    await page.keyboard.press(key)
    await expect(page).toHaveURL((url) => url.pathname === path, { timeout: 10_000 })
  }).toPass()
}

export function jobFile(name: string, commands: string[], more = '') {
  return `protocolVersion: 2
name: ${name}
type: job
prerequisites:
  - name: image
    type: dockerimage
    uri: "${IMAGE}"
taskRoles:
  main:
    instances: 1
    dockerImage: image
    resourcePerInstance: {cpu: 1, memoryMB: 64, gpu: 0}
    commands:
${commands.map((line) => `      - ${JSON.stringify(line)}`).join('\n')}
${more}`
}

/** By the API, as the person who is signed in. */
export async function submit(page: Page, text: string) {
  const status = await page.evaluate(async (body) => {
    const { token } = JSON.parse(sessionStorage.getItem('skep.session') ?? '{}') as { token?: string }
    const reply = await fetch('/api/v2/jobs', { method: 'POST', headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'text/yaml' }, body })
    return reply.ok ? 'ok' : await reply.text()
  }, text)
  expect(status).toBe('ok')
}

/** Wait until all tasks of a job run. */
export async function running(page: Page, job: string) {
  const states = () =>
    page.evaluate(async (name) => {
      const { token } = JSON.parse(sessionStorage.getItem('skep.session') ?? '{}') as { token?: string }
      const reply = await fetch(`/api/v2/jobs/${name}`, { headers: { Authorization: `Bearer ${token}` } })
      const { taskRoles } = (await reply.json()) as { taskRoles: Record<string, { taskStatuses: { taskState: string }[] }> }
      return Object.values(taskRoles).flatMap((role) => role.taskStatuses.map((task) => task.taskState))
    }, job)
  await expect.poll(async () => (await states()).every((state) => state === 'RUNNING')).toBe(true)
}

/** Stop what other tests have left running, and wait until its room is free. */
export async function roomMake(page: Page) {
  const live = () =>
    page.evaluate(async () => {
      const { token } = JSON.parse(sessionStorage.getItem('skep.session') ?? '{}') as { token?: string }
      const headers = { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' }
      const jobs = (await (await fetch('/api/v2/jobs?state=WAITING,RUNNING,STOPPING&limit=1000', { headers })).json()) as { username: string; name: string; executionType: string }[]
      for (const job of jobs)
        if (job.executionType !== 'STOP') await fetch(`/api/v2/jobs/${job.username}~${job.name}/executionType`, { method: 'PUT', headers, body: '{"value":"STOP"}' })
      return jobs.map((job) => job.name)
    })
  await expect.poll(live).toEqual([])
}

// ---- barriers ----

export const axePath = createRequire(import.meta.url).resolve('axe-core/axe.min.js')

/** All themes; the two usual ones at both widths. */
export const VIEWS = [
  { theme: 'light', width: 1280, height: 800 },
  { theme: 'dark', width: 1280, height: 800 },
  { theme: 'light', width: 320, height: 640 },
  { theme: 'dark', width: 320, height: 640 },
  { theme: 'contrast', width: 1280, height: 800 },
] as const

/** The page as who has this theme chosen, or a window of this size, sees it. */
export async function viewSet(page: Page, view: Pick<(typeof VIEWS)[number], 'theme' | 'width' | 'height'>) {
  await page.setViewportSize(view)
  await page.emulateMedia({ colorScheme: view.theme === 'dark' ? 'dark' : 'light', reducedMotion: view.theme === 'contrast' ? 'reduce' : 'no-preference' })
  await page.evaluate((theme) => {
    document.documentElement.dataset['theme'] = theme
  }, view.theme)
}

const STANDARDS = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice']
/** What of them depends on the theme; all else is the same in a window of the same size. */
const RULES_OF_COLOUR = ['color-contrast', 'link-in-text-block']

/** What axe finds on the page as it is; the page has read axePath. */
export async function violations(page: Page, rules = { type: 'tag', values: STANDARDS } as import('axe-core').RunOnly): Promise<string[]> {
  return page.evaluate(async (runOnly) => {
    const { axe } = window as unknown as { axe: typeof import('axe-core') }
    const found = await axe.run(document, { runOnly, resultTypes: ['violations'] })
    return found.violations.map((one) => `${one.id}: ${one.help}: ${one.nodes.map((node) => `${node.target.join(' ')} ${node.any[0]?.message ?? ''}`).slice(0, 3).join(' | ')}`)
  }, rules)
}

/** The barriers of this page in all views, and how much wider than the window it is. */
export async function barriers(page: Page, views: readonly (typeof VIEWS)[number][] = VIEWS): Promise<string[]> {
  const wrong: string[] = []
  const widths = new Set<number>()
  for (const view of views) {
    await viewSet(page, view)
    await page.evaluate(() => window.scrollTo(0, 0)) // what has been scrolled half below the bar is no small target
    const found = widths.has(view.width) ? await violations(page, { type: 'rule', values: RULES_OF_COLOUR }) : await violations(page)
    widths.add(view.width)
    for (const one of found) wrong.push(`${view.theme} ${view.width}: ${one}`)
    const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth)
    if (wide > 0) wrong.push(`${view.width}: wider than the window by ${wide}`)
  }
  return wrong
}

/** For docs/user/portal.md, where somebody asks for them. */
export async function picture(page: Page, name: string) {
  if (process.env['PORTAL_PICTURES']) await page.screenshot({ path: `${process.env['PORTAL_PICTURES']}/${name}.png`, fullPage: name.startsWith('narrow/') })
}
