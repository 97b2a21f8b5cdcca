import { describe, expect, it } from 'vitest'
import { alertKey, alertPath, hasEnded, unseenOf, type Alert } from '../src/lib/alerts'

const alert = (labels: Record<string, string>, state: 'active' | 'resolved' = 'active', startsAt = '2026-11-23T18:00:00.000Z'): Alert => ({
  labels: { alertname: 'X', severity: 'warn', ...labels },
  annotations: { summary: 'x' },
  startsAt,
  endsAt: '0001-01-01T00:00:00Z',
  status: { state },
  fingerprint: Object.values(labels).join(),
})

describe('an alert', () => {
  it('leads to the job or the node that it is about', () => {
    expect(alertPath(alert({ job_name: 'alice~train', username: 'alice' }))).toEqual({ href: '/jobs/alice~train', text: 'alice~train' })
    expect(alertPath(alert({ node_name: 'n 1', minor_number: '3' }))).toEqual({ href: '/cluster?tab=nodes&node=n%201', text: 'n 1' })
    expect(alertPath(alert({ request: 'abc' }))).toEqual({ href: '/admin?tab=requests', text: 'Requests' })
    expect(alertPath(alert({ name: 'store' }))).toBeNull()
  })
  it('has ended or not', () => {
    expect(hasEnded(alert({}))).toBe(false)
    expect(hasEnded(alert({}, 'resolved'))).toBe(true)
  })
  it('is unseen again when it comes again, and stays seen when it ends', () => {
    const first = alert({ node_name: 'a' })
    const seen = [alertKey(first)]
    expect(unseenOf([first], [])).toEqual([first])
    expect(unseenOf([first, alert({ node_name: 'a' }, 'resolved')], seen)).toEqual([])
    const again = alert({ node_name: 'a' }, 'active', '2026-11-23T19:00:00.000Z')
    expect(unseenOf([again, first], seen)).toEqual([again])
  })
})
