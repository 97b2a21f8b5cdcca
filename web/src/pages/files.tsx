// The files of a storage: the folder that the address names, what can be done to it, and what is on its way there.
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { useCallback, useEffect, useRef, useState, useSyncExternalStore, type ReactNode } from 'react'
import { ApiError } from '../api/client'
import { fileDownload, filesQuery, storageQuery, uploads } from '../api/files'
import { t } from '../i18n/i18n'
import { crumbsOf, filesHref, lastName, pathJoin, pathOf, placeName, placeWord, type StorageFile } from '../lib/files'
import type { Upload } from '../lib/uploads'
import { Link, useSearch } from '../router'
import { StorageCommands } from '../ui/storage-commands'
import { Button, Cli, Empty, ErrorNote, LinkButton, Loading, Said, useToast, usePageTitle } from '../ui/ui'
import { FileDialog, type Asked } from './files/dialogs'
import { FileList } from './files/list'
import { useDrop, type Dropped } from './files/drop'
import { TreeStage, useTreeUpload } from './files/tree'
import { UploadList } from './files/uploads'
import '../style/files.css'

/** Where one is, and the way back. What was read is another folder: the focus goes to its name. */
function Crumbs({ storage, path }: { storage: string; path: string }) {
  const crumbs = [{ name: storage, path: '' }, ...crumbsOf(path)]
  return (
    <nav aria-label={t('Folders')}>
      <ol className="crumbs" lang="">
        {crumbs.map((crumb) => (
          <li key={crumb.path} className="anywhere">
            {crumb.path === path ? (
              <strong id="folder" tabIndex={-1} aria-current="page">
                {crumb.name}
              </strong>
            ) : (
              <Link href={filesHref(storage, crumb.path)}>{crumb.name}</Link>
            )}
          </li>
        ))}
      </ol>
    </nav>
  )
}

const focusFolder = () => document.getElementById('folder')?.focus()

/** Why nothing of it is shown here, and what can be done. */
function NotHere({ storage, path, error, onAgain }: { storage: string; path: string; error: unknown; onAgain: () => void }) {
  const code = error instanceof ApiError ? error.code : ''
  if (code === 'NoFilesError' || code === 'FilesOffError')
    return (
      <div className="card">
        <Empty title={t('The files of {name} cannot be shown here', { name: storage })}>
          <p>
            <Said>{(error as ApiError).message}</Said>
          </p>
          <LinkButton href="/storages">{t('How a job asks for it')}</LinkButton>
        </Empty>
      </div>
    )
  return (
    <ErrorNote error={error}>
      <div className="row">
        <Button small onClick={onAgain}>
          {t('Try again')}
        </Button>
        {path && <Link href={filesHref(storage)}>{t('To the folder of the storage')}</Link>}
        <Link href="/storages">{t('All storages')}</Link>
      </div>
    </ErrorNote>
  )
}

function Notes({ isReadOnly, isOwn, children }: { isReadOnly: boolean; isOwn: boolean; children: ReactNode }) {
  return (
    <div className="row">
      {isReadOnly && (
        <p className="note small" data-kind="wait">
          {t('This storage is read-only, as its operator has set it (readOnly): files can be downloaded, but not uploaded, renamed or deleted, and jobs cannot write there either.')}
        </p>
      )}
      {isOwn && <p className="quiet small whole-row">{t('This is your own folder of the storage, which your jobs see. Nobody else sees it here.')}</p>}
      {children}
    </div>
  )
}

