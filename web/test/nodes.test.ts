import { describe, expect, it } from 'vitest'
import type { ClusterNode } from '../src/api/client'
import { busyOfNode, loadOf, nodeLine, nodeOf, nodeOrderOf, nodesShown, type NodeFilter, type NodeLine } from '../src/lib/nodes'

const line = (node: ClusterNode, more: Partial<NodeLine> = {}): NodeLine => ({ node, gpuUsed: 0, busy: null, jobs: [], owner: '', ...more })
const job = (name: string, virtualCluster = 'red') => ({ name, virtualCluster, taskCount: 1 })
const lines = [
  line({ name: 'gpu-10', address: '10.0.0.10', state: 'READY', gpu: 8, cpu: 64, memoryMB: 512 }, { gpuUsed: 8, busy: 90, jobs: [job('a~b')] }),
  line({ name: 'gpu-2', address: '10.0.0.2', state: 'LOST', gpu: 8, cpu: 32, memoryMB: 1024, reason: 'it does not answer' }, { gpuUsed: 2, busy: 5, jobs: [job('a~b'), job('a~c', 'blue')], owner: 'red' }),
  line({ name: 'cpu-1', address: '10.1.0.1', state: 'CORDONED', gpu: 0, cpu: 96, memoryMB: 256, cordonedBy: 'admin', cordonReason: 'a disk' }),
]
const shown = (filter: Partial<NodeFilter>) => nodesShown(lines, { text: '', order: '', vc: '', ...filter }).map(({ node }) => node.name)

describe('the list of nodes', () => {
  it('is ordered by name, with numbers as numbers', () => {
    expect(shown({})).toEqual(['cpu-1', 'gpu-2', 'gpu-10'])
    expect(shown({ order: '-name' })).toEqual(['gpu-10', 'gpu-2', 'cpu-1'])
    expect(shown({ order: 'no column' })).toEqual(['cpu-1', 'gpu-2', 'gpu-10'])
  })
  it('is ordered by each other column', () => {
    expect(shown({ order: 'state' })).toEqual(['gpu-10', 'cpu-1', 'gpu-2'])
    expect(shown({ order: '-cpu' })).toEqual(['cpu-1', 'gpu-10', 'gpu-2'])
    expect(shown({ order: 'memory' })).toEqual(['cpu-1', 'gpu-10', 'gpu-2'])
    expect(shown({ order: '-jobs' })).toEqual(['gpu-2', 'gpu-10', 'cpu-1'])
    expect(shown({ order: 'remarks' })).toEqual(['cpu-1', 'gpu-2', 'gpu-10'])
  })
  it('has what a column says nothing about last, both ways', () => {
    expect(shown({ order: 'gpu' })).toEqual(['gpu-2', 'gpu-10', 'cpu-1'])
    expect(shown({ order: '-gpu' })).toEqual(['gpu-10', 'gpu-2', 'cpu-1'])
    expect(shown({ order: 'busy' })).toEqual(['gpu-2', 'gpu-10', 'cpu-1'])
    expect(shown({ order: '-busy' })).toEqual(['gpu-10', 'gpu-2', 'cpu-1'])
  })
  it('is ordered by what nodes use now, where they are sampled', () => {
    const nodes: ClusterNode[] = [
      { name: 'a', cpu: 8, use: { cpu: 4, memory: 10, read: 5, written: 1, sent: 9 } },
      { name: 'b', cpu: 64, use: { cpu: 8, memory: 30, written: 7, received: 1, sent: 2 } },
      { name: 'c', cpu: 8 },
    ]
    const by = (order: string) => nodesShown(nodes.map((node) => line(node)), { text: '', order, vc: '' }).map(({ node }) => node.name).join('')
    expect([by('load'), by('-load'), by('-taken'), by('disk'), by('-network')]).toEqual(['bac', 'abc', 'bac', 'abc', 'abc'])
    expect(nodes.map(loadOf)).toEqual([50, 13, null])
  })
  it('has only nodes of this name or address', () => {
    expect(shown({ text: ' GPU-1' })).toEqual(['gpu-10'])
    expect(shown({ text: '10.1.' })).toEqual(['cpu-1'])
    expect(shown({ text: 'nowhere' })).toEqual([])
  })
  it('has only nodes with jobs of this virtual cluster, and its own', () => {
    expect(shown({ vc: 'red' })).toEqual(['gpu-2', 'gpu-10'])
    expect(shown({ vc: 'blue' })).toEqual(['gpu-2'])
    expect(shown({ vc: 'green' })).toEqual([])
  })
  it('has what is known of the use of each', () => {
    const use = { gpuUsed: 3, gpuAvailable: 1, gpuTotal: 4, virtualCluster: 'red', jobs: [job('a~b')] }
    expect(nodeLine({ name: 'n' }, use)).toEqual({ node: { name: 'n' }, gpuUsed: 3, busy: null, jobs: [job('a~b')], owner: 'red' })
    expect(nodeLine({ name: 'n' }, undefined)).toEqual({ node: { name: 'n' }, gpuUsed: 0, busy: null, jobs: [], owner: '' })
  })
  it('has a node under its name and its address', () => {
    const nodes = lines.map(({ node }) => node)
    expect(nodeOf(nodes, 'gpu-2')).toBe('gpu-2')
    expect(nodeOf(nodes, '10.0.0.10')).toBe('gpu-10')
    expect(nodeOf(nodes, 'gpu-3')).toBe('gpu-3')
  })
  it('takes its order from the address', () => {
    expect(nodeOrderOf('-busy')).toEqual({ by: 'busy', isDown: true })
    expect(nodeOrderOf('-else')).toEqual({ by: 'name', isDown: false })
  })
})

describe('what the GPUs of a node do', () => {
  it('is the mean of those that are sampled', () => {
    expect(busyOfNode({ gpus: [{ utilizationPercent: 10 }, { utilizationPercent: 31 }, { utilizationPercent: null }] } as ClusterNode)).toBe(21)
    expect(busyOfNode({ gpus: [] })).toBeNull()
    expect(busyOfNode({})).toBeNull()
  })
})
