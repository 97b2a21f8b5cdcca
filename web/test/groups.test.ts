import { describe, expect, it } from 'vitest'
import type { Group } from '../src/api/client'
import { groupBefore, groupChanged, groupForm, groupIsStill, groupPatch, quotaChanged, quotaIsStill, quotaOwn } from '../src/lib/groups'

const lab: Group = { groupname: 'lab', description: 'The lab', externalName: '', extension: { acls: { admin: false, virtualClusters: ['a', 'b'], storageConfigs: ['home'] } } as Group['extension'] }

describe('a change of a group', () => {
  const form = { ...groupForm(lab), description: 'Our lab', virtualClusters: ['b', 'c'] }
  it('is what differs', () => {
    expect(groupChanged(lab, form)).toEqual({ description: 'Our lab', virtualClusters: ['b', 'c'] })
    expect(groupChanged(lab, { ...groupForm(lab), virtualClusters: ['b', 'a'] })).toEqual({})
  })
  it('is taken back without what others have changed since', () => {
    const before = groupBefore(lab, groupChanged(lab, form))
    expect(before).toEqual({ description: 'The lab', virtualClusters: ['a', 'b'] })
    const now: Group = { ...lab, extension: { acls: { admin: true, virtualClusters: ['b', 'c'] } } }
    expect(groupPatch(now, before)).toEqual({ groupname: 'lab', description: 'The lab', extension: { acls: { admin: true, virtualClusters: ['a', 'b'] } } })
    expect(groupPatch(lab, { externalName: 'x' })).toEqual({ groupname: 'lab', externalName: 'x' })
    expect(groupPatch(lab, { admin: true }).extension?.acls).toMatchObject({ storageConfigs: ['home'] })
  })
  it('is not taken back when somebody has changed the same since', () => {
    const changed = groupChanged(lab, form)
    const now: Group = { ...lab, description: 'Our lab', externalName: 'x', extension: { acls: { admin: true, virtualClusters: ['c', 'b'] } } }
    expect(groupIsStill(now, changed)).toBe(true)
    expect(groupIsStill({ ...now, description: 'Theirs' }, changed)).toBe(false)
    expect(groupIsStill({ ...now, extension: { acls: { admin: true, virtualClusters: ['c'] } } }, changed)).toBe(false)
  })
})

describe('a change of quotas', () => {
  const quotas = { gpus: { value: 8, group: 'lab', used: 1 }, liveJobs: { value: 3, group: null, used: 1 } }
  it('knows whose they are', () => expect(quotaOwn(quotas)).toMatchObject({ gpus: null, liveJobs: 3, streams: null }))
  it('is what differs, and so is what takes it back', () =>
    expect(quotaChanged(quotaOwn(quotas), { gpus: 4, liveJobs: 3, streams: null })).toEqual({ change: { gpus: 4 }, back: { gpus: null } }))
  it('is not taken back when somebody has changed the same since', () => {
    expect(quotaIsStill({ gpus: 4, liveJobs: 9 }, { gpus: 4 })).toBe(true)
    expect(quotaIsStill({ gpus: 5 }, { gpus: 4 })).toBe(false)
    expect(quotaIsStill({}, { gpus: null })).toBe(true)
  })
})
