import { describe, expect, it } from 'vitest'
import { axisOf, barOf, ranOf } from '../src/lib/time-line'

describe('a bar of the time line', () => {
  const axis = axisOf(1000, 3000)
  it('stands where its times are', () => {
    expect(barOf(axis, 1500, 2500)).toEqual({ left: 'min(25%, 100% - 3px)', width: 'max(3px, 50%)' })
  })
  it('ends with the axis', () => {
    expect(barOf(axis, 0, 9000)).toEqual({ left: 'min(0%, 100% - 3px)', width: 'max(3px, 100%)' })
    expect(barOf(axis, 5000, 4000)).toEqual({ left: 'min(100%, 100% - 3px)', width: 'max(3px, 0%)' })
    expect(axisOf(1000, 1000).end).toBe(1001) // nothing is divided by zero
  })
  it('of a task lasts from its start to its end, or until now', () => {
    expect(ranOf({ launchedTime: 5, completedTime: 9 }, 20)).toEqual([5, 9])
    expect(ranOf({ launchedTime: 5, completedTime: null }, 20)).toEqual([5, 20])
    expect(ranOf({ launchedTime: null, completedTime: 9 }, 20)).toBe(null)
  })
})
