// The health of a machine in one word, for the map; and GPUs that work although no job holds them.
import type { ClusterNode } from '../api/client'
import { bandOf, type Leaf } from './cells'

export const LAMPS = ['ready', 'warned', 'cordoned', 'unhealthy', 'lost', 'unknown'] as const
export type LampState = (typeof LAMPS)[number]

const BLAME_MIN = 0.5 // failures counted against it, from which they are shown

/** The worst that is known of it; `undefined` is a machine that stands in the cells and that no engine has. */
export function lampOf(node: ClusterNode | undefined): LampState {
  switch (node?.state) {
    case 'LOST':
      return 'lost'
    case 'UNHEALTHY':
      return 'unhealthy'
    case 'CORDONED':
      return 'cordoned'
    case 'READY':
      return node.gpus?.some((gpu) => gpu.isLost) || (node.blame ?? 0) >= BLAME_MIN || node.avoidedUntil ? 'warned' : 'ready'
    default:
      return 'unknown'
  }
}

/** Does something work there that the platform has not started? `percent`: how busy it is, where that is sampled. */
export const isStray = (leaf: Leaf, percent: number | undefined) => !leaf.isUsed && percent !== undefined && bandOf(percent) !== 'idle'
