// The cells of the cluster as HiveD's inspect paths give them, who holds each leaf, and how busy it is.
import type { ClusterNode, Schema } from '../api/client'

export interface Cell {
  leafCellType?: string
  cellType: string
  isNodeLevel?: boolean
  cellAddress: string
  cellState: string
  cellHealthiness: string
  cellPriority: number
  cellChildren?: Cell[]
  vc?: string
}

export interface CellGroup {
  metadata: { name: string } // user~job/attempt
  status: { vc: string; priority: number; state: string; physicalPlacement?: Record<string, number[]> | null }
}

export interface Leaf {
  address: string
  node: string
  index: number
  isHealthy: boolean
  isUsed: boolean
  vc: string
  priority: number
  jobs: string[] // who holds it: one, or two while one is being preempted
}

export interface NodeCell {
  name: string
  type: string
  parent: string // address of the cell above: a rack, a switch
  leaves: Leaf[]
}

export interface Chain {
  leafType: string
  nodes: NodeCell[]
}

const leavesUnder = (cell: Cell): Cell[] => (cell.cellChildren?.length ? cell.cellChildren.flatMap(leavesUnder) : [cell])

/** The job of a group's name. */
export const jobOfGroup = (name: string) => name.replace(/\/[^/]*$/, '')

export function holdersOf(groups: CellGroup[]): Map<string, string[]> {
  const holders = new Map<string, string[]>()
  for (const group of groups)
    for (const [node, indices] of Object.entries(group.status.physicalPlacement ?? {}))
      for (const index of indices) {
        const key = `${node}/${index}`
        const job = jobOfGroup(group.metadata.name)
        const before = holders.get(key)
        if (!before) holders.set(key, [job])
        else if (!before.includes(job)) before.push(job)
      }
  return holders
}

function nodeCellsOf(cell: Cell, parent: string): [Cell, string][] {
  if (cell.isNodeLevel || !cell.cellChildren?.length) return [[cell, parent]]
  return cell.cellChildren.flatMap((child) => nodeCellsOf(child, cell.cellAddress))
}

export function chainsOf(cells: Cell[], groups: CellGroup[]): Chain[] {
  const holders = holdersOf(groups)
  const chains = new Map<string, Chain>()
  for (const top of cells) {
    const leafType = top.leafCellType ?? top.cellType
    let chain = chains.get(leafType)
    if (!chain) chains.set(leafType, (chain = { leafType, nodes: [] }))
    for (const [cell, parent] of nodeCellsOf(top, '')) {
      const leaves = leavesUnder(cell).map((leaf): Leaf => {
        const parts = leaf.cellAddress.split('/')
        const index = Number(parts.at(-1))
        const node = parts[0] ?? ''
        const isUsed = leaf.cellState === 'Used' || leaf.cellState === 'Reserving' || leaf.cellState === 'Reserved'
        return {
          address: leaf.cellAddress,
          node,
          index,
          isHealthy: leaf.cellHealthiness === 'Healthy',
          isUsed,
          vc: leaf.vc ?? '',
          priority: leaf.cellPriority,
          jobs: isUsed ? (holders.get(`${node}/${index}`) ?? []) : [],
        }
      })
      chain.nodes.push({ name: cell.cellAddress.split('/')[0] ?? '', type: cell.cellType, parent, leaves })
    }
  }
  return [...chains.values()]
}

// ---- what is held, and what of it is busy ----

/** How busy each sampled GPU is now, in percent, by "node/index". */
export function busyOf(nodes: ClusterNode[]): Map<string, number> {
  const busy = new Map<string, number>()
  for (const node of nodes)
    for (const gpu of node.gpus ?? []) if (typeof gpu.utilizationPercent === 'number') busy.set(`${node.name}/${gpu.index}`, gpu.utilizationPercent)
  return busy
}

export const BANDS = ['idle', 'low', 'middle', 'high', 'unknown'] as const
export type Band = (typeof BANDS)[number]

/** Of OpenPAI's limit, ten percent, on. */
export function bandOf(percent: number | undefined): Band {
  if (percent === undefined) return 'unknown'
  return percent < 10 ? 'idle' : percent < 40 ? 'low' : percent < 70 ? 'middle' : 'high'
}

export interface Busy {
  held: number // GPUs
  sampled: number // of these
  busy: number // GPUs' worth of work of the sampled ones
}

/** By the type of its leaves: cells of processors have none, and their numbers are not those of GPUs. What no type is known of has some. */
export const hasGpus = (types: Schema['SkuTypes'], leafType: string) => types[leafType]?.gpu !== 0

/** Of the GPUs that jobs hold, by the virtual cluster of the job. */
export function busyByCluster(cells: Cell[], groups: CellGroup[], busy: Map<string, number>, types: Schema['SkuTypes']): Map<string, Busy> {
  const clusterOf = new Map(groups.map((group) => [jobOfGroup(group.metadata.name), group.status.vc]))
  const found = new Map<string, Busy>()
  const chains = chainsOf(cells, groups).filter(({ leafType }) => hasGpus(types, leafType))
  for (const leaf of chains.flatMap((chain) => chain.nodes.flatMap((node) => node.leaves))) {
    if (!leaf.isUsed) continue
    const vc = clusterOf.get(leaf.jobs[0] ?? '') ?? leaf.vc
    const one = found.get(vc) ?? { held: 0, sampled: 0, busy: 0 }
    const percent = busy.get(`${leaf.node}/${leaf.index}`)
    one.held++
    if (percent !== undefined) {
      one.sampled++
      one.busy += percent / 100
    }
    found.set(vc, one)
  }
  return found
}

/** The same name has the same of eight colours, on every page and every day. */
export function colourIndex(name: string): number {
  let hash = 2166136261
  for (let i = 0; i < name.length; i++) hash = Math.imul(hash ^ name.charCodeAt(i), 16777619)
  return ((hash >>> 0) % 8) + 1
}
