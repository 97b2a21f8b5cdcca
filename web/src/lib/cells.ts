// The cells of the cluster as HiveD's inspect paths give them, who holds each leaf, and how busy it is.
import type { ClusterNode, Schema, VirtualCluster } from '../api/client'

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
  virtualCell?: { cellAddress: string } // that it is bound to; of a leaf without guarantee its own address with "-opp"
}

export interface CellGroup {
  metadata: { name: string } // user~job/attempt
  status: {
    vc: string
    priority: number
    state: string
    physicalPlacement?: Record<string, number[]> | null // indices by node, without the type of the leaves
    virtualPlacement?: Record<string, string[]> | null // addresses of virtual leaves; none without guarantee
  }
}

/** A cell that others are in: a rack above a node, or a socket or a switch inside it. */
export interface Place {
  type: string
  name: string // its own part of the address
  address: string
}

export interface Leaf {
  address: string
  node: string
  index: number
  within: Place[] // cells between the node and this leaf, the outermost first
  isHealthy: boolean
  isUsed: boolean
  vc: string
  priority: number
  jobs: string[] // who holds it: one, or two while one is being preempted
}

export interface NodeCell {
  name: string
  type: string
  path: Place[] // cells above the node, the outermost first
  leaves: Leaf[]
}

export interface Chain {
  leafType: string
  nodes: NodeCell[]
}

/** The job of a group's name. */
export const jobOfGroup = (name: string) => name.replace(/\/[^/]*$/, '')

function add<T>(map: Map<string, T[]>, key: string, value: T) {
  const before = map.get(key)
  if (!before) map.set(key, [value])
  else if (!before.includes(value)) before.push(value)
}

/** A leaf with the node that it is in and the index that its address names. */
interface PlacedLeaf {
  cell: Cell
  node: string
  index: number
  within: Place[]
  key: string // of the node and the index
}

const ownName = (cell: Cell) => cell.cellAddress.split('/').at(-1) ?? ''
const placeOf = (cell: Cell): Place => ({ type: cell.cellType, name: ownName(cell), address: cell.cellAddress })

function leavesUnder(cell: Cell, node: string, within: Place[] = []): PlacedLeaf[] {
  if (cell.cellChildren?.length) return cell.cellChildren.flatMap((child) => leavesUnder(child, node, child.cellChildren?.length ? [...within, placeOf(child)] : within))
  const index = Number(ownName(cell))
  return [{ cell, node, index, within, key: `${node}/${index}` }]
}

/**
 * Who holds a leaf. A node and an index name two of them where a node has cells of GPUs and of processors: then the
 * virtual leaf says which one a job with a guarantee has. A job without one is named at both.
 */
function holdersOf(leaves: PlacedLeaf[], groups: CellGroup[]): (leaf: PlacedLeaf) => string[] {
  const byPlace = new Map<string, string[]>()
  const byVirtual = new Map<string, string[]>()
  for (const { metadata, status } of groups) {
    const job = jobOfGroup(metadata.name)
    for (const [node, indices] of Object.entries(status.physicalPlacement ?? {})) for (const index of indices) add(byPlace, `${node}/${index}`, job)
    for (const address of Object.values(status.virtualPlacement ?? {}).flat()) add(byVirtual, address, job)
  }
  const boundOf = (leaf: Cell) => byVirtual.get(leaf.virtualCell?.cellAddress ?? '') ?? []
  const bound = new Map<string, Cell[]>() // by job and place
  for (const { cell, key } of leaves) for (const job of boundOf(cell)) add(bound, `${job} ${key}`, cell)
  return ({ cell, key }) => {
    if (!isHeld(cell)) return []
    const isCertain = cell.cellState === 'Used' && boundOf(cell).length > 0
    return (byPlace.get(key) ?? []).filter((job) => bound.get(`${job} ${key}`)?.includes(cell) ?? !isCertain)
  }
}

const isHeld = (leaf: Cell) => leaf.cellState === 'Used' || leaf.cellState === 'Reserving' || leaf.cellState === 'Reserved'

