import { describe, expect, it } from 'vitest'
import { lines, nearest, neighbour, pointAt } from '../src/lib/series'

describe('lines', () => {
  it('breaks where nothing is known', () => {
    expect(lines([0, 1, null, 2, 2], 2, 100, 10)).toEqual(['0.0,10.0 25.0,5.0', '75.0,0.0 100.0,0.0'])
  })
  it('shows a lone point', () => {
    expect(lines([null, 1, null], 1, 100, 10)).toEqual(['25.0,0.0 75.0,0.0'])
    expect(lines([1], 1, 100, 10)).toEqual(['0.0,0.0 100.0,0.0'])
  })
  it('shows the first or the last point when it is the only one', () => {
    expect(lines([1, null], 1, 100, 10)).toEqual(['0.0,0.0 50.0,0.0'])
    expect(lines([null, 1], 1, 100, 10)).toEqual(['50.0,0.0 100.0,0.0'])
  })
  it('stays within its box, whatever is measured', () => {
    expect(lines([5, 0], 0, 100, 10)).toEqual(['0.0,10.0 100.0,10.0'])
    expect(lines([5, 0], 1, 100, 10)).toEqual(['0.0,0.0 100.0,10.0'])
    expect(lines([], 1, 100, 10)).toEqual([])
  })
})

describe('reading a chart', () => {
  it('finds the nearest known point', () => {
    expect(nearest([null, 1, null, null, 4], 0)).toBe(1)
    expect(nearest([null, 1, null, null, 4], 0.8)).toBe(4)
    expect(nearest([1, 2], 7)).toBe(1)
    expect(nearest([null, null], 0.5)).toBe(-1)
    expect(nearest([], 0.5)).toBe(-1)
  })
  it('stays at an instant while points come, go and are summed up', () => {
    expect(pointAt([1, 2, 3], 1000, 10, 1020)).toBe(2)
    expect(pointAt([1, 2, 3, 4], 1000, 10, 1020)).toBe(2)
    expect(pointAt([3, 4, 5], 1020, 10, 1020)).toBe(0)
    expect(pointAt([1, 3], 1000, 20, 1030)).toBe(1)
    expect(pointAt([1, null, 3], 1000, 10, 1010)).toBe(0)
    expect(pointAt([4, 5], 1030, 10, 1020)).toBe(0) // it has gone
    expect(pointAt([4, 5], 1000, 10, 1990)).toBe(1)
    expect(pointAt([], 1000, 10, 1020)).toBe(-1)
  })
  it('steps over what is not known', () => {
    expect(neighbour([1, null, 3], 0, 1)).toBe(2)
    expect(neighbour([1, null, 3], 0, -1)).toBe(0)
  })
})
