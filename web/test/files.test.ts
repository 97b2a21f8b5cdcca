import { describe, expect, it } from 'vitest'
import { crumbsOf, filesHref, filesShown, folderOf, lastName, orderOf, pathJoin, pathOf, placeName, placeWord, type StorageFile } from '../src/lib/files'

const file = (name: string, size = 0, changedTime = 0, kind: StorageFile['kind'] = 'file'): StorageFile => ({ name, size, changedTime, kind })
const names = (files: StorageFile[]) => files.map(({ name }) => name)

describe('a path', () => {
  it('is a list of names', () => expect(['/a//b/', null, 'a'].map(pathOf)).toEqual(['a/b', '', 'a']))
  it('has a folder and a last name', () => {
    expect(['a/b/c', 'a', ''].map(folderOf)).toEqual(['a/b', '', ''])
    expect(['a/b/c', 'a'].map(lastName)).toEqual(['c', 'a'])
    expect([pathJoin('', 'a'), pathJoin('a/b', 'c')]).toEqual(['a', 'a/b/c'])
  })
  it('has the folders on the way', () => {
    expect(crumbsOf('')).toEqual([])
    expect(crumbsOf('a/b')).toEqual([{ name: 'a', path: 'a' }, { name: 'b', path: 'a/b' }])
  })
  it('comes back from an address, whatever is in it', () => {
    expect(filesHref('home')).toBe('/storages/home')
    const strange = 'a&b/100% +#/模型 ?'
    expect(pathOf(new URL(filesHref('home', strange), 'http://x').searchParams.get('path'))).toBe(strange)
  })
  it('is safe to paste into a shell', () => {
    expect([placeName('home', ''), placeName('home', 'a b')]).toEqual(['home', 'home/a b'])
    expect([placeWord('home', ''), placeWord('home', '', true), placeWord('home', 'a/b', true)]).toEqual(['home', 'home/', 'home/a/b/'])
    expect(placeWord('home', 'a; rm x')).toBe("'home/a; rm x'")
  })
})

describe('a folder', () => {
  const files = [file('B', 3, 1), file('a', 1, 3), file('b.txt', 2, 2), file('data', 0, 9, 'folder'), file('old', 0, 0, 'folder')]
  it('is shown by name, folders first', () => {
    expect(names(filesShown(files, '', orderOf(null)))).toEqual(['data', 'old', 'B', 'a', 'b.txt'])
    expect(names(filesShown(files, '', orderOf('name,DESC')))).toEqual(['old', 'data', 'b.txt', 'a', 'B'])
  })
  it('is shown by size and by age', () => {
    expect(names(filesShown(files, '', orderOf('size,DESC')))).toEqual(['old', 'data', 'B', 'b.txt', 'a'])
    expect(names(filesShown(files, '', orderOf('changed,ASC')))).toEqual(['old', 'data', 'B', 'b.txt', 'a'])
  })
  it('shows what has a text in its name', () => expect(names(filesShown(files, 'b', orderOf(null)))).toEqual(['B', 'b.txt']))
  it('takes no order that is none', () => expect(orderOf('colour,DESC')).toEqual({ by: 'name', isDescending: false }))
  it('stays as it was', () => {
    const before = names(files)
    filesShown(files, '', orderOf('size,DESC'))
    expect(names(files)).toEqual(before)
  })
})
