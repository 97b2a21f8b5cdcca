import { describe, expect, it } from 'vitest'
import { nextOf } from '../src/lib/map-steps'

describe('a step up or down the map', () => {
  // two lines of three boxes, each 20 wide, with gaps of 4; the second line has one more that stands to the right
  const at = (x: number, y: number, height = 20) => ({ left: x, right: x + 20, top: y, bottom: y + height })
  const boxes = { a: at(0, 0), b: at(24, 0), c: at(48, 0), d: at(0, 24), e: at(24, 25), f: at(72, 24), g: at(24, 48) }
  type Name = keyof typeof boxes
  const next = (from: Name, way: -1 | 1) => nextOf(Object.keys(boxes) as Name[], (name) => boxes[name], boxes[from], way)
  it('leads to the nearest of the next line', () => {
    expect(next('a', 1)).toBe('d')
    expect(next('b', 1)).toBe('e')
    expect(next('f', -1)).toBe('c')
    expect(next('g', -1)).toBe('e')
  })
  it('takes the first of those that are equally near', () => expect(next('c', 1)).toBe('e'))
  it('leads nowhere at the end', () => {
    expect(next('g', 1)).toBeUndefined()
    expect(next('b', -1)).toBeUndefined()
  })
})