/** The cells that are nodes, each with what is above it: its address begins with theirs, and ends with the name of the node. */
function nodeCellsOf(cell: Cell, path: Place[] = []): { cell: Cell; path: Place[] }[] {
  if (cell.isNodeLevel || !cell.cellChildren?.length) return [{ cell, path }]
  return cell.cellChildren.flatMap((child) => nodeCellsOf(child, [...path, placeOf(cell)]))
}

export function chainsOf(cells: Cell[], groups: CellGroup[]): Chain[] {
  const tops = cells.map((top) => ({
    leafType: top.leafCellType ?? top.cellType,
    nodes: nodeCellsOf(top).map(({ cell, path }) => ({ cell, path, leaves: leavesUnder(cell, ownName(cell)) })),
  }))
  const jobsOf = holdersOf(tops.flatMap(({ nodes }) => nodes.flatMap(({ leaves }) => leaves)), groups)
  const chains = new Map<string, Chain>()
  for (const { leafType, nodes } of tops) {
    let chain = chains.get(leafType)
    if (!chain) chains.set(leafType, (chain = { leafType, nodes: [] }))
    for (const { cell: node, path, leaves } of nodes)
      chain.nodes.push({
        name: ownName(node),
        type: node.cellType,
        path,
        leaves: leaves.map((leaf): Leaf => {
          const { cell } = leaf
          return {
            address: cell.cellAddress,
            node: leaf.node,
            index: leaf.index,
            within: leaf.within,
            isHealthy: cell.cellHealthiness === 'Healthy',
            isUsed: isHeld(cell),
            vc: cell.vc ?? '',
            priority: cell.cellPriority,
            jobs: jobsOf(leaf),
          }
        }),
      })
  }
  return [...chains.values()]
}

/** Leaves, or the groups that they stand in: sockets, which hold switches, which hold GPUs. */
export interface LeafGroup {
  place: Place | null // null: the node itself
  parts: (Leaf | LeafGroup)[]
}

export function groupsOf(leaves: Leaf[]): LeafGroup {
  const node: LeafGroup = { place: null, parts: [] }
  for (const leaf of leaves) {
    let group = node
    for (const place of leaf.within) {
      const last = group.parts.at(-1)
      if (last && 'parts' in last && last.place?.address === place.address) group = last
      else {
        const next: LeafGroup = { place, parts: [] }
        group.parts.push(next)
        group = next
      }
    }
    group.parts.push(leaf)
  }
  return node
}

/** Nodes that stand in the same cells, in their order. */
export function racksOf(nodes: NodeCell[]): { path: Place[]; nodes: NodeCell[] }[] {
  const racks = new Map<string, { path: Place[]; nodes: NodeCell[] }>()
  for (const node of nodes) {
    const key = node.path.at(-1)?.address ?? ''
    const rack = racks.get(key)
    if (rack) rack.nodes.push(node)
    else racks.set(key, { path: node.path, nodes: [node] })
  }
  return [...racks.values()]
}

// ---- whose they are ----

/** Nodes with a leaf that the virtual cluster has now, with its guarantee or without one; all of them when none is asked for. */
export const nodesOfCluster = (nodes: NodeCell[], vc: string) => (vc ? nodes.filter((node) => node.leaves.some((leaf) => leaf.vc === vc)) : nodes)

export interface Share {
  vc: string
  isMine: boolean
  total: number // guaranteed
  used: number // with this guarantee
  bad: number
  opportunistic: number // used without a guarantee
  free: number // of the guarantee
}

/** What each virtual cluster has of one type of leaves; first those that this person may use (null: all). */
export function sharesOf(clusters: Record<string, VirtualCluster>, leafType: string, mine: readonly string[] | null): Share[] {
  const shares = Object.entries(clusters).flatMap(([vc, { skus }]): Share[] => {
    const quota = skus?.[leafType]
    if (!quota) return []
    const { total = 0, used = 0, bad = 0, opportunistic = 0 } = quota
    return [{ vc, isMine: mine?.includes(vc) ?? true, total, used, bad, opportunistic, free: Math.max(0, total - used - bad) }]
  })
  return [...shares.filter(({ isMine }) => isMine), ...shares.filter(({ isMine }) => !isMine)]
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
