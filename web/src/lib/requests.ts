// Requests: which group can carry what is asked for, and what a user has asked for already.
import type { Schema } from '../api/client'

type Request = Schema['Request']
type Group = Schema['Groups'][number]

const nameOf = (group: Group) => group.groupname ?? ''
const makesAdmins = (group: Group) => group.extension?.acls?.admin ?? false

/** Groups by which the request can be accepted: nobody becomes an administrator so. Everybody is in `default` already. */
export function groupsFor(request: Request, groups: Group[]): string[] {
  const fitting = groups.filter((group) => !makesAdmins(group) && (request.kind === 'account' ? nameOf(group) !== 'default' : group.extension?.acls?.virtualClusters?.includes(request.virtualCluster ?? '')))
  return fitting.map(nameOf).sort()
}

/** The open request for this virtual cluster. */
export const openFor = (requests: Request[], virtualCluster: string) => requests.find((request) => request.status === 'open' && request.virtualCluster === virtualCluster)

/** Is there anything to ask for? An administrator may use all of them, and `default` is everybody's. */
export const mayAsk = (granted: string[] | undefined, isAdmin: boolean, virtualCluster: string) => !isAdmin && virtualCluster !== 'default' && granted !== undefined && !granted.includes(virtualCluster)
