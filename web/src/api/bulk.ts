// One action for many jobs: so many in one request that the server is quick, and so few that one sees it go on.
import { ApiError, call, type Schema } from './client'

export type BulkAction = 'stop' | 'start' | 'delete' | 'addTag' | 'removeTag'

export const CHUNK = 100
const TRY_CHUNK = 1000 // as many as one request may name
const BUSY_S = 1 // when the server does not say for how long it wants to be left alone
const BUSY_MAX = 60 // times in a row; then something else is wrong

export interface BulkOutcome {
  done: string[]
  failed: [string, Error][] // those that were not asked for after a failure, too
  left: string[] // not asked for, because somebody has stopped it
}

/** Ends at once when `signal` is given. */
const wait = (seconds: number, signal?: AbortSignal) =>
  new Promise<void>((resolve) => {
    if (signal?.aborted) return resolve()
    const done = () => {
      clearTimeout(timer)
      signal?.removeEventListener('abort', done)
      resolve()
    }
    const timer = setTimeout(done, 1000 * seconds)
    signal?.addEventListener('abort', done)
  })

/** What is done by a walk over many jobs. */
interface Walk {
  action: BulkAction
  tag: string | undefined
  isTrial: boolean
  signal: AbortSignal | undefined // nothing more is asked after it; of what is under way the answer is read, unless it is a trial
}

/** A quota of requests counts each job: the next ones wait until the server takes them. Null: `signal` came before it took these. */
async function chunkAsk({ action, tag, isTrial, signal }: Walk, jobs: string[]): Promise<Schema['BulkResult'] | null> {
  for (let tries = 0; ; tries++) {
    if (signal?.aborted) return null
    try {
      return await call<Schema['BulkResult']>('POST', `/api/v2/bulk/jobs${isTrial ? '?dryRun=true' : ''}`, { json: { action, jobs, ...(tag === undefined ? {} : { tag }) }, ...(isTrial && signal ? { signal } : {}) })
    } catch (failure) {
      if (!(failure instanceof ApiError) || failure.status !== 429 || tries >= BUSY_MAX) throw failure
      await wait(failure.retryS || BUSY_S, signal)
    }
  }
}

async function chunksAsk(walk: Walk, names: string[], tell: (count: number) => void): Promise<BulkOutcome> {
  const outcome: BulkOutcome = { done: [], failed: [], left: [] }
  const step = walk.isTrial ? TRY_CHUNK : CHUNK
  for (let at = 0; at < names.length; at += step) {
    try {
      const answer = await chunkAsk(walk, names.slice(at, at + step))
      if (!answer) {
        outcome.left = names.slice(at)
        break
      }
      for (const { name, outcome: word, message } of answer.results) {
        if (word === 'done' || word === 'selected') outcome.done.push(name)
        else outcome.failed.push([name, new Error(message ?? word)])
      }
    } catch (failure) {
      if (walk.isTrial) throw failure // that nothing is known of them is no refusal
      const error = failure instanceof Error ? failure : new Error(String(failure))
      outcome.failed.push(...names.slice(at).map((name): [string, Error] => [name, error]))
      break
    }
    tell(Math.min(at + step, names.length))
  }
  return outcome
}

/** `tell` after each request: how many jobs have had their answer. After `signal` no further request is made. */
export const bulkDo = (action: BulkAction, names: string[], tag?: string, tell: (count: number) => void = () => undefined, signal?: AbortSignal) =>
  chunksAsk({ action, tag, isTrial: false, signal }, names, tell)

/** Which of them it can be done to by this person; nothing is done. Throws when the server could not be asked. */
export const bulkTry = (action: BulkAction, names: string[], tag?: string, signal?: AbortSignal) => chunksAsk({ action, tag, isTrial: true, signal }, names, () => undefined)
