import { describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { jobJson } from '../src/lib/job-json'
import { pathOfKey, settingsJson, settingsTree, settingsYaml, type Setting } from '../src/lib/settings-file'

const SETTINGS: Setting[] = [
  { key: 'database', value: null, source: 'default', help: '' },
  { key: 'api.listen', value: '127.0.0.1:9186', source: 'command line', help: '' },
  { key: 'api.proxies', value: ['10.0.0.1'], source: 'file', line: 8, help: '' },
  { key: 'api.origins', value: [], source: 'default', help: '' },
  { key: 'storages[0].name', value: 'a', source: 'file', line: 6, help: '' },
  { key: 'storages[0].readOnly', value: true, source: 'default', help: '' },
  { key: 'storages[2].name', value: '010', source: 'file', line: 7, help: '' },
]
const TREE = { api: { listen: '127.0.0.1:9186', proxies: ['10.0.0.1'] }, storages: [{ name: 'a', readOnly: true }, { name: '010' }] }

describe('settings as a file', () => {
  it('have the places of their keys', () => expect(pathOfKey('engines[1].fake.nodes')).toEqual(['engines', 1, 'fake', 'nodes']))
  it('leave out what is not set', () => expect(settingsTree(SETTINGS)).toEqual(TREE))
  it('are the same as YAML and as JSON', () => {
    expect(parse(settingsYaml(SETTINGS, () => 'x'))).toEqual(TREE)
    expect(JSON.parse(settingsJson(SETTINGS))).toEqual(TREE)
  })
  it('say beside a line where it comes from', () => {
    const yaml = settingsYaml(SETTINGS, (setting) => `${setting.source} ${setting.line ?? ''}`.trim())
    expect(yaml).toContain('listen: 127.0.0.1:9186 # command line\n')
    expect(yaml).toContain('name: a # file 6\n')
    expect(yaml).toContain('# file 8\n')
    expect(yaml).not.toContain('default')
    expect(yaml).toContain('name: "010" # file 7\n')
  })
})

describe('a job file as JSON', () => {
  it('has the same values, and no comments', () => {
    expect(jobJson('name: a # mine\ncommands: ["010", yes]\ncount: 2\n')).toBe('{\n  "name": "a",\n  "commands": [\n    "010",\n    "yes"\n  ],\n  "count": 2\n}\n')
  })
  it('is none of what is no YAML', () => expect(jobJson('a: [')).toBeNull())
  it('is none of a text whose aliases stand for very much', () => {
    const lists = Array.from({ length: 9 }, (_, i) => `a${i}: &a${i} [${Array.from({ length: 9 }, () => (i ? `*a${i - 1}` : 'x')).join(', ')}]\n`)
    expect(jobJson(lists.join(''))).toBeNull()
  })
})
