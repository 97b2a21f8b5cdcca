import { QueryClient, QueryObserver } from '@tanstack/react-query'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { jobReadAgain, newsApply, newsOf, streamRead, type News } from '../src/lib/changes'

/** A server that sends these lines to each connection, and then nothing more. */
function server(lines: string[]) {
  const asked: { path: string; signal: AbortSignal }[] = []
  vi.stubGlobal('fetch', (path: string, { signal }: { signal: AbortSignal }) => {
    asked.push({ path, signal })
    const body = new ReadableStream<Uint8Array>({
      start(stream) {
        for (const line of lines) stream.enqueue(new TextEncoder().encode(`${line}\n`))
        signal.addEventListener('abort', () => stream.error(signal.reason))
      },
    })
    return Promise.resolve(new Response(body))
  })
  return asked
}

describe('the stream of changes', () => {
  beforeEach(() => void vi.useFakeTimers())
  afterEach(() => {
    vi.useRealTimers()
    vi.unstubAllGlobals()
  })
  it('is begun again behind what was heard when the server is silent for too long', async () => {
    const asked = server(['{"type":"job","number":7,"id":"ann~a"}'])
    const told: News[] = []
    const stop = new AbortController()
    const end = streamRead(stop.signal, (news) => told.push(news))
    await vi.advanceTimersByTimeAsync(30_000)
    expect(asked.map(({ path, signal }) => [path, signal.aborted])).toEqual([['/api/v2/changes', false]])
    expect(told.map(({ jobs }) => jobs)).toEqual([['ann~a']])
    await vi.advanceTimersByTimeAsync(12_000)
    expect(asked.map(({ path, signal }) => [path, signal.aborted])).toEqual([
      ['/api/v2/changes', true],
      ['/api/v2/changes?since=7', false],
    ])
    stop.abort()
    await vi.advanceTimersByTimeAsync(1000)
    await end
    expect(asked.every(({ signal }) => signal.aborted)).toBe(true)
  })
  it('says once that it has begun, as it tells of nothing that was before', async () => {
    server(['{"type":"start","number":7}'])
    const told: News[] = []
    const stop = new AbortController()
    const end = streamRead(stop.signal, (news) => told.push(news))
    await vi.advanceTimersByTimeAsync(1000)
    expect(told).toEqual([newsOf([], true)])
    await vi.advanceTimersByTimeAsync(45_000) // silent: there is another connection, which goes on behind what was heard
    expect(told).toEqual([newsOf([], true), newsOf([])])
    stop.abort()
    await vi.advanceTimersByTimeAsync(1000)
    await end
  })
})

const REPLY_MS = 250

/** A page that shows what is kept under `key`: the number of the request, which a reply has after REPLY_MS. Ends when it is called. */
function shown(queries: QueryClient, key: string[]) {
  let asked = 0
  const queryFn = async ({ signal }: { signal: AbortSignal }) => {
    const number = ++asked
    await new Promise((resolve, reject) => {
      setTimeout(resolve, REPLY_MS)
      signal.addEventListener('abort', () => reject(new Error('cut off')))
    })
    return number
  }
  return new QueryObserver(queries, { queryKey: key, queryFn, retry: false, staleTime: Infinity }).subscribe(() => undefined)
}

describe('what is on the page', () => {
  const queries = new QueryClient()
  const change = (job: string) => newsApply(queries, false, { ...newsOf([]), jobs: [job] })
  beforeEach(() => void vi.useFakeTimers())
  afterEach(() => {
    queries.clear()
    vi.useRealTimers()
  })
  it('is read again after a change, also while its first reply is on its way', async () => {
    const close = shown(queries, ['job', 'ann~a'])
    await vi.advanceTimersByTimeAsync(REPLY_MS / 2)
    for (const job of ['ann~b', 'ann~a', 'ann~a']) change(job)
    await vi.advanceTimersByTimeAsync(2 * REPLY_MS)
    expect(queries.getQueryData(['job', 'ann~a'])).toBe(2)
    await vi.advanceTimersByTimeAsync(10 * REPLY_MS)
    expect(queries.getQueryData(['job', 'ann~a'])).toBe(2) // and no more often
    close()
  })
  it('comes also when there are changes more often than replies', async () => {
    const close = shown(queries, ['job', 'ann~a'])
    await vi.advanceTimersByTimeAsync(2 * REPLY_MS)
    for (let ms = 0; ms < 10 * REPLY_MS; ms += REPLY_MS / 2) {
      change('ann~a')
      await vi.advanceTimersByTimeAsync(REPLY_MS / 2)
    }
    expect(queries.getQueryData<number>(['job', 'ann~a'])).toBeGreaterThan(5)
    close()
  })
  it('is read again when the stream has begun: jobs, but not their files, and the lists when they are due', async () => {
    const keys = [['job', 'ann~a'], ['job', 'ann~a', 'tasks'], ['job', 'ann~a', 'config'], ['jobs'], ['nodes'], ['virtual-clusters'], ['cells'], ['users']]
    const pages = keys.map((key) => shown(queries, key))
    const now = () => keys.map((key) => queries.getQueryData(key))
    await vi.advanceTimersByTimeAsync(2 * REPLY_MS)
    newsApply(queries, false, newsOf([], true))
    await vi.advanceTimersByTimeAsync(2 * REPLY_MS)
    expect(now()).toEqual([2, 2, 1, 1, 1, 1, 1, 1])
    newsApply(queries, true, newsOf([]))
    await vi.advanceTimersByTimeAsync(2 * REPLY_MS)
    expect(now()).toEqual([2, 2, 1, 2, 2, 2, 2, 1])
    jobReadAgain(queries, 'ann~a')
    await vi.advanceTimersByTimeAsync(2 * REPLY_MS)
    expect(now()).toEqual([3, 3, 1, 2, 2, 2, 2, 1])
    for (const close of pages) close()
  })
})
