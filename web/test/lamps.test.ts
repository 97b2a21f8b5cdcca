import { describe, expect, it } from 'vitest'
import type { Leaf } from '../src/lib/cells'
import { isStray, lampOf } from '../src/lib/lamps'

describe('the lamp of a machine', () => {
  it('tells the worst that is known of it', () => {
    expect(lampOf({ name: 'n', state: 'READY', blame: 0.2, gpus: [{ index: 0, isLost: false }] })).toBe('ready')
    expect(lampOf({ name: 'n', state: 'READY', blame: 0.5 })).toBe('warned')
    expect(lampOf({ name: 'n', state: 'READY', avoidedUntil: 1 })).toBe('warned')
    expect(lampOf({ name: 'n', state: 'READY', gpus: [{ index: 0, isLost: true }] })).toBe('warned')
    expect(lampOf({ name: 'n', state: 'CORDONED', blame: 3 })).toBe('cordoned')
    expect(lampOf({ name: 'n', state: 'UNHEALTHY' })).toBe('unhealthy')
    expect(lampOf({ name: 'n', state: 'LOST' })).toBe('lost')
    expect(lampOf(undefined)).toBe('unknown')
  })
})

describe('a GPU that is busy without a job', () => {
  const leaf = (isUsed: boolean): Leaf => ({ address: 'n/0', node: 'n', index: 0, within: [], isHealthy: true, isUsed, vc: '', priority: -1, jobs: [] })
  it('is one that nobody holds and that works', () => {
    expect(isStray(leaf(false), 30)).toBe(true)
    expect(isStray(leaf(false), 9)).toBe(false)
    expect(isStray(leaf(false), undefined)).toBe(false)
    expect(isStray(leaf(true), 90)).toBe(false)
  })
})
