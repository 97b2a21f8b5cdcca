import { describe, expect, it } from 'vitest'
import { exitSpecsQuery, groupsQuery, membersQuery, quotaQuery, SELDOM_MS, settingsQuery, storagesQuery, tokensQuery, userQuery, usersQuery } from '../src/api/queries'
import { templatesQuery } from '../src/api/templates'

describe('what the stream of changes does not tell of', () => {
  it.each([
    ['users', usersQuery],
    ['a user', userQuery('ann')],
    ['groups', groupsQuery],
    ['members', membersQuery('lab')],
    ['quotas', quotaQuery('users/ann')],
    ['tokens', tokensQuery],
    ['templates', templatesQuery('')],
    ['storages', storagesQuery],
    ['exit codes', exitSpecsQuery],
    ['settings', settingsQuery],
  ])('is asked for again: %s', (_, query) => expect(query.refetchInterval).toBe(SELDOM_MS))
})
