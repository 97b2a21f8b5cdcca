import { describe, expect, it } from 'vitest'
import { authSet, formOf, gpusSet, JOB_NEW, portAdd, portRemove, roleAdd, roleRemove, roleRename, shareOfGpu, skuCount, skuSet } from '../src/editor/job-file'

const FILE = `name: train
prerequisites:
  - name: base # ours
    type: dockerimage
    uri: registry.example.org/base
taskRoles:
  worker:
    instances: 2
    dockerImage: base
    resourcePerInstance: {cpu: 1, memoryMB: 64, gpu: 0}
    commands:
      - echo one # the first
`
const V100 = { gpu: 1, cpu: 4, memory: 8192 }
const role = (text: string) => formOf(text)!.roles[0]!

describe('ports', () => {
  it('come and go, and nothing else changes', () => {
    const one = portAdd(FILE, 'worker')
    expect(one).toContain('{cpu: 1, memoryMB: 64, gpu: 0, ports: {port: 1}}')
    expect(role(portAdd(one, 'worker')).ports).toEqual([['port', '1'], ['port2', '1']])
    expect(portRemove(portRemove(portAdd(one, 'worker'), 'worker', 'port'), 'worker', 'port2')).toBe(FILE)
  })
})

describe('a SKU', () => {
  it('fills in the resources, and goes without them', () => {
    const two = skuSet(FILE, 'worker', 'V100', V100, 2)
    expect(role(two)).toMatchObject({ skuType: 'V100', gpu: '2', cpu: '8', memoryMB: '16384' })
    expect(two).toContain('extras:\n  hivedScheduler:\n    taskRoles:\n      worker:\n        skuType: V100\n')
    expect(two).toContain('# the first')
    expect(skuCount(role(two), V100)).toBe(2)
    expect(skuSet(two, 'worker', '', null, 1)).toBe(FILE.replace('cpu: 1, memoryMB: 64, gpu: 0', 'cpu: 8, memoryMB: 16384, gpu: 2'))
  })
  it('is none when the resources are no whole number of it', () => {
    expect(skuCount(role(FILE), V100)).toBeNull()
    expect(skuCount(role(FILE), { gpu: 0, cpu: 1, memory: 64 })).toBe(1)
    expect(skuCount(role(FILE), { gpu: 0, cpu: 0, memory: 64 })).toBeNull()
  })
  it('keeps what else stands there', () => {
    const own = `${FILE}extras:\n  hivedScheduler:\n    jobPriorityClass: prod # soon\n    taskRoles:\n      worker: {withinOneCell: NODE}\n`
    expect(skuSet(skuSet(own, 'worker', 'V100', null, 1), 'worker', '', null, 1)).toBe(own)
  })
  it('follows the name of its role, and goes with it', () => {
    const one = skuSet(FILE, 'worker', 'V100', V100, 1)
    const renamed = roleRename(one, 'worker', 'trainer')
    expect(role(renamed)).toMatchObject({ name: 'trainer', skuType: 'V100' })
    expect(roleRemove(renamed, 'trainer')).not.toContain('extras')
  })
})

describe('the GPUs of a role', () => {
  const share = shareOfGpu([V100, { gpu: 4, cpu: 10, memory: 40000 }, { gpu: 0, cpu: 1, memory: 64 }])
  it('come with the least that any type has beside one', () => {
    expect(share).toEqual({ gpu: 1, cpu: 2, memory: 8192 })
    expect(shareOfGpu([{ gpu: 0, cpu: 1, memory: 64 }])).toBeNull()
    expect(shareOfGpu([])).toBeNull()
  })
  it('bring CPUs and memory to a new role, and to one that has what they brought', () => {
    const one = gpusSet(JOB_NEW, role(JOB_NEW), 1, share)
    expect(role(one)).toMatchObject({ gpu: '1', cpu: '2', memoryMB: '8192' })
    expect(role(gpusSet(one, role(one), 16, share))).toMatchObject({ gpu: '16', cpu: '32', memoryMB: '131072' })
    const none = gpusSet(one, role(one), null, share) // the field is empty between two numbers
    expect(role(none)).toMatchObject({ cpu: '2', memoryMB: '8192' })
    expect(role(gpusSet(none, role(none), 4, share))).toMatchObject({ gpu: '4', cpu: '8', memoryMB: '32768' })
    const added = formOf(roleAdd(JOB_NEW))!.roles[1]!
    expect(formOf(gpusSet(roleAdd(JOB_NEW), added, 2, share))!.roles[1]).toMatchObject({ gpu: '2', cpu: '4', memoryMB: '16384' })
  })
  it('leave what somebody has chosen, and what no type says', () => {
    expect(role(gpusSet(FILE, role(FILE), 2, share))).toMatchObject({ gpu: '2', cpu: '1', memoryMB: '64' })
    expect(role(gpusSet(JOB_NEW, role(JOB_NEW), 2, null))).toMatchObject({ gpu: '2', cpu: '1', memoryMB: '256' })
    expect(role(gpusSet(JOB_NEW, role(JOB_NEW), 0, share))).toMatchObject({ gpu: '0', cpu: '1' })
  })
})

describe('the registry', () => {
  it('has its password among the secrets', () => {
    let text = authSet(FILE, 'base', { username: 'alice' })
    text = authSet(text, 'base', { registry: 'registry.example.org' })
    text = authSet(text, 'base', { password: '0071' })
    expect(text).toContain('password: <% $secrets.registry_password %>')
    expect(text).toContain('registry_password: "0071"')
    expect(text).toContain('# ours')
    expect(formOf(text)!.images[0]!.auth).toEqual({ registry: 'registry.example.org', username: 'alice', secret: 'registry_password', password: '0071' })
    for (const change of [{ username: '' }, { registry: '' }, { password: '' }]) text = authSet(text, 'base', change)
    expect(text).toBe(FILE)
  })
  it('takes no secret of another name', () => {
    const text = authSet(`${FILE}secrets:\n  registry_password: other\n`, 'base', { password: 'x' })
    expect(text).toContain('registry_password: other')
    expect(text).toContain('registry_password2: "x"')
  })
})
