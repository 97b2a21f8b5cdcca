import { describe, expect, it } from 'vitest'
import { TEMPLATES_MAX, templateRemove, templateSave, templatesOf, withoutSecrets } from '../src/lib/templates'

describe('templates', () => {
  it('are kept for each user apart, and replaced by name', () => {
    templateSave('ann', { name: 'b', text: 'name: b\n' })
    templateSave('ann', { name: 'a', text: 'name: a\n' })
    templateSave('ann', { name: 'b', text: 'name: c\n' })
    expect(templatesOf('ann')).toEqual([
      { name: 'a', text: 'name: a\n' },
      { name: 'b', text: 'name: c\n' },
    ])
    expect(templatesOf('bob')).toEqual([])
    templateRemove('ann', 'a')
    expect(templatesOf('ann').map(({ name }) => name)).toEqual(['b'])
  })
  it('have no secrets, and lose no comment', () => {
    const text = 'name: x # mine\nsecrets:\n  token: abc # of the store\n  other: [1, 2]\n'
    const kept = withoutSecrets(text)
    expect(kept).not.toContain('abc')
    expect(kept).not.toContain('[1, 2]')
    expect(kept).toContain('# mine')
    expect(kept).toContain('token: ""')
    const elsewhere = withoutSecrets('extras: &hidden\n  token: abc\nsecrets: *hidden\n')
    expect(elsewhere).toContain('secrets: null\n')
    expect(withoutSecrets('secrets: |\n  token: abc\n')).not.toContain('abc')
  })
  it('are passed over where the browser holds something else', () => {
    localStorage.setItem('skep.templates.odd', '[null, {"name": 1}, {"name": "a", "text": "name: a"}, "b"]')
    expect(templatesOf('odd')).toEqual([{ name: 'a', text: 'name: a' }])
    localStorage.setItem('skep.templates.odd', 'not JSON')
    expect(templatesOf('odd')).toEqual([])
  })
  it('have a limit', () => {
    for (let i = 0; i < TEMPLATES_MAX; i++) templateSave('full', { name: `t${i}`, text: '' })
    expect(() => templateSave('full', { name: 'one more', text: '' })).toThrow('100')
    expect(() => templateSave('full', { name: 't1', text: 'name: n\n' })).not.toThrow()
  })
})
