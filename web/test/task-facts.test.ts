import { describe, expect, it } from 'vitest'
import { addressOf, keyOfPlace, placeOfKey, portsOf } from '../src/lib/task-facts'

describe('a task in an address', () => {
  it('is named by its role and its index', () => {
    for (const place of [{ role: 'worker', index: 12 }, { role: 'a.b', index: 0 }]) expect(placeOfKey(keyOfPlace(place))).toEqual(place)
  })
  it('is none when it has no index', () => {
    for (const key of [null, '', 'worker', 'worker.', '.1', 'worker.x', 'worker.123456']) expect(placeOfKey(key)).toBeNull()
  })
})

describe('its ports', () => {
  it('stand each with its label', () => {
    expect(portsOf({ http: '15001', mpi: '15002,15003', none: '' })).toEqual([
      { label: 'http', number: '15001' },
      { label: 'mpi', number: '15002' },
      { label: 'mpi', number: '15003' },
    ])
    expect(portsOf(null)).toEqual([])
  })
  it('have an address that a program takes', () => {
    expect(addressOf('10.0.0.1', '80')).toBe('10.0.0.1:80')
    expect(addressOf('fd00::1', '80')).toBe('[fd00::1]:80')
  })
})
