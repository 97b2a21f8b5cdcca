// Jobs that an administrator should look at, and why.
import type { JobSummary, Schema } from '../api/client'

const HOUR_MS = 3600_000

/** The limits of OpenPAI's portal for the time and the GPUs; waiting and retries are ours. */
export const LIMITS = { waitMs: 24 * HOUR_MS, runMs: 5 * 24 * HOUR_MS, gpuShare: 0.1, gpuMs: 600_000, retries: 10 }

export type Sign = { kind: 'waits' | 'runs'; ms: number } | { kind: 'retries'; count: number } | { kind: 'idle'; percent: number }

/** The share of its GPUs that a job has kept busy for the last ten minutes; null: not so much is known. */
export function gpuShare(use: Schema['Use']): number | null {
  const points = use.use.gpu?.points ?? []
  const wanted = Math.ceil(LIMITS.gpuMs / (use.stepSeconds * 1000))
  const known = points.slice(-wanted).filter((point): point is number => point !== null)
  if (!use.given.gpu || known.length < wanted) return null
  return known.reduce((sum, point) => sum + point, 0) / known.length / use.given.gpu
}

export function signsOf(job: JobSummary, now: number, share: number | null): Sign[] {
  const signs: Sign[] = []
  const waited = now - (job.submissionTime ?? now)
  const ran = now - (job.launchedTime ?? now)
  if (job.state === 'WAITING' && waited > LIMITS.waitMs) signs.push({ kind: 'waits', ms: waited })
  if (job.state === 'RUNNING' && ran > LIMITS.runMs) signs.push({ kind: 'runs', ms: ran })
  if (job.state === 'RUNNING' && share !== null && share < LIMITS.gpuShare) signs.push({ kind: 'idle', percent: Math.round(100 * share) })
  if ((job.retries ?? 0) >= LIMITS.retries) signs.push({ kind: 'retries', count: job.retries ?? 0 })
  return signs
}
