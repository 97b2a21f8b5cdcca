// Calls of the public API. The token lives in this tab's sessionStorage, which belongs to this origin, port included;
// tabs of the same browser ask each other for it, so that a new tab need not sign in again.
import type { components } from '../generated/schema'

export type Schema = components['schemas']
export type JobSummary = Schema['JobSummary']
/** USER~JOB, as paths of the API have it. */
export const nameOf = (job: JobSummary) => `${job.username}~${job.name}`
export type JobDetail = Schema['JobDetail']
export type JobStatus = Schema['JobStatus']
export type JobAttempt = Schema['JobAttempt']
export type JobState = Schema['JobState']
export type Task = Schema['Task']
export type TaskAttempt = Schema['TaskAttemptWithTail']
export type Problem = Schema['Problem']
export type ExitSpec = NonNullable<Schema['ExitSpec']>
export type StoryEvent = Schema['Event']
export type ClusterNode = Schema['Node']
export type VirtualCluster = Schema['VirtualCluster']
export type User = Schema['User']
export type Group = Schema['Group']

export class ApiError extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    readonly problems: Problem[] = [],
    readonly retryS = 0, // what Retry-After says; 0: nothing
  ) {
    super(message)
  }
}

// ---- session ----

export interface Session {
  user: string
  token: string
  admin: boolean
  provider?: string // the address of the server by which the person has signed in at the organisation's provider
}

const KEY = 'skep.session'
const watchers = new Set<() => void>()
let session: Session | null = read()

function read(): Session | null {
  const text = sessionStorage.getItem(KEY)
  return text ? (JSON.parse(text) as Session) : null
}

export const sessionGet = () => session

let isEnded = false // the server takes the session's token no more

/** Has the server ended the session? What was asked meanwhile waits until the same person has signed in again, or somebody signs out. */
export const sessionIsEnded = () => isEnded

export function sessionSet(next: Session | null) {
  session = next
  isEnded = false
  if (next) sessionStorage.setItem(KEY, JSON.stringify(next))
  else sessionStorage.removeItem(KEY)
  for (const notify of watchers) notify()
}

export function sessionWatch(notify: () => void) {
  watchers.add(notify)
  return () => void watchers.delete(notify)
}

function sessionEnded(of: Session) {
  if (session !== of || isEnded) return
  isEnded = true
  for (const notify of watchers) notify()
}

/** Until there is a session again that the server takes: true; false when the person has gone. */
function sessionRenewed(user: string, signal?: AbortSignal): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const look = () => {
      if (signal?.aborted) reject(signal.reason as Error)
      else if (session?.user === user && isEnded) return
      else resolve(session?.user === user)
      stop()
      signal?.removeEventListener('abort', look)
    }
    const stop = sessionWatch(look)
    signal?.addEventListener('abort', look)
    look()
  })
}

/** To the page for signing in, without what a sign-out takes away. */
export const sessionLeave = () => sessionSet(null)

/** Who signs out leaves nothing in the tab: a draft of a job may hold secrets. A token that has only expired takes none away. */
function sessionEnd() {
  sessionStorage.clear()
  sessionSet(null)
}

const tabs = new BroadcastChannel('skep.session')
tabs.onmessage = ({ data }: MessageEvent<{ kind: 'ask' } | { kind: 'have'; session: Session } | { kind: 'out' }>) => {
  if (data.kind === 'ask' && session && !isEnded) tabs.postMessage({ kind: 'have', session })
  if (data.kind === 'have' && (!session || (isEnded && session.user === data.session.user))) sessionSet(data.session)
  if (data.kind === 'out') sessionEnd()
}

/** Ask the other tabs; resolves as soon as one has answered, or when none did for a moment. */
export function sessionFind(): Promise<void> {
  if (session) return Promise.resolve()
  return new Promise((resolve) => {
    const stop = sessionWatch(() => done())
    const timer = setTimeout(() => done(), 120)
    const done = () => {
      clearTimeout(timer)
      stop()
      resolve()
    }
    tabs.postMessage({ kind: 'ask' })
  })
}

export async function signIn(user: string, password: string) {
  const reply = await call<Schema['Token']>('POST', '/api/v2/authn/basic/login', { json: { username: user, password }, isAnonymous: true })
  const next = { user: reply.user ?? user, token: reply.token ?? '', admin: reply.admin ?? false }
  sessionSet(next)
  tabs.postMessage({ kind: 'have', session: next }) // the session of other tabs may have ended, too
}