export default function Files({ storage }: { storage: string }) {
  const [search] = useSearch()
  const path = pathOf(search.get('path'))
  const detail = useQuery(storageQuery(storage))
  const list = useQuery(filesQuery(storage, path))
  const all = useSyncExternalStore(uploads.watch, uploads.list)
  const [asked, setAsked] = useState<Asked | null>(null)
  const queries = useQueryClient()
  const toast = useToast()
  const chooser = useRef<HTMLInputElement>(null)
  const folderChooser = useRef<HTMLInputElement>(null)
  const isThere = !!detail.data && !!list.data
  const error = detail.error ?? (list.data ? null : list.error)
  const isWritable = isThere && !detail.data?.readOnly
  usePageTitle(t('Files of {name}', { name: placeName(storage, path) }))

  // another folder than before, or what had the focus is gone
  const before = useRef(path)
  useEffect(() => {
    if (before.current !== path) focusFolder()
    before.current = path
  }, [path])
  const focused = useRef<Element | null>(null) // what had the focus last
  useEffect(() => {
    // with what it was done to, a dialog or a button may have gone, at once or when the list is read again
    if (document.activeElement === document.body && focused.current && !focused.current.isConnected) focusFolder()
  }, [asked, list.data])

  const fresh = useCallback(() => queries.invalidateQueries({ queryKey: ['files', storage] }), [queries, storage])
  const placed = all.filter((one) => one.storage === storage && one.state.kind === 'done').length
  const isLive = uploads.isLive()
  useEffect(() => {
    // many small ones: not a list for each, but one behind the last
    if (placed) void queries.invalidateQueries({ queryKey: ['files', storage] }, { cancelRefetch: !isLive })
  }, [placed, isLive, queries, storage])

  const send = useCallback((files: File[]) => uploads.add(storage, files.map((source) => ({ path: pathJoin(path, source.name), source }))), [storage, path])
  const tree = useTreeUpload(storage, path, fresh)
  const dropped = ({ files, folders }: Dropped) => {
    if (files.length) send(files)
    if (folders.length) tree.ofEntries(folders)
  }
  const isDropping = useDrop(isWritable ? dropped : null)
  const replace = useCallback((upload: Upload, there: StorageFile) => setAsked({ kind: 'replace', upload, there }), [])
  const download = (file: StorageFile) => {
    fileDownload(storage, pathJoin(path, file.name)).catch((failure: unknown) =>
      toast(t('{name} could not be downloaded: {why}', { name: file.name, why: failure instanceof Error ? failure.message : String(failure) }), 'error'),
    )
  }

  return (
    <div className="page files" data-dropping={isDropping || undefined} onFocus={({ target }) => void (focused.current = target)}>
      <h1>{t('Files of {name}', { name: storage })}</h1>
      <Crumbs storage={storage} path={path} />
      {error && <NotHere storage={storage} path={path} error={error} onAgain={() => void Promise.all([detail.refetch(), list.refetch()])} />}
      {!isThere && !error && <Loading />}
      {isThere && (
        <Notes isReadOnly={!!detail.data.readOnly} isOwn={detail.data.share === false}>
          {isWritable && (
            <>
              <Button kind="main" onClick={() => chooser.current?.click()}>
                {t('Upload files …')}
              </Button>
              <Button onClick={() => folderChooser.current?.click()}>{t('Upload a folder …')}</Button>
              <Button onClick={() => setAsked({ kind: 'folder' })}>{t('New folder …')}</Button>
              <input
                ref={chooser}
                type="file"
                multiple
                hidden
                aria-label={t('Files to upload')}
                onChange={({ target }) => {
                  send([...(target.files ?? [])])
                  target.value = '' // the same one may be chosen again
                }}
              />
              <input
                ref={folderChooser}
                type="file"
                multiple
                hidden
                {...{ webkitdirectory: '' }}
                aria-label={t('Folder to upload')}
                onChange={({ target }) => {
                  if (target.files?.length) tree.ofFiles([...target.files])
                  target.value = ''
                }}
              />
              <span className="quiet small">{t('Files and folders can be dropped anywhere on this page, too.')}</span>
              <StorageCommands storage={detail.data} />
            </>
          )}
        </Notes>
      )}
      <TreeStage upload={tree} />
      <UploadList all={all} onReplace={replace} />
      {isThere && (
        <FileList
          key={path}
          storage={storage}
          path={path}
          files={list.data}
          error={list.error}
          isWritable={isWritable}
          isFetching={list.isFetching}
          onReload={() => void list.refetch()}
          onDownload={download}
          onRename={(file) => setAsked({ kind: 'rename', file })}
          onRemove={(files) => setAsked({ kind: 'remove', files })}
        />
      )}
      <Cli command={`skep storage ls ${placeWord(storage, path)}`} />
      {isWritable && <Cli command={`skep storage put FILE … ${placeWord(storage, path, true)}`} />}
      {isWritable && <Cli command={`skep storage put -r FOLDER ${placeWord(storage, path, true)}`} />}
      {asked && <FileDialog asked={asked} storage={storage} folder={path} isOwn={detail.data?.share === false} fresh={fresh} onClose={() => setAsked(null)} />}
      {isDropping && (
        <p className="drop-here" aria-hidden="true">
          {t('Drop what you hold to upload it to {name}', { name: path ? lastName(path) : storage })}
        </p>
      )}
    </div>
  )
}
