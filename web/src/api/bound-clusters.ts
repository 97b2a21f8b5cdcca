// Other clusters that a person has named, to send jobs there: in the extension of the user, as OpenPAI's portal keeps them.
import { clustersOf, type BoundClusters, type OtherCluster } from '../lib/transfer'
import { call, enc, get, type User } from './client'

const boundOf = (user: User) => (user.extension as { boundedClusters?: BoundClusters } | undefined)?.boundedClusters

export const clustersOfUser = (user: User): OtherCluster[] => clustersOf(boundOf(user))

/** Changes them as they are now: another tab may have changed them since the page was read. */
async function boundChange(user: string, change: (bound: BoundClusters) => BoundClusters) {
  const now = boundOf(await get<User>(`/api/v2/users/${enc(user)}`)) ?? {}
  await call('PUT', `/api/v2/users/${enc(user)}/extension`, { json: { extension: { boundedClusters: change(now) } } })
}

export const clusterAdd = (user: string, { alias, uri, kind }: OtherCluster) => boundChange(user, (bound) => ({ ...bound, [alias]: { alias, uri, kind } }))
export const clusterRemove = (user: string, alias: string) => boundChange(user, (bound) => Object.fromEntries(Object.entries(bound).filter(([name]) => name !== alias)))
