import { expect, it } from 'vitest'
import { pagesAll } from '../src/api/pages'

it('a list is read to its last page, in order', async () => {
  const asked: string[] = []
  const pages = [{ data: [1, 2], cursor: 'b' }, { data: [], cursor: 'c' }, { data: [3] }]
  const read = (cursor: string) => {
    asked.push(cursor)
    return Promise.resolve(pages[asked.length - 1]!)
  }
  expect(await pagesAll(read)).toEqual([1, 2, 3])
  expect(asked).toEqual(['', 'b', 'c'])
})

it('a list is read no further than it is wanted', async () => {
  expect(await pagesAll((cursor) => Promise.resolve({ data: [cursor], cursor: `${cursor}x` }), 2)).toEqual(['', 'x'])
})
