import { describe, expect, it } from 'vitest'
import { fieldSet, labelSet } from '../src/editor/job-file'
import { portName } from '../src/lib/port-names'
import { placesOf } from '../src/pages/job/ports'

const FILE = `name: train
taskRoles:
  ps:
    # the first
    instances: 1
    resourcePerInstance: {cpu: 1, memoryMB: 64, gpu: 0}
  worker:
    instances: 2
    resourcePerInstance:
      cpu: 1
      ports:
        mpi: 2 # of them
`

describe('a port of a label', () => {
  it('is given to each role, and given back without a trace', () => {
    const on = labelSet(FILE, 'tensorboard', true)
    expect(on).toContain('{cpu: 1, memoryMB: 64, gpu: 0, ports: {tensorboard: 1}}')
    expect(on).toContain('        mpi: 2 # of them\n        tensorboard: 1\n')
    expect(labelSet(on, 'tensorboard', true)).toBe(on)
    expect(labelSet(on, 'tensorboard', false)).toBe(FILE)
  })
  it('stays where somebody has asked for more of them', () => {
    const more = fieldSet(labelSet(FILE, 'tensorboard', true), ['taskRoles', 'ps', 'resourcePerInstance', 'ports', 'tensorboard'], 2)
    expect(labelSet(more, 'tensorboard', false)).toContain('ports: {tensorboard: 2}')
    expect(labelSet('a: [', 'tensorboard', true)).toBe('a: [')
  })
})

describe('ports that can be opened', () => {
  it('begin with what has a name, however its label is written', () => expect(placesOf({ http: '1', TensorBoard: '2' }).map(({ label }) => portName(label))).toEqual(['TensorBoard', 'http']))
  it('begin with a notebook', () => expect(placesOf({ http: '1', jupyter: '2' }).map(({ label }) => portName(label))).toEqual(['Jupyter', 'http']))
  it('begin with TensorBoard, and leave ssh out', () => {
    expect(placesOf({ http: '15001', ssh: '15002', tensorboard: '15003,15004' })).toEqual([
      { label: 'tensorboard', offset: 0, number: '15003' },
      { label: 'tensorboard', offset: 1, number: '15004' },
      { label: 'http', offset: 0, number: '15001' },
    ])
    expect([portName('tensorboard'), portName('TensorBoard'), portName('http')]).toEqual(['TensorBoard', 'TensorBoard', 'http'])
  })
})
