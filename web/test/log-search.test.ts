import { describe, expect, it } from 'vitest'
import './browser'
import { partRead } from '../src/pages/job/log-search'

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
