import { execFileSync } from 'node:child_process'
import { describe, expect, it } from 'vitest'
import { variableAdd, variableNameIsGood, variableRemove, variableRename, variableSet } from '../src/editor/job-env'
import { formOf } from '../src/editor/job-file'

const FILE = `# what this is for
name: train
taskRoles:
  worker:
    instances: 2 # two is enough
    commands:
      # to begin with
      - echo one # the first
      - export LATER=1
`
const SET = FILE.replace('      - echo one', `      - export RATE=0.1 # of learning
      - export NOTE="say \\"hello\\" to $USER" # quoted
      - export LITERAL='$HOME costs 5'
      - export NOW=$(date)
      # where it goes
      - export OUT=$PAI_USER_NAME/out
      - echo one`)
const variables = (text: string) => formOf(text)!.roles[0]!.environment.map(({ name, value }) => [name, value])

describe('the environment of a role', () => {
  it('is what the head of its commands exports', () => {
    expect(variables(FILE)).toEqual([])
    expect(variables(SET)).toEqual([['RATE', '0.1'], ['NOTE', 'say "hello" to $USER'], ['LITERAL', '$HOME costs 5'], ['OUT', '$PAI_USER_NAME/out']])
    expect(variables('taskRoles:\n  worker:\n    instances: 1\n')).toEqual([])
    for (const line of ['export A="`date`"', 'export A=~/x', 'export A=1 B=2', 'export A={1,2}', "export A='a'b", 'export A', 'A=1', 'export A=1; rm x']) expect(variables(`taskRoles: {worker: {commands: [${JSON.stringify(line)}, "true"]}}`)).toEqual([])
  })
  it('is added behind what is there, and removed, and nothing else changes', () => {
    const one = variableAdd(FILE, 'worker')
    expect(variables(one)).toEqual([['NAME', '']])
    expect(one).toContain('- export NAME=\n')
    const two = variableAdd(one, 'worker')
    expect(variables(two)).toEqual([['NAME', ''], ['NAME2', '']])
    expect(variableRemove(two, 'worker', 1)).toBe(one)
    expect(variableRemove(one, 'worker', 0)).toBe(FILE)
    expect(variableAdd(SET, 'worker')).toBe(SET.replace('      - echo one', '      - export NAME=\n      - echo one'))
    expect(variableRemove(SET, 'worker', 0)).toBe(SET.replace('      - export RATE=0.1 # of learning\n', ''))
    expect(variableRemove(FILE, 'worker', 0)).toBe(FILE)
    expect(variableAdd('name: x\n', 'worker')).toBe('name: x\n')
  })
  it('changes in its own line, whose comment and quotes stay', () => {
    expect(variableSet(SET, 'worker', 0, '0.2')).toBe(SET.replace('0.1', '0.2'))
    expect(variableSet(SET, 'worker', 0, 'a b')).toBe(SET.replace('RATE=0.1', 'RATE="a b"'))
    expect(variableSet(SET, 'worker', 1, 'x "y"')).toBe(SET.replace('say \\"hello\\" to $USER', 'x \\"y\\"'))
    expect(variableSet(SET, 'worker', 2, '$HOME costs 6')).toBe(SET.replace('costs 5', 'costs 6'))
    expect(variableSet(SET, 'worker', 4, '$PAI_USER_NAME/new')).toBe(SET.replace('$PAI_USER_NAME/out', '"$PAI_USER_NAME/new"'))
    expect(variableRename(SET, 'worker', 0, 'SPEED')).toBe(SET.replace('RATE', 'SPEED'))
    for (const name of ['', '1A', 'A-B', 'A B', 'A;B']) {
      expect(variableNameIsGood(name)).toBe(false)
      expect(variableRename(SET, 'worker', 0, name)).toBe(SET)
    }
    expect(variableSet(FILE, 'worker', 0, 'x')).toBe(FILE)
  })
  it('shows again what was written', () => {
    for (const value of ['', 'plain', 'a b', "it's", '"', '$HOME', '${HOME}/x', 'a: b # c', '<% $parameters.rate %>', '{"a": [1]}', '; rm -r /', '$(date)', '\\$5', 'a\\tb', '*']) {
      const text = variableSet(variableAdd(FILE, 'worker'), 'worker', 0, value)
      expect(variables(text)).toEqual([['NAME', value]])
      expect(text).toContain('# to begin with')
    }
    for (const [value, shown] of [['`date`', '\\`date\\`'], ['end\\', 'end\\\\']] as const) expect(variables(variableSet(variableAdd(FILE, 'worker'), 'worker', 0, value))).toEqual([['NAME', shown]])
  })
  it('is what the shell reads', () => {
    const env = { PATH: process.env['PATH'], WHO: 'me' }
    for (const [value, meant] of [['a b', 'a b'], ['', ''], [`it's "q"; * # \\ x`, `it's "q"; * # \\ x`], ['`date`', '`date`'], ['$WHO/${WHO}', 'me/me'], ['\\$WHO', '$WHO'], ['{"a": [1]}', '{"a": [1]}']] as const) {
      const script = formOf(variableSet(variableAdd(FILE, 'worker'), 'worker', 0, value))!.roles[0]!.commands.split('\n')[0]!
      expect(execFileSync('sh', ['-c', `${script}; printf %s "$NAME"`], { env, encoding: 'utf8' })).toBe(meant)
    }
  })
})
