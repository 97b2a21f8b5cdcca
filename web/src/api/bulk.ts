// One action for many jobs: so many in one request that the server is quick, and so few that one sees it go on.
import { ApiError, call, type Schema } from './client'

export type BulkAction = 'stop' | 'start' | 'delete' | 'addTag' | 'removeTag'

export const CHUNK = 100
const TRY_CHUNK = 1000 // as many as one request may name
const BUSY_S = 1 // when the server does not say for how long it wants to be left alone
const BUSY_MAX = 60 // times in a row; then something else is wrong

export interface BulkOutcome {
  done: string[]
  failed: [string, Error][] // those that were not asked for, too
}

const wait = (seconds: number) => new Promise((resolve) => setTimeout(resolve, 1000 * seconds))

/** A quota of requests counts each job: the next ones wait until the server takes them. */
async function chunkAsk(action: BulkAction, tag: string | undefined, jobs: string[], isTrial: boolean): Promise<Schema['BulkResult']> {
  for (let tries = 0; ; tries++) {
    try {
      return await call<Schema['BulkResult']>('POST', `/api/v2/bulk/jobs${isTrial ? '?dryRun=true' : ''}`, { json: { action, jobs, ...(tag === undefined ? {} : { tag }) } })
    } catch (failure) {
      if (!(failure instanceof ApiError) || failure.status !== 429 || tries >= BUSY_MAX) throw failure
      await wait(failure.retryS || BUSY_S)
    }
  }
}

async function chunksAsk(action: BulkAction, tag: string | undefined, names: string[], isTrial: boolean, tell: (count: number) => void): Promise<BulkOutcome> {
  const outcome: BulkOutcome = { done: [], failed: [] }
  const step = isTrial ? TRY_CHUNK : CHUNK
  for (let at = 0; at < names.length; at += step) {
    try {
      const { results } = await chunkAsk(action, tag, names.slice(at, at + step), isTrial)
      for (const { name, outcome: word, message } of results) {
        if (word === 'done' || word === 'selected') outcome.done.push(name)
        else outcome.failed.push([name, new Error(message ?? word)])
      }
    } catch (failure) {
      if (isTrial) throw failure // that nothing is known of them is no refusal
      const error = failure instanceof Error ? failure : new Error(String(failure))
      outcome.failed.push(...names.slice(at).map((name): [string, Error] => [name, error]))
      break
    }
    tell(Math.min(at + step, names.length))
  }
  return outcome
}

/** `tell` after each request: how many jobs have had their answer. */
export const bulkDo = (action: BulkAction, names: string[], tag?: string, tell: (count: number) => void = () => undefined) => chunksAsk(action, tag, names, false, tell)

/** Which of them it can be done to by this person; nothing is done. Throws when the server could not be asked. */
export const bulkTry = (action: BulkAction, names: string[], tag?: string) => chunksAsk(action, tag, names, true, () => undefined)
