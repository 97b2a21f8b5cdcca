// Which nodes a list shows, and in which order.
import type { ClusterNode, Schema } from '../api/client'
import type { NodeUse } from '../api/queries'

export const NODE_ORDERS = ['name', 'state', 'gpu', 'busy', 'cpu', 'load', 'memory', 'taken', 'disk', 'network', 'jobs', 'remarks'] as const
export type NodeOrder = (typeof NODE_ORDERS)[number]

export interface NodeLine {
  node: ClusterNode
  gpuUsed: number
  busy: number | null // percent of its GPUs; null: nothing has sampled them
  jobs: Schema['NodeJob'][]
  owner: string // the virtual cluster that alone has guarantees there
}

export interface NodeFilter {
  text: string // of the name or the address
  order: string // a NodeOrder; with "-" before it downwards
  vc: string // "" or: nodes with jobs of this virtual cluster, or its own
}

const STATES = ['READY', 'CORDONED', 'UNHEALTHY', 'LOST'] // the worst last

/** What the GPUs of a node do just now, in percent of all that are sampled. */
export function busyOfNode(node: ClusterNode): number | null {
  const sampled = (node.gpus ?? []).flatMap(({ utilizationPercent: percent }) => (percent === null || percent === undefined ? [] : [percent]))
  return sampled.length ? Math.round(sampled.reduce((sum, percent) => sum + percent, 0) / sampled.length) : null
}

/** A node with what is known of its use. */
export const nodeLine = (node: ClusterNode, use: NodeUse | undefined): NodeLine => ({ node, gpuUsed: use?.gpuUsed ?? 0, busy: busyOfNode(node), jobs: use?.jobs ?? [], owner: use?.virtualCluster ?? '' })

/** The name of the node that is called so, or has this address; else what was given. */
export const nodeOf = (nodes: ClusterNode[], given: string): string => (nodes.find(({ name }) => name === given) ?? nodes.find(({ address }) => address === given))?.name ?? given

/** Of its processors, in percent, what everything on the node takes; null: not sampled. */
export const loadOf = ({ cpu, use }: ClusterNode): number | null => (cpu && use?.cpu !== undefined ? Math.round((100 * use.cpu) / cpu) : null)

/** Of what is known; null: nothing is. */
const sumOf = (one: number | undefined, other: number | undefined): number | null => (one === undefined && other === undefined ? null : (one ?? 0) + (other ?? 0))

const remarkOf = ({ cordonedBy, cordonReason, reason, blame, avoidedUntil }: ClusterNode) =>
  [cordonedBy, cordonReason, reason, (blame ?? 0) >= 0.5 ? String(blame) : '', avoidedUntil ? String(avoidedUntil) : ''].filter(Boolean).join(' ')

/** Null: the node has nothing in this column. */
function valueOf({ node, gpuUsed, busy, jobs }: NodeLine, order: NodeOrder): string | number | null {
  switch (order) {
    case 'name':
      return node.name ?? ''
    case 'state':
      return STATES.indexOf(node.state ?? '') // what is no state of ours stands first
    case 'gpu':
      return node.gpu ? gpuUsed : null
    case 'busy':
      return busy
    case 'cpu':
      return node.cpu ?? null
    case 'load':
      return loadOf(node)
    case 'memory':
      return node.memoryMB ?? null
    case 'taken':
      return node.use?.memory ?? null
    case 'disk':
      return sumOf(node.use?.read, node.use?.written)
    case 'network':
      return sumOf(node.use?.received, node.use?.sent)
    case 'jobs':
      return jobs.length
    case 'remarks':
      return remarkOf(node) || null
  }
}

const names = new Intl.Collator('en', { numeric: true }) // node-2 stands before node-10

/** The column, and whether the rows run downwards. What no column is called orders by name. */
export function nodeOrderOf(order: string): { by: NodeOrder; isDown: boolean } {
  const by = NODE_ORDERS.find((one) => one === order.replace(/^-/, ''))
  return by ? { by, isDown: order.startsWith('-') } : { by: 'name', isDown: false }
}

/** Nodes that have nothing in the column by which they are ordered stand last, whichever way it runs. */
export function nodesShown(lines: NodeLine[], filter: NodeFilter): NodeLine[] {
  const part = filter.text.trim().toLowerCase()
  const { by, isDown } = nodeOrderOf(filter.order)
  const sign = isDown ? -1 : 1
  const compare = (a: NodeLine, b: NodeLine) => {
    const [left, right] = [valueOf(a, by), valueOf(b, by)]
    if (left === null || right === null) return Number(left === null) - Number(right === null)
    return sign * (typeof left === 'number' && typeof right === 'number' ? left - right : names.compare(String(left), String(right)))
  }
  const { vc } = filter
  return lines
    .filter(({ jobs, owner }) => !vc || owner === vc || jobs.some((job) => job.virtualCluster === vc))
    .filter(({ node }) => !part || [node.name, node.address].some((text) => text?.toLowerCase().includes(part)))
    .sort((a, b) => compare(a, b) || names.compare(a.node.name ?? '', b.node.name ?? ''))
}