/** Where the browser is sent to sign out at the provider, too: else its next sign-in asks nobody for a password. */
export const providerOut = (provider: string, origin = location.origin) => `${provider.replace(/\/$/, '')}/api/v2/authn/oidc/logout?${new URLSearchParams({ redirect_uri: `${origin}/sign-in` })}`

export async function signOut() {
  const provider = session?.provider
  try {
    await call('DELETE', '/api/v2/authn/basic/logout')
  } finally {
    tabs.postMessage({ kind: 'out' })
    sessionEnd()
    if (provider) location.assign(providerOut(provider))
  }
}

// ---- requests ----

export interface CallOptions {
  json?: unknown
  text?: { type: string; body: string }
  bytes?: ArrayBuffer
  signal?: AbortSignal
  isAnonymous?: boolean // needs no session
}

type Method = 'GET' | 'POST' | 'PUT' | 'DELETE'

async function errorOf(reply: Response): Promise<ApiError> {
  const text = await reply.text()
  const retryS = Number(reply.headers.get('Retry-After')) || 0
  try {
    const error = JSON.parse(text) as Schema['Error'] | string
    if (typeof error === 'string') return new ApiError(reply.status, 'UnknownError', error, [], retryS) // as HiveD's paths have them
    return new ApiError(reply.status, error.code, error.message, error.problems, retryS)
  } catch {
    return new ApiError(reply.status, 'UnknownError', text.trim() || `HTTP ${reply.status}`, [], retryS)
  }
}

async function requestOnce(method: Method, path: string, options: CallOptions, token: string | undefined): Promise<Response> {
  const headers = new Headers()
  if (token) headers.set('Authorization', `Bearer ${token}`)
  const body = options.json !== undefined ? JSON.stringify(options.json) : (options.text?.body ?? options.bytes)
  if (options.json !== undefined) headers.set('Content-Type', 'application/json')
  else if (options.text) headers.set('Content-Type', options.text.type)
  else if (options.bytes) headers.set('Content-Type', 'application/octet-stream')
  try {
    return await fetch(path, { method, headers, body: body ?? null, signal: options.signal ?? null, cache: 'no-store' })
  } catch (error) {
    if (options.signal?.aborted) throw error
    throw new ApiError(0, 'NoServer', 'the server does not answer')
  }
}

/** A request whose session has ended has not been done: it is sent again as soon as the same person has signed in again. */
export async function request(method: Method, path: string, options: CallOptions = {}): Promise<Response> {
  for (;;) {
    const used = options.isAnonymous ? null : session
    if (used && isEnded && !(await sessionRenewed(used.user, options.signal))) throw new ApiError(401, 'UnauthorizedUserError', 'you are not signed in any more')
    const now = options.isAnonymous ? null : session
    const reply = await requestOnce(method, path, options, now?.token)
    if (reply.ok) return reply
    const error = await errorOf(reply)
    if (reply.status !== 401 || !now) throw error
    sessionEnded(now)
  }
}

export async function call<T>(method: Method, path: string, options?: CallOptions): Promise<T> {
  const reply = await request(method, path, options)
  return (reply.status === 204 ? undefined : await reply.json()) as T
}

export const get = <T>(path: string, signal?: AbortSignal) => call<T>('GET', path, signal ? { signal } : {})

export async function getText(path: string, signal?: AbortSignal) {
  const reply = await request('GET', path, signal ? { signal } : {})
  return reply.text()
}

export const enc = (part: string | number) => encodeURIComponent(part)

// ---- streams ----

/** Chunks of text of a reply that goes on; ends when the server has said everything. Throws when it was cut. */
export async function* textStream(reply: Response): AsyncGenerator<string> {
  const reader = reply.body!.pipeThrough(new TextDecoderStream()).getReader()
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return
      yield value
    }
  } finally {
    void reader.cancel().catch(() => undefined)
  }
}

export async function* lineStream<T>(reply: Response): AsyncGenerator<T> {
  let rest = ''
  for await (const chunk of textStream(reply)) {
    const lines = (rest + chunk).split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) if (line) yield JSON.parse(line) as T
  }
}

/** Waits before the next try of a cut connection: from half a second to half a minute, never the same for all. */
export function backoffMs(tries: number, random = Math.random()) {
  return Math.min(30_000, 500 * 2 ** tries) * (0.5 + random / 2)
}
