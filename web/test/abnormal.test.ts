import { describe, expect, it } from 'vitest'
import type { JobSummary, Schema } from '../src/api/client'
import { gpuShare, signsOf } from '../src/lib/abnormal'

const HOUR = 3600_000
const NOW = 1_800_000_000_000
const job = (more: Partial<JobSummary>) => ({ state: 'RUNNING', submissionTime: NOW - HOUR, launchedTime: NOW - HOUR, retries: 0, ...more }) as JobSummary
const use = (points: (number | null)[], gpu = 4) => ({ stepSeconds: 10, given: { gpu }, use: { gpu: { mean: 0, most: 0, points } } }) as unknown as Schema['Use']

describe('signs', () => {
  it('are none of a job that does its work', () => expect(signsOf(job({}), NOW, 0.9)).toEqual([]))
  it('tell of a day of waiting', () => {
    expect(signsOf(job({ state: 'WAITING', submissionTime: NOW - 24 * HOUR - 1 }), NOW, null)).toEqual([{ kind: 'waits', ms: 24 * HOUR + 1 }])
    expect(signsOf(job({ state: 'WAITING', submissionTime: NOW - 24 * HOUR }), NOW, null)).toEqual([])
  })
  it('tell of five days of running, not of waiting before', () => {
    expect(signsOf(job({ launchedTime: NOW - 121 * HOUR }), NOW, null)).toEqual([{ kind: 'runs', ms: 121 * HOUR }])
    expect(signsOf(job({ submissionTime: NOW - 121 * HOUR }), NOW, null)).toEqual([])
  })
  it('tell of GPUs that idle, and of retries', () => {
    expect(signsOf(job({ retries: 10 }), NOW, 0.099)).toEqual([{ kind: 'idle', percent: 10 }, { kind: 'retries', count: 10 }])
    expect(signsOf(job({}), NOW, 0.1)).toEqual([])
  })
})

describe('the share of GPUs', () => {
  it('is of the last ten minutes', () => expect(gpuShare(use([...Array<number>(60).fill(4), ...Array<number>(60).fill(1)]))).toBe(0.25))
  it('is not known of less, of gaps, or without GPUs', () => {
    expect(gpuShare(use(Array<number>(59).fill(0)))).toBeNull()
    expect(gpuShare(use([...Array<number>(59).fill(0), null]))).toBeNull()
    expect(gpuShare(use(Array<number>(60).fill(0), 0))).toBeNull()
  })
})
