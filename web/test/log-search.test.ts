import { describe, expect, it } from 'vitest'
import './browser'
import { contextOf, partRead, searchQuery } from '../src/pages/job/log-search'

async function* lines(...all: object[]) {
  for (const line of all) yield line as never
}

describe('a reply of the search', () => {
  const match = { type: 'match', role: 'main', index: 0, text: 'loss' }
  it('ends with where to go on', async () => {
    expect(await partRead(lines(match, { type: 'end', bytes: 7, cursor: 'c' }))).toEqual({ found: [match], bytes: 7, cursor: 'c' })
    expect(await partRead(lines({ type: 'end', bytes: 7, cursor: null }))).toEqual({ found: [], bytes: 7, cursor: null })
  })
  it('that breaks off is no answer', async () => {
    await expect(partRead(lines(match))).rejects.toThrow('Search again')
  })
})

describe('a search', () => {
  it('asks for the lines around what it finds, as many as one has chosen', () => {
    expect(String(searchQuery('loss', false, false, contextOf(null)))).toBe('q=loss&limit=200&context=2')
    expect(String(searchQuery('l.ss', true, true, contextOf('10')))).toBe('re=l.ss&limit=200&context=10&ignoreCase=true')
    expect(String(searchQuery('loss', false, false, contextOf('0')))).toBe('q=loss&limit=200')
  })
  it('takes no other number from the address than it offers', () => {
    expect(['0', '2', '5', '10', '11', '-1', 'x', ''].map(contextOf)).toEqual([0, 2, 5, 10, 2, 2, 2, 0])
  })
})
