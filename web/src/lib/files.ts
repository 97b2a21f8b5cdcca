// Files of storages: paths, what of a folder is shown, and the commands that do the same.
import type { Schema } from '../api/client'
import { shellWord } from './filter'

export type StorageFile = Schema['StorageFile']

/** A path of the API is a list of names: "" is the folder of the storage. */
export const pathOf = (text: string | null) => (text ?? '').split('/').filter(Boolean).join('/')
export const pathJoin = (folder: string, name: string) => (folder ? `${folder}/${name}` : name)
export const folderOf = (path: string) => path.slice(0, Math.max(0, path.lastIndexOf('/')))
export const lastName = (path: string) => path.slice(path.lastIndexOf('/') + 1)

/** The address of the page that shows this folder. */
export const filesHref = (storage: string, path = '') => `/storages/${encodeURIComponent(storage)}${path ? `?path=${encodeURIComponent(path).replaceAll('%2F', '/')}` : ''}`

/** The folders on the way, from the storage's own on. */
export function crumbsOf(path: string): { name: string; path: string }[] {
  const names = path ? path.split('/') : []
  return names.map((name, index) => ({ name, path: names.slice(0, index + 1).join('/') }))
}

/** As people and `skep storage` name it: STORAGE, or STORAGE/PATH. */
export const placeName = (storage: string, path: string) => (path ? `${storage}/${path}` : storage)
/** The same in a line of the shell; a folder into which something goes ends with "/". */
export const placeWord = (storage: string, path: string, isInto = false) => shellWord(`${placeName(storage, path)}${isInto ? '/' : ''}`)

export const ORDERS = ['name', 'size', 'changed'] as const
export type Order = (typeof ORDERS)[number]

/** "size,DESC", as the address has it; by name unless it says otherwise. */
export function orderOf(text: string | null): { by: Order; isDescending: boolean } {
  const [by, direction] = (text ?? '').split(',')
  const known = ORDERS.find((one) => one === by)
  return { by: known ?? 'name', isDescending: !!known && direction === 'DESC' }
}

/** What has `text` in its name, folders first. The server's list is in the order of the names. */
export function filesShown(files: StorageFile[], text: string, { by, isDescending }: ReturnType<typeof orderOf>): StorageFile[] {
  const wanted = text.toLowerCase()
  const shown = wanted ? files.filter(({ name }) => name.toLowerCase().includes(wanted)) : [...files]
  if (isDescending) shown.reverse()
  const sign = isDescending ? -1 : 1
  if (by === 'size') shown.sort((a, b) => sign * (a.size - b.size))
  if (by === 'changed') shown.sort((a, b) => sign * (a.changedTime - b.changedTime))
  const isFolder = (file: StorageFile) => file.kind === 'folder'
  return [...shown.filter(isFolder), ...shown.filter((file) => !isFolder(file))]
}
