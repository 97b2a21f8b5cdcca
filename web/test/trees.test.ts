import './browser'
import { describe, expect, it } from 'vitest'
import { ApiError } from '../src/api/client'
import { foldersMake, pathRefusal, TREE_MAX, treeCheck, treeOfEntries, treeOfFiles, type Entry } from '../src/lib/trees'

const chosen = (path: string) => Object.defineProperty(new File(['x'], path.split('/').at(-1)!), 'webkitRelativePath', { value: path }) as File

/** As a browser gives what was dropped: a hundred at a time. */
function entry(name: string, inside?: Entry[]): Entry {
  let given = 0
  const reader = { readEntries: (resolve: (some: Entry[]) => void) => resolve(inside!.slice(given, (given += 100))) }
  return { name, isDirectory: !!inside, isFile: !inside, createReader: () => reader, file: (resolve: (file: File) => void) => resolve(new File(['x'], name)) } as Entry
}

const live = new AbortController().signal
const nothing = () => undefined

describe('a path', () => {
  it('is refused where the server would refuse it', () => {
    for (const path of ['a', 'a/b c/模型', 'a'.repeat(255), Array(64).fill('d').join('/')]) expect(pathRefusal(path)).toBeNull()
    for (const path of ['a/\u0007', 'a\u007f', '..', 'a/./b', 'a//b', `x/${'模'.repeat(86)}`, Array(65).fill('d').join('/'), Array(11).fill('a'.repeat(200)).join('/'), 'a\ud800']) expect(pathRefusal(path), path.slice(0, 20)).not.toBeNull()
  })
})

describe('a chosen folder', () => {
  it('has its folders before its files', () => {
    const { folders, files } = treeOfFiles('code', [chosen('lab/src/deep/a.c'), chosen('lab/b.c'), chosen('lab/src/c.c')])
    expect(folders).toEqual(['code/lab', 'code/lab/src', 'code/lab/src/deep'])
    expect(files.map(({ path }) => path)).toEqual(['code/lab/src/deep/a.c', 'code/lab/b.c', 'code/lab/src/c.c'])
    expect(treeOfFiles('', [chosen('lab/b.c')]).folders).toEqual(['lab'])
  })
  it('is refused whole, with the places of what cannot be stored', () => {
    expect(() => treeOfFiles('', [chosen('lab/good'), chosen('lab/bad\u0001'), chosen('lab/\u0002/x')])).toThrow(/Nothing was uploaded: .*lab\/bad\\u0001: a name has a control character/)
  })
  it('of too many files is refused', () => {
    expect(() => treeCheck({ folders: ['a'], files: Array.from({ length: TREE_MAX }, (_, index) => ({ path: `a/${index}`, source: new File([], 'x') })) })).toThrow('pack them into one file')
  })
})

describe('a dropped folder', () => {
  it('is read to its end, with its empty folders', async () => {
    const many = Array.from({ length: 250 }, (_, index) => entry(`f${index}`))
    const counts: number[] = []
    const tree = await treeOfEntries('in', [entry('lab', [entry('empty', []), entry('many', many)]), entry('alone')], live, (count) => counts.push(count))
    expect(tree.folders).toEqual(['in/lab', 'in/lab/empty', 'in/lab/many'])
    expect(tree.files).toHaveLength(251)
    expect(tree.files.map(({ path }) => path)).toContain('in/lab/many/f249')
    expect(counts.at(-1)).toBe(254)
  })
  it('of too many files is refused before all of it is read', async () => {
    const some = Array.from({ length: TREE_MAX + 100 }, () => entry('f'))
    await expect(treeOfEntries('', [entry('lab', some)], live, nothing)).rejects.toThrow('pack them into one file')
  })
  it('that cannot be read is named', async () => {
    const closed = { name: 'closed', isDirectory: false, isFile: true, file: (_: unknown, reject: (error: Error) => void) => reject(new DOMException('no permission')) } as unknown as Entry
    await expect(treeOfEntries('', [entry('lab', [closed])], live, nothing)).rejects.toThrow('lab/closed on this computer cannot be read: no permission')
  })
  it('is given up', async () => {
    const stop = new AbortController()
    const reading = treeOfEntries('', [entry('a'), entry('b')], stop.signal, () => stop.abort())
    await expect(reading).rejects.toThrow()
  })
})

describe('folders', () => {
  it('are made in their order, and those that are there are fine', async () => {
    const made: string[] = []
    const waits: number[] = []
    let isBusy = true
    const make = (path: string) => {
      if (path === 'a') throw new ApiError(409, 'ConflictError', 'a is there already')
      if (path === 'a/b' && isBusy) {
        isBusy = false
        throw new ApiError(503, 'UnavailableError', 'busy', { retryS: 2 } as never)
      }
      made.push(path)
      return Promise.resolve()
    }
    const wait = (ms: number) => Promise.resolve(void waits.push(ms))
    await foldersMake(['a', 'a/b', 'c'], (path) => Promise.resolve().then(() => make(path)), wait, live, nothing)
    expect(made).toEqual(['a/b', 'c'])
    expect(waits).toHaveLength(1)
  })
  it('that are refused end it', async () => {
    const make = () => Promise.reject(new ApiError(403, 'ForbiddenUserError', 'no'))
    await expect(foldersMake(['a', 'b'], make, () => Promise.resolve(), live, nothing)).rejects.toThrow('no')
  })
})
