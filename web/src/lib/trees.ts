// Whole folders on their way into a storage: what is in them, whether all of it can be stored there, and their folders, which come first.
import { t } from '../i18n/i18n'
import { ApiError } from '../api/client'
import { pathJoin } from './files'
import { retryMs, type Source } from './uploads'

export interface Tree {
  folders: string[] // each behind the one that it is in
  files: { path: string; source: Source }[]
}

/** Files and folders that are taken at a time: each is a request or more. */
export const TREE_MAX = 5000
/** As the server takes them (src/files/path.h). */
const NAME_BYTES = 255
const PATH_BYTES = 2048
const DEPTH = 64

const bytesOf = (text: string) => new TextEncoder().encode(text).length

/** Why the server would not store this path; null: it would. */
export function pathRefusal(path: string): string | null {
  const names = path.split('/')
  if (names.some((name) => /[\u0000-\u001f\u007f]/.test(name))) return t('a name has a control character')
  if (names.some((name) => !name || name === '.' || name === '..')) return t('a name is none')
  if (names.some((name) => /[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/.test(name))) return t('a name is not UTF-8')
  if (names.some((name) => bytesOf(name) > NAME_BYTES)) return t('a name has more than {n} bytes', { n: NAME_BYTES })
  if (names.length > DEPTH) return t('it is more than {n} folders deep', { n: DEPTH })
  return bytesOf(path) > PATH_BYTES ? t('the path has more than {n} bytes', { n: PATH_BYTES }) : null
}

const REFUSALS_SHOWN = 5

function refuseMany() {
  throw new Error(t('There are more than {n} files and folders, the most that are taken at a time: pack them into one file, or use skep storage put -r.', { n: TREE_MAX }))
}

/** Throws when something in it cannot be stored, with its place: nothing of the tree is sent then. */
export function treeCheck(tree: Tree): Tree {
  if (tree.folders.length + tree.files.length > TREE_MAX) refuseMany()
  const refused = [...tree.folders, ...tree.files.map(({ path }) => path)].flatMap((path) => {
    const why = pathRefusal(path)
    return why ? [`${JSON.stringify(path).slice(1, -1)}: ${why}`] : []
  })
  if (!refused.length) return tree
  const more = refused.length - REFUSALS_SHOWN
  throw new Error(t('Nothing was uploaded: {names}', { names: refused.slice(0, REFUSALS_SHOWN).join('; ') + (more > 0 ? ` … +${more}` : '') }))
}

/** Of a chosen folder: its files with their paths. Browsers leave empty folders out. */
export function treeOfFiles(into: string, files: File[]): Tree {
  const folders = new Set<string>()
  const placed = files.map((source) => {
    const path = pathJoin(into, source.webkitRelativePath || source.name)
    const names = path.split('/')
    for (let depth = (into ? into.split('/').length : 0) + 1; depth < names.length; depth++) folders.add(names.slice(0, depth).join('/'))
    return { path, source }
  })
  return treeCheck({ folders: [...folders].sort(), files: placed })
}

/** What of a dropped file or folder is used. */
export type Entry = Pick<FileSystemEntry, 'name' | 'isDirectory' | 'isFile'>

const fileOf = (entry: Entry) => new Promise<File>((resolve, reject) => (entry as FileSystemFileEntry).file(resolve, reject))

/** All of a folder: a browser gives a hundred at a time. */
async function entriesOf(entry: Entry): Promise<Entry[]> {
  const reader = (entry as FileSystemDirectoryEntry).createReader()
  const all: Entry[] = []
  for (;;) {
    const some = await new Promise<Entry[]>((resolve, reject) => reader.readEntries(resolve, reject))
    if (!some.length) return all
    all.push(...some)
    if (all.length > TREE_MAX) refuseMany()
  }
}

/** Of what was dropped. */
export async function treeOfEntries(into: string, entries: Entry[], signal: AbortSignal, onCount: (count: number) => void): Promise<Tree> {
  const tree: Tree = { folders: [], files: [] }
  const waiting = entries.map((entry) => ({ entry, path: pathJoin(into, entry.name) }))
  for (let at = 0; at < waiting.length; at++) {
    const { entry, path } = waiting[at]!
    signal.throwIfAborted()
    if (waiting.length > TREE_MAX) refuseMany()
    try {
      if (entry.isDirectory) {
        tree.folders.push(path)
        if (path.split('/').length <= DEPTH) for (const one of await entriesOf(entry)) waiting.push({ entry: one, path: pathJoin(path, one.name) })
      } else tree.files.push({ path, source: await fileOf(entry) })
    } catch (error) {
      if (!(error instanceof DOMException)) throw error
      throw new Error(t('{name} on this computer cannot be read: {why}', { name: path, why: error.message }))
    }
    onCount(at + 1)
  }
  return treeCheck(tree)
}

/** Makes those that are not there, one after the other. */
export async function foldersMake(folders: string[], make: (path: string) => Promise<unknown>, wait: (ms: number, signal: AbortSignal) => Promise<void>, signal: AbortSignal, onCount: (count: number) => void) {
  for (const [index, path] of folders.entries()) {
    for (let tries = 0; ; ) {
      signal.throwIfAborted()
      try {
        await make(path)
        break
      } catch (error) {
        if (error instanceof ApiError && error.status === 409) break // it is there; were it a file, what goes into it says so
        const ms = retryMs(error, 'begin', tries++)
        if (ms === null) throw error
        await wait(ms, signal)
      }
    }
    onCount(index + 1)
  }
}
