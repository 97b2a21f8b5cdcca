// What changes in the cluster, from one stream of the server for all tabs of the browser: a browser has six connections
// to a server, and a followed log needs one. The tab that holds the lock reads the stream and tells the others.
import { useEffect, useRef } from 'react'
import { useQueryClient, type Query, type QueryClient, type QueryFilters } from '@tanstack/react-query'
import { backoffMs, lineStream, request, type Schema } from '../api/client'

export interface News {
  jobs: string[] // USER~JOB
  hasNodes: boolean
  isReset: boolean // what has changed is not known
  isBegun: boolean // the stream tells from now on, and of nothing that was before
}

type Change = Schema['Change']

const GATHER_MS = 300 // changes that come together are told together
const LISTS_MS = 1500 // lists are read again at most so often
const SILENCE_MS = 40_000 // the server says every 15 s that it is there

let heardAt = 0
/** Does the stream tell of changes? Otherwise pages ask again and again. */
export const isTold = () => {
  const ago = Date.now() - heardAt // less than nothing: the clock was set back since
  return ago >= 0 && ago < SILENCE_MS
}

export function newsOf(changes: Change[], isBegun = false): News {
  return {
    isBegun,
    jobs: [...new Set(changes.flatMap((change) => (change.id ? [change.id] : [])))],
    hasNodes: changes.some((change) => change.type === 'node'),
    isReset: changes.some((change) => change.type === 'reset'),
  }
}

/** One connection to the stream: its changes, from the one behind `since`. Throws when it was cut, and when the server has said nothing for too long: then its other end may be gone without a word. */
async function* changesRead(since: number | undefined, signal: AbortSignal): AsyncGenerator<Change> {
  const connection = new AbortController()
  const cut = () => connection.abort()
  let silence = setTimeout(cut, SILENCE_MS)
  signal.addEventListener('abort', cut)
  try {
    const reply = await request('GET', `/api/v2/changes${since === undefined ? '' : `?since=${since}`}`, { signal: connection.signal })
    for await (const change of lineStream<Change>(reply)) {
      clearTimeout(silence)
      silence = setTimeout(cut, SILENCE_MS)
      yield change
    }
  } finally {
    clearTimeout(silence)
    signal.removeEventListener('abort', cut)
    cut()
  }
}

/** Reads the stream again and again, until `signal`; for its test, too. */
export async function streamRead(signal: AbortSignal, tell: (news: News) => void) {
  let since: number | undefined
  let gathered: Change[] = []
  let isBegun = false // among what is gathered
  let timer: ReturnType<typeof setTimeout> | undefined
  const flush = () => {
    timer = undefined
    tell(newsOf(gathered, isBegun))
    gathered = []
    isBegun = false
  }
  for (let tries = 0; !signal.aborted; tries++) {
    try {
      for await (const change of changesRead(since, signal)) {
        tries = 0
        isBegun ||= since === undefined
        since = change.number ?? since
        gathered.push(change)
        timer ??= setTimeout(flush, GATHER_MS)
      }
    } catch {
      if (signal.aborted) break
    }
    await new Promise((resolve) => setTimeout(resolve, backoffMs(Math.min(tries, 6))))
  }
  clearTimeout(timer)
}

function newsFollow(onNews: (news: News) => void): () => void {
  const stop = new AbortController()
  const tabs = new BroadcastChannel('skep.changes')
  const hear = (news: News) => {
    const isBegun = news.isBegun || !isTold() // another tab's stream may have begun before this tab heard it
    heardAt = Date.now()
    onNews({ ...news, isBegun })
  }
  tabs.onmessage = (event: MessageEvent<News>) => hear(event.data)
  const read = () =>
    streamRead(stop.signal, (news) => {
      if (stop.signal.aborted) return // gathered before: the channel is closed
      tabs.postMessage(news)
      hear(news)
    })
  // there are no locks where the page came without TLS from another machine: then each tab reads for itself
  if (navigator.locks) navigator.locks.request('skep.changes', { signal: stop.signal }, read).catch(() => undefined)
  else void read()
  return () => {
    stop.abort()
    tabs.close()
  }
}

const readAfter = new WeakSet<Query>() // that are read again as soon as what is on its way has come

/** Reads again what is on the page. A reply that is on its way may be older than the change: it is waited for, and then there is another
 * request. It is not cut off: a slow one would never come while there are changes. */
export function readAgain(queries: QueryClient, filters: QueryFilters) {
  for (const query of queries.getQueryCache().findAll({ ...filters, fetchStatus: 'fetching' })) {
    const coming = query.promise
    if (!coming || readAfter.has(query)) continue
    readAfter.add(query)
    const again = () => {
      readAfter.delete(query)
      void queries.invalidateQueries({ queryKey: query.queryKey, exact: true }, { cancelRefetch: false })
    }
    coming.then(again, again)
  }
  void queries.invalidateQueries(filters, { cancelRefetch: false })
}

/** Of this job all but its file, which does not change; of all jobs that are on the page when none is named. */
export function jobReadAgain(queries: QueryClient, name?: string) {
  readAgain(queries, { queryKey: name === undefined ? ['job'] : ['job', name], predicate: (query) => query.queryKey[2] !== 'config' })
}

/** Does `action` when `isLive` is true no more: what was read while it was may be older than the end, and nothing asks for it again. */
export function useWhenEnded(isLive: boolean, action: () => void) {
  const wasLive = useRef(isLive)
  useEffect(() => {
    if (wasLive.current && !isLive) action()
    wasLive.current = isLive
  }, [isLive])
}

/** Reads again what is on the page and is news; for its test, too. */
export function newsApply(queries: QueryClient, isListsDue: boolean, news: News) {
  if (news.isReset) return readAgain(queries, {})
  if (news.isBegun) jobReadAgain(queries)
  else for (const job of news.jobs) jobReadAgain(queries, job)
  if (isListsDue) for (const key of ['jobs', 'nodes', 'virtual-clusters', 'cells']) readAgain(queries, { queryKey: [key] })
}

export function useChanges(isOn: boolean) {
  const queries = useQueryClient()
  useEffect(() => {
    if (!isOn) return
    let timer: ReturnType<typeof setTimeout> | undefined
    const stop = newsFollow((news) => {
      newsApply(queries, false, news)
      if (!news.jobs.length && !news.hasNodes && !news.isBegun) return
      timer ??= setTimeout(() => {
        timer = undefined
        newsApply(queries, true, newsOf([]))
      }, LISTS_MS)
    })
    return () => {
      stop()
      clearTimeout(timer)
    }
  }, [queries, isOn])
}
