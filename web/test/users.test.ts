import { describe, expect, it } from 'vitest'
import type { User } from '../src/api/client'
import { problemsOf, rowChanged, rowNew, usersOf } from '../src/lib/user-file'
import { fieldsBefore, fieldsChanged, userChanged, usersShown, type UserChange } from '../src/lib/users'

const users: User[] = [
  { username: 'bob', email: 'a@example.org', grouplist: ['lab'], virtualCluster: ['default'], admin: false, active: true },
  { username: 'alice', email: 'b@example.org', grouplist: ['staff'], virtualCluster: ['default', 'vision'], admin: true, active: true },
  { username: 'carol', email: '', grouplist: [], virtualCluster: ['default', 'speech-lab', 'vision'], ownVirtualCluster: ['vision'], admin: false, active: false },
]
const none = { text: '', group: '', vc: '', rights: '', order: 'username' }
const shown = (filter: Partial<typeof none>) => usersShown(users, { ...none, ...filter }).map((user) => user.username)

describe('the list of users', () => {
  it('is ordered by a column', () => {
    expect(shown({})).toEqual(['alice', 'bob', 'carol'])
    expect(shown({ order: '-username' })).toEqual(['carol', 'bob', 'alice'])
    expect(shown({ order: 'email' })).toEqual(['carol', 'bob', 'alice'])
  })
  it('has only who fits all filters', () => {
    expect(shown({ text: 'LA' })).toEqual(['bob'])
    expect(shown({ group: 'staff' })).toEqual(['alice'])
    expect(shown({ vc: 'vision' })).toEqual(['alice', 'carol'])
    expect(shown({ vc: 'vision', rights: 'user' })).toEqual(['carol'])
    expect(shown({ rights: 'inactive' })).toEqual(['carol'])
    expect(shown({ rights: 'admin' })).toEqual(['alice'])
  })
})

describe('a change of several', () => {
  const change: UserChange = { grant: [], revoke: [], join: [], leave: [], active: null }
  it('asks for nothing that is so already', () => {
    expect(userChanged(users[0]!, { ...change, join: ['lab'], leave: ['staff'], active: true })).toEqual({ fields: null, grouplist: null })
  })
  it('adds and takes away', () => {
    expect(userChanged(users[2]!, { ...change, grant: ['speech'], revoke: ['vision'], join: ['lab'], active: true })).toEqual({
      fields: { virtualCluster: ['speech'], active: true },
      grouplist: ['lab'],
    })
  })
  it('grants nothing to an administrator', () => {
    expect(userChanged(users[1]!, { ...change, grant: ['speech'], leave: ['staff'] })).toEqual({ fields: null, grouplist: [] })
  })
})

describe('a change of one', () => {
  const carol = users[2]!
  const form = { email: '', admin: false, active: false, virtualCluster: ['vision'] }
  it('leaves what comes by a group to the group', () => {
    expect(fieldsChanged(carol, form)).toEqual({})
    expect(fieldsChanged(carol, { ...form, virtualCluster: ['speech', 'vision'] })).toEqual({ virtualCluster: ['speech', 'vision'] })
    expect(fieldsChanged(users[1]!, { email: 'b@example.org', admin: true, active: true, virtualCluster: [] })).toEqual({})
  })
  it('is taken back without what others have changed since', () => {
    expect(fieldsBefore(carol, { active: true })).toEqual({ active: false })
    expect(fieldsBefore(carol, { virtualCluster: ['speech'] })).toEqual({ virtualCluster: ['vision'] })
  })
})

describe('a file of users', () => {
  it('needs no passwords', () => {
    const rows = usersOf('username,Virtual Cluster,admin\nann,"vision, speech",TRUE\n', () => 'made-here')
    expect(rows).toEqual([
      { line: 2, user: { username: 'ann', password: 'made-here', email: '', admin: true, virtualCluster: ['vision', 'speech'], grouplist: [] }, isMade: true, state: '' },
    ])
  })
  it('keeps those that it has', () => expect(usersOf('username,password\nann,secret-1\n', () => 'x')?.[0]).toMatchObject({ user: { password: 'secret-1' }, isMade: false }))
  it('must name its columns', () => expect(usersOf('ann,secret-1\n', () => 'x')).toBeNull())
})

describe('a row of the file', () => {
  const rows = usersOf('\uFEFFusername,password,email\nann,secret-1,ann@example.org\nann,short,no address\na b,,@x\n', () => 'made-here')!
  const [ann, twin, bad] = rows as [(typeof rows)[0], (typeof rows)[0], (typeof rows)[0]]
  it('is checked as the server does it, and against the others', () => {
    expect(problemsOf(ann, [ann])).toEqual([])
    expect(problemsOf(ann, rows)).toEqual(['taken'])
    expect(problemsOf(twin, rows)).toEqual(['taken', 'password', 'email'])
    expect(problemsOf(bad, rows)).toEqual(['name', 'email'])
    const of = (user: Partial<typeof ann.user>) => problemsOf({ ...ann, user: { ...ann.user, ...user } }, [ann])
    expect(of({ email: '', password: '密码' })).toEqual([]) // six bytes
    expect(of({ password: 'x'.repeat(1025) })).toEqual(['password'])
    expect(of({ email: 'a@b@c' })).toEqual(['email'])
    expect(of({ email: 'Ann <a@b>' })).toEqual(['email'])
    expect(of({ email: 'ö@b' })).toEqual(['email'])
    expect(of({ email: "o'neil+x@b.org" })).toEqual([])
    expect(of({ email: 'a@' })).toEqual(['email'])
    expect(of({ email: `a@${'b'.repeat(253)}` })).toEqual(['email'])
    expect(of({ username: 'x'.repeat(65) })).toEqual(['name'])
    for (const username of ['.', '..']) expect(of({ username })).toEqual(['name'])
    for (const username of ['...', '.a', 'a.']) expect(of({ username })).toEqual([])
  })
  it('is tried anew after a change', () => {
    const failed = { ...twin, state: 'refused' }
    const user = { ...twin.user, username: 'bob' }
    expect(rowChanged(failed, { ...user, password: 'secret-2' }, () => 'x')).toMatchObject({ line: 3, state: '', isMade: false, user: { username: 'bob', password: 'secret-2' } })
    expect(rowChanged(failed, { ...user, password: '' }, () => 'made-anew')).toMatchObject({ isMade: true, user: { password: 'made-anew' } })
    expect(rowChanged(bad, { ...bad.user, password: '' }, () => 'made-anew')).toMatchObject({ isMade: true, user: { password: 'made-here' } }) // the one that it has
  })
  it('is added after the others', () => {
    expect(rowNew(rows, 'made').line).toBe(5)
    expect(rowNew([], 'made')).toMatchObject({ line: 2, isMade: true, user: { username: '', password: 'made' } })
  })
})
