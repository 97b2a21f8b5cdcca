// A cluster as people find it, for the walks over all pages: a user, the administrator of a group, and jobs in every state.
import { expect, type Page, type Route } from '@playwright/test'
import { jobFile, roomMake, submit } from './portal'

export const ANN = { name: 'ann', password: 'ann-password' } // an ordinary user
export const GRETA = { name: 'greta', password: 'greta-password' } // says who is in the group lab

/** Every view that has an address; those of a job are of `job`. */
export const pagesOf = (job: string) => [
  '/',
  '/jobs',
  '/jobs?keyword=no-such-job',
  `/jobs/${job}`,
  `/jobs/${job}?tab=logs`,
  `/jobs/${job}?tab=use`,
  `/jobs/${job}?tab=terminal`,
  `/jobs/${job}?tab=config`,
  `/jobs/${job}?tab=config&as=json`,
  `/jobs/${job}?tab=attempts`,
  `/jobs/${job}?task=main.0`,
  '/jobs/admin~none',
  '/submit',
  `/submit?clone=${job}`,
  '/templates',
  '/templates?q=no-such-template',
  '/templates?item=admin~resnet',
  '/cluster',
  '/cluster?tab=nodes',
  '/cluster?tab=queue',
  '/cluster?tab=quotas',
  '/admin',
  '/admin?tab=groups',
  '/admin?tab=clusters',
  '/admin?tab=requests',
  '/admin?tab=requests&show=all',
  '/admin?tab=storages',
  '/admin?tab=nodes',
  '/admin?tab=services',
  '/admin?tab=abnormal',
  '/admin?tab=exits',
  '/admin?tab=audit',
  '/admin?tab=settings',
  '/admin?tab=settings&as=yaml',
  '/storages',
  '/storages/datasets',
  '/storages/home',
  '/transfer',
  '/profile',
  '/design',
]

/** What the server replies to a page, to be changed on its way. Asked again, as a browser does by itself, when the
 * server has closed a kept connection just as it was used. */
export const fetched = (route: Route) => route.fetch({ maxRetries: 3 })

export async function settled(page: Page) {
  await expect(page.getByRole('heading', { level: 1 })).toBeVisible()
  await expect(page.getByText(/^(Loading …|正在载入……)$/)).toHaveCount(0)
  await expect(page.locator('[data-awaited]')).toHaveCount(0) // what comes after it is hidden
}

/** To another page as a link leads there, without loading the portal again, and until it is all there. */
export async function visit(page: Page, path: string) {
  const { pathname, search } = new URL(page.url())
  if (pathname + search === path) await page.reload() // nothing of what was done there is left
  else
    await page.evaluate((to) => {
      history.pushState(null, '', to)
      dispatchEvent(new PopStateEvent('popstate'))
      scrollTo(0, 0)
    }, path)
  await settled(page)
}

/** A call of the API as the person who is signed in; its status. */
export async function ask(page: Page, method: string, path: string, json?: unknown): Promise<number> {
  return page.evaluate(
    async ({ method, path, body }) => {
      const { token } = JSON.parse(sessionStorage.getItem('skep.session') ?? '{}') as { token?: string }
      const headers = { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' }
      return (await fetch(path, { method, headers, ...(body ? { body } : {}) })).status
    },
    { method, path, body: json === undefined ? '' : JSON.stringify(json) },
  )
}

const stateOf = (page: Page, job: string) =>
  page.evaluate(async (name) => {
    const { token } = JSON.parse(sessionStorage.getItem('skep.session') ?? '{}') as { token?: string }
    const reply = await fetch(`/api/v2/jobs/${name}`, { headers: { Authorization: `Bearer ${token}` } })
    return ((await reply.json()) as { jobStatus?: { state?: string } }).jobStatus?.state ?? ''
  }, job)

/** Submitted, or started again where another test has stopped it, until it is in `state`. */
async function live(page: Page, job: string, file: string, state: string) {
  if (await stateOf(page, job)) expect(await ask(page, 'PUT', `/api/v2/jobs/${job}/executionType`, { value: 'START' })).toBe(202)
  else await submit(page, file)
  await expect.poll(() => stateOf(page, job)).toBe(state)
}

const TRAIN = [
  'for i in $(seq 1 40); do echo "step $i of 4000  loss 0.$((900 - i * 7))  lr 3e-4"; done',
  'while true; do sleep 1; done',
]

/** By the administrator, who is signed in. What is there already is taken. */
export async function stageSet(page: Page) {
  for (const who of [ANN, GRETA]) await ask(page, 'POST', '/api/v2/users', { username: who.name, password: who.password, email: `${who.name}@example.org` })
  await ask(page, 'POST', '/api/v2/groups', { groupname: 'lab', description: 'The vision laboratory', extension: { acls: { virtualClusters: ['default'] } } })
  for (const username of [ANN.name, GRETA.name]) expect(await ask(page, 'PUT', `/api/v2/users/${username}/group`, { groupname: 'lab', admin: username === GRETA.name })).toBe(201)
  const resnet = { name: 'resnet', summary: 'resnet', tags: ['resnet'], description: 'resnet', isPublic: true, protocol: jobFile('resnet', ['true'], 'parameters:\n  rate: 0.1\n') }
  expect([201, 409]).toContain(await ask(page, 'POST', '/marketplace/api/items', resnet))
  await ask(page, 'POST', '/api/v2/storages/home/folders', { path: 'lab' }) // where there is such a storage
  if ((await stateOf(page, 'admin~resnet-50')) === 'RUNNING') return
  await roomMake(page)
  const ended = ['admin~resnet-49', 'admin~resnet-48']
  for (const job of ended) if (!(await stateOf(page, job))) {
    const fails = job.endsWith('49')
    await submit(page, jobFile(job.slice(6), fails ? ['echo loading checkpoint', 'echo "Traceback (most recent call last):" >&2', 'nosuchprogram --resume'] : ['echo done'], 'parameters:\n  rate: 0.1\n'))
  }
  await live(page, 'admin~resnet-50', jobFile('resnet-50', TRAIN, 'parameters:\n  rate: 0.3\n'), 'RUNNING')
  await live(page, 'admin~resnet-51', jobFile('resnet-51', ['true']).replace('cpu: 1,', 'cpu: 8,'), 'WAITING')
  for (const job of ended) await expect.poll(() => stateOf(page, job)).toMatch(/FAILED|SUCCEEDED/)
}
