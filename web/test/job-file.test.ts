import { describe, expect, it } from 'vitest'
import { commandsSet, fieldSet, formOf, imageSet, JOB_NEW, JOB_NOTEBOOK, keyRename, nameNext, numberBegun, parameterNumbers, removeAt, roleAdd } from '../src/editor/job-file'
import { keysAt, pathOfLine, valuesAt, type Schema } from '../src/editor/schema'
import jobSchema from '../../docs/schema/job-v2.json'

const FILE = `# what this is for
protocolVersion: 2
name: train # short
type: job
prerequisites:
  - {name: base, type: dockerimage, uri: "skep/base"}
taskRoles:
  worker:
    instances: 2 # two is enough
    dockerImage: base
    resourcePerInstance: {cpu: 1, memoryMB: 64, gpu: 0}
    commands:
      - echo one # the first
      - echo two
secrets:
  key: "007"
`

describe('the form', () => {
  it('shows what the text says', () => {
    const form = formOf(FILE)
    expect(form?.name).toBe('train')
    expect(form?.images).toEqual([{ name: 'base', uri: 'skep/base', auth: { registry: '', username: '', secret: '', password: '' } }])
    expect(form?.roles[0]).toEqual({ name: 'worker', instances: '2', image: 'base', cpu: '1', memoryMB: '64', gpu: '0', commands: 'echo one\necho two', environment: [], retries: '', shmMB: '', minFailed: '', minSucceeded: '', skuType: '', ports: [] })
    expect(form).toMatchObject({ storages: [], ssh: null, tensorboard: null })
    expect(form?.secrets).toEqual([['key', '007']])
    expect(formOf(JOB_NEW.replace('{name}', 'x'))?.roles.length).toBe(1)
    const notebook = formOf(JOB_NOTEBOOK.replace('{name}', 'x'))?.roles[0]
    expect(notebook?.ports).toEqual([['jupyter', '1']])
    expect(notebook?.commands).toContain(' --port $PAI_CONTAINER_HOST_jupyter_PORT_LIST --ServerApp.allow_remote_access=True ')
  })
  it('is not there without a map', () => {
    expect(formOf('a: [')).toBeNull()
    expect(formOf('- 1')).toBeNull()
  })
})

describe('a change of a field', () => {
  it('changes that alone', () => {
    expect(fieldSet(FILE, ['taskRoles', 'worker', 'instances'], 8)).toBe(FILE.replace('instances: 2', 'instances: 8'))
    expect(fieldSet(FILE, ['name'], 'other')).toBe(FILE.replace('name: train', 'name: other'))
    expect(imageSet(FILE, 'base', 'skep/pytorch')).toBe(FILE.replace('skep/base', 'skep/pytorch'))
    expect(commandsSet(FILE, 'worker', 'echo one\necho three')).toBe(FILE.replace('echo two', 'echo three'))
  })
  it('keeps a text a text', () => {
    expect(fieldSet(FILE, ['secrets', 'key'], '8')).toContain('key: "8"')
    expect(fieldSet(FILE, ['name'], '12')).toContain('name: "12"')
  })
  it('makes what was not there, and removes', () => {
    expect(formOf(fieldSet(FILE, ['defaults', 'virtualCluster'], 'vc1'))?.vc).toBe('vc1')
    expect(fieldSet(fieldSet(FILE, ['jobRetryCount'], 3), ['jobRetryCount'], null)).toBe(FILE)
  })
  it('leaves a broken text alone', () => {
    expect(fieldSet('a: [', ['name'], 'x')).toBe('a: [')
  })
  it('renames, adds and removes roles', () => {
    expect(keyRename(FILE, ['taskRoles', 'worker'], 'main')).toBe(FILE.replace('  worker:', '  main:'))
    const two = roleAdd(FILE)
    expect(formOf(two)?.roles.map((role) => role.name)).toEqual(['worker', 'worker2'])
    expect(removeAt(two, ['taskRoles', 'worker2'])).toBe(FILE)
    expect(keyRename(two, ['taskRoles', 'worker2'], 'worker')).toBe(two)
  })
})

describe('a parameter', () => {
  it('that is a number is one again when it has been written', () => {
    expect(parameterNumbers('parameters:\n  rate: 0.1\n  steps: 10\n  version: "1.10"\n  model: small\n  none:\n')).toEqual(new Set(['rate', 'steps']))
    expect(parameterNumbers('name: x\n')).toEqual(new Set())
    let file = 'parameters:\n  rate: 0.01 # of learning\n'
    for (const written of ['0.0', '0.05', '0.0', '0.', '', '-', '-2', '-2.5']) {
      file = fieldSet(file, ['parameters', 'rate'], numberBegun(written))
      expect(formOf(file)?.parameters).toEqual([['rate', written]])
    }
    expect(file).toBe('parameters:\n  rate: -2.5 # of learning\n')
    expect(['1e3', '007', 'NaN', ' 1'].map(numberBegun)).toEqual(['1e3', '007', 'NaN', ' 1'])
  })
})

describe('a copy', () => {
  it('has the next name', () => {
    expect(nameNext('train')).toBe('train_2')
    expect(nameNext('train_9')).toBe('train_10')
  })
})

describe('completion', () => {
  const schema = jobSchema as unknown as Schema
  const lines = FILE.split('\n')
  it('finds the keys above a line', () => {
    expect(pathOfLine(lines, 10, 4)).toEqual(['taskRoles', 'worker'])
    expect(pathOfLine(['prerequisites:', '  - name: base', '    '], 2, 4)).toEqual(['prerequisites', 0])
    expect(pathOfLine(lines, 1, 0)).toEqual([])
  })
  it('offers what the schema has there', () => {
    expect(keysAt(schema, []).map((key) => key.label)).toContain('taskRoles')
    expect(keysAt(schema, ['taskRoles', 'worker']).map((key) => key.label)).toContain('resourcePerInstance')
    expect(keysAt(schema, ['prerequisites', 0]).map((key) => key.label)).toContain('uri')
    expect(valuesAt(schema, ['type'])).toEqual(['job'])
  })
})
