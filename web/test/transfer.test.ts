import { describe, expect, it } from 'vitest'
import { carried, CARRIED_MAX, carryPath, clustersOf, transferOf, transferTag, uriOf } from '../src/lib/transfer'

describe('a file that is carried to another cluster', () => {
  const file = 'name: train # 训练\n'
  it('arrives as it was', () => expect(carried(carryPath(file, 'https://a.example')!.split('#')[1]!)).toEqual({ file, from: 'https://a.example' }))
  it('is refused when it is too long, and when it is none', () => {
    expect(carryPath('x'.repeat(CARRIED_MAX), '')).toBeNull()
    expect(carried('#job=***')).toBeNull()
    expect(carried('#job=_w')).toBeNull() // no UTF-8
    expect(carried('')).toBeNull()
  })
})

describe('an address of a portal', () => {
  it.each([
    ['https://b.example/', 'https://b.example'],
    [' http://b.example:9186/pai/ ', 'http://b.example:9186/pai'],
    ['https://b.example/?a=1#b', 'https://b.example'],
  ])('%s', (text, uri) => expect(uriOf(text)).toBe(uri))
  it.each(['b.example', 'javascript:alert(1)', 'https://user:word@b.example', ''])('is not %s', (text) => expect(uriOf(text)).toBeNull())
})

describe('clusters', () => {
  it('are those of OpenPAI’s portal, too', () =>
    expect(clustersOf({ old: { uri: 'https://old.example' }, new: { uri: 'https://new.example', kind: 'skep' }, wrong: { uri: 'x' } })).toEqual([
      { alias: 'old', uri: 'https://old.example', kind: 'openpai' },
      { alias: 'new', uri: 'https://new.example', kind: 'skep' },
    ]))
})

describe('tags', () => {
  it('say where a job went', () => {
    const transfer = { kind: 'done', alias: 'b-url-c', uri: 'https://b.example' } as const
    expect(transferTag(transfer)).toBe('pai-transferred-to-b-url-c-url-https://b.example')
    expect(transferOf(transferTag(transfer))).toEqual(transfer)
    expect(transferOf('pai-transfer-attempt-to-b-url-https://b.example')?.kind).toBe('tried')
  })
  it.each(['archived', 'pai-transferred-to-b', 'pai-transferred-to-b-url-javascript:alert(1)'])('do not with %s', (tag) => expect(transferOf(tag)).toBeNull())
})
