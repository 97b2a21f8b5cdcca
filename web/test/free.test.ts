import { describe, expect, it } from 'vitest'
import type { ClusterNode } from '../src/api/client'
import { freeNodes, freeOfAll, freeOfCluster, freeOfNodes, usableNodes } from '../src/lib/free'

describe('nodes with free devices', () => {
  const use = (gpuAvailable: number, virtualCluster?: string) => ({ gpuUsed: 0, gpuAvailable, gpuTotal: 8, ...(virtualCluster ? { virtualCluster } : {}) })
  const all = { a: use(8), b: use(8), c: use(2), d: use(8, 'vision'), e: use(8, 'speech'), f: use(0, 'vision'), g: use(8, 'vision') }
  it('are counted by type, by whose they are, and by how much is free', () => {
    expect(freeNodes(all, (name) => (name === 'b' ? 'A100' : 'V100'))).toEqual([
      { type: 'V100', owner: '', free: 8, nodes: 1 },
      { type: 'V100', owner: '', free: 2, nodes: 1 },
      { type: 'A100', owner: '', free: 8, nodes: 1 },
      { type: 'V100', owner: 'speech', free: 8, nodes: 1 },
      { type: 'V100', owner: 'vision', free: 8, nodes: 2 },
    ])
  })
  it('are left out where one may not use the virtual cluster', () => {
    expect(Object.keys(usableNodes(all, ['default', 'speech']))).toEqual(['a', 'b', 'c', 'e'])
    expect(Object.keys(usableNodes(all, null))).toHaveLength(7)
  })
})

describe('what is free', () => {
  const clusters = {
    default: { skus: { V100: { total: 8, used: 5, bad: 1, opportunistic: 2 }, A100: { total: 4, used: 4, bad: 0, opportunistic: 3 } } },
    vision: { skus: { A100: { total: 4, used: 1, bad: 0, opportunistic: 1 } } },
  }
  it('in a virtual cluster is what its guarantee leaves', () => {
    expect([...freeOfCluster(clusters, 'default')]).toEqual([['V100', { free: 2, total: 8 }], ['A100', { free: 0, total: 4 }]])
    expect(freeOfCluster(clusters, 'none').size).toBe(0)
    expect(freeOfCluster({ default: {} }, 'default').size).toBe(0)
  })
  it('in all of them is what no job holds, and never less than nothing', () => {
    expect([...freeOfAll(clusters)]).toEqual([['V100', { free: 0, total: 8 }], ['A100', { free: 2, total: 8 }]])
  })
  it('without cells is summed by the type of the nodes', () => {
    const node = (name: string, gpuType: string | null) => ({ name, gpuType }) as ClusterNode
    const use = { a: { gpuUsed: 1, gpuAvailable: 3, gpuTotal: 4 }, b: { gpuUsed: 0, gpuAvailable: 4, gpuTotal: 4 }, c: { gpuUsed: 0, gpuAvailable: 0, gpuTotal: 0 } }
    expect([...freeOfNodes([node('a', 'T4'), node('b', 'T4'), node('c', 'T4'), node('d', 'T4'), node('b', null)], use)]).toEqual([['T4', { free: 7, total: 8 }]])
  })
})
