// What people do to jobs.
import { t } from '../i18n/i18n'
import { call, enc, get, type JobDetail } from './client'

const job = (name: string) => `/api/v2/jobs/${enc(name)}`

export const jobStop = (name: string) => call('PUT', `${job(name)}/executionType`, { json: { value: 'STOP' } })
/** Has it begun? A list may have been read a while ago. */
export const jobHasBegun = async (name: string) => (await get<JobDetail>(`${job(name)}?tasks=none`)).jobStatus?.state !== 'WAITING'
export const jobStart = (name: string) => call('PUT', `${job(name)}/executionType`, { json: { value: 'START' } })
export const jobRelease = (name: string) => call('PUT', `${job(name)}/release`)
export const jobDelete = (name: string) => call('DELETE', job(name))
export const tagAdd = (name: string, value: string) => call('PUT', `${job(name)}/tag`, { json: { value } })
export const tagRemove = (name: string, value: string) => call('DELETE', `${job(name)}/tag`, { json: { value } })
export const roleScale = (name: string, role: string, instances: number) =>
  call('PUT', `${job(name)}/taskRoles/${enc(role)}/instances`, { json: { instances } })

/** An archived job is out of the list unless one asks for it. It is a tag: other clients see it as such. */
export const ARCHIVED = 'archived'

/** Each in turn, so that a long selection does not crowd the server; what failed, by name. */
export async function forEachJob(names: string[], action: (name: string) => Promise<unknown>): Promise<[string, unknown][]> {
  const failed: [string, unknown][] = []
  for (const name of names) {
    try {
      await action(name)
    } catch (error) {
      failed.push([name, error])
    }
  }
  return failed
}

const SAID_MAX = 10

/** What forEachJob could not do, as one error; of many, the first ones by name. */
export function errorOfAll(failed: [string, unknown][]) {
  const said = failed.slice(0, SAID_MAX).map(([name, error]) => `${name}: ${error instanceof Error ? error.message : String(error)}`)
  if (failed.length > SAID_MAX) said.push(t('and {n} more', { n: failed.length - SAID_MAX }))
  return new Error(said.join('; '))
}

/** As forEachJob; throws what failed, after `done`. */
export async function forEachWhole(names: string[], action: (name: string) => Promise<unknown>, done: () => Promise<unknown>) {
  const failed = await forEachJob(names, action)
  await done()
  if (failed.length) throw errorOfAll(failed)
}

// ---- nodes ----

const node = (name: string) => `/api/v2/nodes/${enc(name)}`

export const nodePardon = (name: string) => call('PUT', `${node(name)}/pardon`)
export const nodeCordon = (name: string, reason: string) => call('PUT', `${node(name)}/cordon`, { json: reason ? { reason } : {} })
export const nodeDrain = (name: string, reason: string) => call('PUT', `${node(name)}/drain`, { json: reason ? { reason } : {} })
export const clusterClose = (name: string, reason: string) => call('PUT', `/api/v2/virtual-clusters/${enc(name)}/status`, { json: { vcStatus: 'stopped', ...(reason ? { reason } : {}) } })
export const clusterOpen = (name: string) => call('PUT', `/api/v2/virtual-clusters/${enc(name)}/status`, { json: { vcStatus: 'running' } })
export const nodeUncordon = (name: string) => call('PUT', `${node(name)}/uncordon`)
