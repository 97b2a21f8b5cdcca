import { describe, expect, it } from 'vitest'
import { authSet, pairAdd } from '../src/editor/job-file'
import { masked, maskSpread } from '../src/editor/kept-secrets'

const file = (command: string, secrets = 'secrets: "******"\n') => `# kept
name: train # short
prerequisites:
  - {name: base, type: dockerimage, uri: d, auth: {username: u, password: "<% $secrets.pull %>", registryuri: r}}
taskRoles:
  w:
    commands:
      - ${command}
${secrets}`

describe('secrets of a copy', () => {
  it('have their names, each with a mask of its own', () => {
    const spread = maskSpread(file('train <% $secrets.key %> <%$secrets.a.b%> <% $parameters.x %>'))
    expect(spread).toBe(file('train <% $secrets.key %> <%$secrets.a.b%> <% $parameters.x %>', 'secrets:\n  pull: "******"\n  key: "******"\n  a:\n    b: "******"\n'))
    expect(masked(spread)).toEqual(['pull', 'key', 'a.b'])
  })
  it('stay one mask where their names are not all known', () => {
    const list = file('train <% $secrets.keys[0] %>')
    expect(maskSpread(list)).toBe(list)
    expect(masked(list)).toEqual(['pull'])
    const unused = 'name: a\nsecrets: "******"\n'
    expect(maskSpread(unused)).toBe(unused)
    expect(masked(unused)).toEqual([])
    const both = file('x <% $secrets.pull.b %>')
    expect(maskSpread(both)).toBe(both)
  })
  it('are taken until they are written anew', () => {
    expect(masked(file('x', 'secrets: {pull: new, key: "******"}\n'))).toEqual(['key'])
    expect(masked(file('x', 'secrets: {pull: new}\n'))).toBeNull()
    expect(masked(file('x', ''))).toBeNull()
    expect(masked('name: [')).toBeNull()
  })
  it('give way to one that is written in the form', () => {
    expect(pairAdd('name: a\nsecrets: "******"\n', 'secrets')).toBe('name: a\nsecrets:\n  name: ""\n')
    expect(masked(authSet(file('x'), 'base', { password: 'p' }))).toBeNull()
  })
})
