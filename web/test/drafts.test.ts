import { afterEach, describe, expect, it, vi } from 'vitest'
import { sessionSet } from '../src/api/client'
import { draftDrop, draftGet, draftKeep, hasBeginning, sourceOf } from '../src/lib/draft'

const sessionOf = (user: string) => ({ user, token: 't', admin: false })

describe('drafts', () => {
  afterEach(() => vi.restoreAllMocks())
  it('are kept apart by what they began with, and by who wrote them', () => {
    sessionSet(sessionOf('ann'))
    const sources = [sourceOf(null, null), sourceOf('ann~a', null), sourceOf('ann~b', null), sourceOf(null, 'ann~a')]
    for (const source of sources) expect(draftKeep(source, `of ${source}`)).toBe(true)
    expect(sources.map(draftGet)).toEqual(sources.map((source) => `of ${source}`))
    draftDrop(sources[1]!)
    expect(sources.map((source) => draftGet(source) !== null)).toEqual([true, false, true, true])
    sessionSet(sessionOf('bob'))
    expect(sources.map(draftGet)).toEqual([null, null, null, null])
  })
  it('have a beginning to go back to, but for an empty form', () => {
    expect([sourceOf(null, null), sourceOf(null, null, true), sourceOf('ann~a', null), sourceOf(null, 'ann~a')].map(hasBeginning)).toEqual([false, true, true, true])
  })
  it('say when there is no room for them', () => {
    vi.spyOn(sessionStorage, 'setItem').mockImplementation(() => {
      throw new Error('QuotaExceededError')
    })
    expect(draftKeep('', 'long')).toBe(false)
  })
})
