import { describe, expect, it } from 'vitest'
import './browser'
import { letterOf } from '../src/lib/keys'

describe('a key', () => {
  it('is its letter, or that of its place where there are no Latin letters', () => {
    expect(letterOf({ key: 'M', code: 'KeyM' })).toBe('m')
    expect(letterOf({ key: 'm', code: 'Semicolon' })).toBe('m') // French
    expect(letterOf({ key: 'ь', code: 'KeyM' })).toBe('m') // Russian
    expect(letterOf({ key: 'Tab', code: 'Tab' })).toBe('tab')
  })
})
