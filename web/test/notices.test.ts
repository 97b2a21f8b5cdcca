import { describe, expect, it } from 'vitest'
import { decisionsExtension, hearsDecisions, noticesExtension, noticesOfUser } from '../src/lib/notices'

const kept = (extension: object) => ({ extension: extension as Record<string, never> }) // of which the API says nothing

describe('of what somebody wants to be told', () => {
  it('stands in the extension of the user, as in a job file', () => {
    expect(noticesExtension(['failed'])).toEqual({ jobStatusChangeNotification: { running: false, retried: false, succeeded: false, stopped: false, failed: true } })
    expect(noticesOfUser(kept(noticesExtension(['failed', 'running'])))).toEqual(['running', 'failed'])
  })
  it('is nothing of those who have said nothing, or something else', () => {
    expect(noticesOfUser(undefined)).toEqual([])
    for (const extension of [{}, { jobStatusChangeNotification: null }, { jobStatusChangeNotification: 'failed' }, { jobStatusChangeNotification: { failed: 'yes' } }]) expect(noticesOfUser(kept(extension))).toEqual([])
  })
  it('is the decision on each request, unless the account says otherwise', () => {
    expect(hearsDecisions(undefined)).toBe(true)
    expect(hearsDecisions(kept({ requestDecisionNotification: 'no' }))).toBe(true)
    expect(hearsDecisions(kept(decisionsExtension(true)))).toBe(true)
    expect(hearsDecisions(kept(decisionsExtension(false)))).toBe(false)
  })
})
