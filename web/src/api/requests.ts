// What users and visitors ask administrators for.
import { queryOptions } from '@tanstack/react-query'
import { call, enc, get, type Schema } from './client'
import { pagesAll } from './pages'
import { SELDOM_MS } from './queries'

export type Request = Schema['Request']

const PATH = '/api/v2/requests'

/** All that fit: `filter` is a query string of GET /api/v2/requests without limit and cursor. */
export const requestsQuery = (filter: string) =>
  queryOptions({
    queryKey: ['requests', filter],
    queryFn: async ({ signal }) => {
      const all = await pagesAll<Request>((cursor) => get(`${PATH}?limit=1000&cursor=${enc(cursor)}${filter ? '&' : ''}${filter}`, signal))
      return { totalCount: all.length, data: all }
    },
    refetchInterval: SELDOM_MS,
  })

export const requestsOf = (user: string) => requestsQuery(`username=${enc(user)}`)

/** How many wait for a decision. For administrators. */
export const requestCountQuery = queryOptions({
  queryKey: ['requests', 'count'],
  queryFn: async ({ signal }) => (await get<Schema['Requests']>(`${PATH}?status=open&limit=1`, signal)).totalCount,
  refetchInterval: SELDOM_MS,
})

export const clusterAsk = (virtualCluster: string, reason: string) => call<Request>('POST', PATH, { json: { virtualCluster, ...(reason ? { reason } : {}) } })

export const accountAsk = (account: Schema['AccountRequest']) => call('POST', `${PATH}/account`, { json: account, isAnonymous: true })

const decide = (id: string, json: Schema['RequestDecision']) => call<Request>('PUT', `${PATH}/${enc(id)}/status`, { json })

export const requestWithdraw = (id: string) => decide(id, { status: 'withdrawn' })
export const requestRefuse = (id: string, reason: string) => decide(id, { status: 'refused', reason })
/** `group` empty: to the user alone. `reuseName`: of an account, though a removed user had the name. */
export const requestAccept = (id: string, group: string, reason: string, reuseName = false) =>
  decide(id, { status: 'accepted', ...(group ? { group } : {}), ...(reason ? { reason } : {}), ...(reuseName ? { reuseName } : {}) })
