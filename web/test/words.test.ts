import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { fill, languageOf } from '../src/i18n/i18n'
import zh from '../src/i18n/zh'
import { KEYS } from '../src/lib/keys'
import { textsOf } from './texts'

function sources(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name)
    if (entry.isDirectory()) return entry.name === 'generated' ? [] : sources(path)
    return /\.tsx?$/.test(path) ? [readFileSync(path, 'utf8')] : []
  })
}

const texts = new Set([...sources(join(__dirname, '../src')).flatMap(textsOf), ...KEYS.map(([, what]) => what)])
const places = (text: string) => new Set(text.match(/\{\w+\}/g) ?? [])

describe('catalogues', () => {
  it('have every text of the sources', () => {
    expect([...texts].filter((text) => !zh[text])).toEqual([])
  })
  it('have no text that nothing shows', () => {
    expect(Object.keys(zh).filter((text) => !texts.has(text))).toEqual([])
  })
  it('have each text once: of two, one would never be shown', () => {
    const folder = join(__dirname, '../src/i18n')
    const keys = readdirSync(folder)
      .filter((name) => name.startsWith('zh'))
      .flatMap((name) => [...readFileSync(join(folder, name), 'utf8').matchAll(/^  (?:'((?:[^'\\]|\\.)*)'|(\w+)):/gm)].map(([, quoted, bare]) => quoted ?? bare))
    expect(keys.length).toBe(Object.keys(zh).length)
    expect(keys.filter((key, at) => keys.indexOf(key) !== at)).toEqual([])
  })
  it('fill in what the text fills in', () => {
    for (const [text, other] of Object.entries(zh)) expect(places(other), text).toEqual(places(text))
  })
})

describe('the language that is guessed', () => {
  it('is the first of those that the portal has', () => {
    expect(languageOf(['en-US', 'zh-CN'])).toBe('en')
    expect(languageOf(['fr', 'zh-TW', 'en'])).toBe('zh-CN')
    expect(languageOf(['ZH'])).toBe('zh-CN')
    expect(languageOf(['fr', 'zhx'])).toBe('en')
    expect(languageOf([])).toBe('en')
  })
})

describe('fill', () => {
  it('takes the form of the number', () => {
    expect(fill('{n} job|{n} jobs', { n: 1 })).toBe('1 job')
    expect(fill('{n} job|{n} jobs', { n: 0 })).toBe('0 jobs')
    expect(fill('{n} job|{n} jobs', { n: 1234 })).toBe('1,234 jobs')
  })
  it('leaves what it does not know', () => {
    expect(fill('{a} and {b}', { a: 'x' })).toBe('x and {b}')
  })
})
