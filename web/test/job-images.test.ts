import { describe, expect, it } from 'vitest'
import { authSet, fieldSet, formOf, imageAdd, imageRemove } from '../src/editor/job-file'
import { variablesOfRoles } from '../src/lib/platform-variables'
import { nameProblem } from '../src/pages/submit/fields'

const FILE = `name: train
prerequisites:
  - name: base # ours
    type: dockerimage
    uri: registry.example.org/base
  - name: worker_image
    type: data
    uri: nfs://files/data
taskRoles:
  worker:
    instances: 2
    dockerImage: base
    commands: [echo one]
`

describe('a further image', () => {
  it('begins as the one that the role had, under a name of its own', () => {
    const two = imageAdd(FILE, 'worker')
    expect(formOf(two)!.images.map(({ name, uri }) => [name, uri])).toEqual([
      ['base', 'registry.example.org/base'],
      ['worker_image2', 'registry.example.org/base'],
    ])
    expect(formOf(two)!.roles[0]!.image).toBe('worker_image2')
    expect(two).toContain('# ours')
  })
  it('goes again, with its password', () => {
    const two = authSet(imageAdd(FILE, 'worker'), 'worker_image2', { registry: 'r.example.org', username: 'ann', password: 'secret' })
    expect(two).toContain('registry_password')
    expect(imageRemove(fieldSet(two, ['taskRoles', 'worker', 'dockerImage'], 'base'), 'worker_image2')).toBe(FILE)
  })
  it('is not taken for something else of its name', () => expect(imageRemove(FILE, 'worker_image')).toBe(FILE))
})

describe('a name', () => {
  it('is needed, and is not given twice', () => {
    expect(nameProblem('', ['a'])).toBe('It needs a name.')
    expect(nameProblem('a', ['a'])).toBe('There is a a already.')
    expect(nameProblem('b', ['a'])).toBeNull()
  })
})

describe('variables of the platform', () => {
  it('have the names of the roles', () => {
    const names = variablesOfRoles(['ps', 'worker']).map(([name]) => name)
    expect(names).toContain('PAI_HOST_IP_worker_0')
    expect(names).toContain('PAI_PORT_LIST_ps_0_http')
    expect(names).toContain('PAI_TASK_ROLE_TASK_COUNT_worker')
    expect(names).toContain('PAI_CURRENT_TASK_ROLE_NAME')
    expect(names.filter((name) => name.includes('ROLE_i'))).toEqual([])
  })
})
