// Files of storages: docs/user/files.md.
import { queryOptions } from '@tanstack/react-query'
import { downloadBegin } from '../lib/download'
import { folderOf, lastName, type StorageFile } from '../lib/files'
import { Uploads, type Begun } from '../lib/uploads'
import { ApiError, call, enc, get, sessionGet, sessionWatch, type Schema } from './client'

const at = (storage: string) => `/api/v2/storages/${enc(storage)}`

export const storageQuery = (name: string) =>
  queryOptions({
    queryKey: ['storages', name],
    queryFn: ({ signal }) => get<Schema['StorageDetail']>(at(name), signal),
  })

const filesOf = async (storage: string, path: string, signal?: AbortSignal) => (await get<{ files: StorageFile[] }>(`${at(storage)}/files?path=${enc(path)}`, signal)).files

const isPassing = (error: unknown) => error instanceof ApiError && [0, 429, 503].includes(error.status)

/** All of a folder: the server lists 50,000 entries at most. Nothing tells of changes: who wants to know asks again. */
export const filesQuery = (storage: string, path: string) =>
  queryOptions({
    queryKey: ['files', storage, path],
    queryFn: ({ signal }) => filesOf(storage, path, signal),
    retry: (tries, error) => tries < 5 && isPassing(error),
    retryDelay: (tries, error) => Math.max(error instanceof ApiError ? error.retryS * 1000 : 0, 500 * 2 ** tries),
  })

export const folderMake = (storage: string, path: string) => call('POST', `${at(storage)}/folders`, { json: { path } })
export const fileRename = (storage: string, path: string, newPath: string) => call('PUT', `${at(storage)}/files`, { json: { path, newPath } })
export const fileRemove = (storage: string, path: string) => call('DELETE', `${at(storage)}/files?path=${enc(path)}`)

/** The browser downloads it by itself: a link needs no token, and is good for ten minutes. */
export async function fileDownload(storage: string, path: string) {
  const { uri } = await call<{ uri: string }>('POST', `${at(storage)}/links`, { json: { path } })
  downloadBegin(uri, lastName(path))
}

const upload = (storage: string, id: string) => `${at(storage)}/uploads/${enc(id)}`

/** Those of this tab of the browser. */
export const uploads = new Uploads({
  begin: (storage, path, size, isReplacing) => call<Begun>('POST', `${at(storage)}/uploads`, { json: { path, size, replace: isReplacing } }),
  progress: (storage, id, signal) => get<Begun>(upload(storage, id), signal),
  part: (storage, id, offset, bytes, signal) => call<Begun>('PUT', `${upload(storage, id)}?offset=${offset}`, { bytes, signal }),
  place: (storage, id, signal) => call('POST', upload(storage, id), { signal }),
  end: (storage, id) => call('DELETE', upload(storage, id)),
  find: async (storage, path) => (await filesOf(storage, folderOf(path))).find(({ name }) => name === lastName(path)) ?? null,
})

/** The browser asks before it leaves a page whose uploads would be cut off. */
const stay = (event: BeforeUnloadEvent) => event.preventDefault()
uploads.watch(() => {
  if (uploads.isLive()) addEventListener('beforeunload', stay)
  else removeEventListener('beforeunload', stay)
})

// Nobody's uploads go on for who has signed in after them.
let user = sessionGet()?.user
sessionWatch(() => {
  if (sessionGet()?.user === user) return
  user = sessionGet()?.user
  uploads.remove(uploads.list().map(({ key }) => key))
})
