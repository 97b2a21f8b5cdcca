// How many devices of each type are free, before one submits.
import type { ClusterNode, VirtualCluster } from '../api/client'
import type { NodeUse } from '../api/queries'

export interface Free {
  free: number
  total: number
}

type Clusters = Record<string, VirtualCluster>

function add(sums: Map<string, Free>, type: string, free: number, total: number) {
  const before = sums.get(type) ?? { free: 0, total: 0 }
  sums.set(type, { free: before.free + Math.max(0, free), total: before.total + total })
}

/** What is guaranteed to the virtual cluster and held by no job with that guarantee: an opportunistic job is preempted for it. */
export function freeOfCluster(clusters: Clusters, vc: string): Map<string, Free> {
  const sums = new Map<string, Free>()
  for (const [type, { total = 0, used = 0, bad = 0 }] of Object.entries(clusters[vc]?.skus ?? {})) add(sums, type, total - used - bad, total)
  return sums
}

/** What no job holds anywhere. */
export function freeOfAll(clusters: Clusters): Map<string, Free> {
  const sums = new Map<string, Free>()
  for (const { skus } of Object.values(clusters)) for (const [type, { total = 0, used = 0, bad = 0, opportunistic = 0 }] of Object.entries(skus ?? {})) add(sums, type, total - used - bad - opportunistic, total)
  return sums
}

export interface FreeNodes {
  type: string
  owner: string // the virtual cluster that alone has guarantees there; "": shared
  free: number // devices that are free on each of them
  nodes: number
}

/** What of the nodes this person can have: those of a virtual cluster that is not theirs are left out. */
export function usableNodes(use: Record<string, NodeUse>, mine: readonly string[] | null): Record<string, NodeUse> {
  return Object.fromEntries(Object.entries(use).filter(([, { virtualCluster }]) => !mine || !virtualCluster || mine.includes(virtualCluster)))
}

/** How many nodes have so many free devices, by type; shared ones first, then those of each virtual cluster. */
export function freeNodes(use: Record<string, NodeUse>, typeOf: (node: string) => string): FreeNodes[] {
  const rows = new Map<string, FreeNodes>()
  for (const [name, { gpuAvailable: free, virtualCluster: owner = '' }] of Object.entries(use)) {
    if (!free) continue
    const type = typeOf(name)
    const key = JSON.stringify([type, owner, free])
    const row = rows.get(key) ?? { type, owner, free, nodes: 0 }
    rows.set(key, { ...row, nodes: row.nodes + 1 })
  }
  const order = (a: string, b: string) => (a < b ? -1 : a > b ? 1 : 0)
  return [...rows.values()].sort((a, b) => order(a.owner, b.owner) || order(b.type, a.type) || b.free - a.free)
}

/** The same where jobs are placed without cells: virtual clusters have no types there, and nodes have. */
export function freeOfNodes(nodes: ClusterNode[], use: Record<string, NodeUse>): Map<string, Free> {
  const sums = new Map<string, Free>()
  for (const { name, gpuType } of nodes) {
    const one = use[name ?? '']
    if (gpuType && one?.gpuTotal) add(sums, gpuType, one.gpuAvailable, one.gpuTotal)
  }
  return sums
}
