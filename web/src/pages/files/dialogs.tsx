// What is asked before something in a folder is made, renamed, replaced or deleted.
import { useState, type FormEvent } from 'react'
import { forEachWhole } from '../../api/actions'
import { fileRemove, fileRename, folderMake, uploads } from '../../api/files'
import { languageGet, t } from '../../i18n/i18n'
import { lastName, pathJoin, pathOf, placeName, type StorageFile } from '../../lib/files'
import { bytes, clock } from '../../lib/format'
import type { Upload } from '../../lib/uploads'
import { Button, Confirm, Dialog, ErrorNote, TextField, useToast, useUndo, useWhileThere } from '../../ui/ui'

export type Asked = { kind: 'folder' } | { kind: 'rename'; file: StorageFile } | { kind: 'remove'; files: StorageFile[] } | { kind: 'replace'; upload: Upload; there: StorageFile }

interface Props {
  storage: string
  folder: string
  isOwn: boolean
  fresh: () => Promise<void>
  onClose: () => void
}

function NameDialog({ title, label, hint, value, action, onClose, onName }: { title: string; label: string; hint: string; value: string; action: string; onClose: () => void; onName: (name: string) => Promise<void> }) {
  const [error, setError] = useState<unknown>(null)
  const [isBusy, setBusy] = useState(false)
  const close = useWhileThere(onClose)
  const submit = async (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault()
    setBusy(true)
    try {
      await onName(String(new FormData(event.currentTarget).get('name')))
      close()
    } catch (failure) {
      setError(failure)
      setBusy(false)
    }
  }
  return (
    <Dialog title={title} onClose={onClose}>
      <form className="stack" onSubmit={(event) => void submit(event)}>
        {error !== null && <ErrorNote error={error} />}
        <TextField label={label} hint={hint} name="name" required autoFocus defaultValue={value} maxLength={2048} lang="" spellCheck={false} />
        <div className="dialog-foot">
          <Button onClick={onClose}>{t('Cancel')}</Button>
          <Button type="submit" kind="main" disabled={isBusy}>
            {action}
          </Button>
        </div>
      </form>
    </Dialog>
  )
}

/** A file as one knows it again: where it is, how large, and since when. */
function Facts({ where, file }: { where: string; file: StorageFile }) {
  return (
    <li className="anywhere">
      <code lang="">{where}</code>{' '}
      <span className="small quiet">
        {file.kind === 'file' && `${bytes(file.size)}, `}
        {file.kind === 'folder' && `${t('folder')}, `}
        {t('changed {when}', { when: clock(file.changedTime, languageGet()) })}
      </span>
    </li>
  )
}

function RemoveDialog({ files, storage, folder, isOwn, fresh, onClose }: Props & { files: StorageFile[] }) {
  const toast = useToast()
  const remove = async () => {
    await forEachWhole(files.map(({ name }) => name), (name) => fileRemove(storage, pathJoin(folder, name)), fresh)
    toast(files.length === 1 ? t('{name} is deleted.', { name: files[0]!.name }) : t('{n} file is deleted.|{n} files are deleted.', { n: files.length }))
  }
  return (
    <Confirm danger title={files.length === 1 ? t('Delete {name}?', { name: files[0]!.name }) : t('Delete {n} file?|Delete {n} files?', { n: files.length })} action={t('Delete')} onClose={onClose} onConfirm={remove}>
      <ul className="stack-tight destroyed">
        {files.map((file) => (
          <Facts key={file.name} where={placeName(storage, pathJoin(folder, file.name))} file={file} />
        ))}
      </ul>
      <p>
        {isOwn ? t('It is gone for you and for your jobs, also for those that run now.') : t('It is gone for everyone who uses this storage, and for jobs that run now.')} {t('Nothing brings it back.')}
      </p>
      {files.some(({ kind }) => kind === 'folder') && <p className="small">{t('A folder is deleted only when it is empty: delete what is in it first.')}</p>}
    </Confirm>
  )
}

export function FileDialog({ asked, ...props }: Props & { asked: Asked }) {
  const { storage, folder, fresh, onClose } = props
  const toast = useToast()
  const undo = useUndo()
  switch (asked.kind) {
    case 'remove':
      return <RemoveDialog {...props} files={asked.files} />
    case 'folder': {
      const make = async (name: string) => {
        await folderMake(storage, pathJoin(folder, name))
        await fresh()
        toast(t('The folder {name} is made.', { name }))
      }
      return <NameDialog title={t('New folder')} label={t('Name of the folder')} hint={t('In {folder}', { folder: placeName(storage, folder) })} value="" action={t('Make the folder')} onClose={onClose} onName={make} />
    }
    case 'rename': {
      const before = pathJoin(folder, asked.file.name)
      const rename = async (text: string) => {
        const now = pathOf(text)
        if (now === before) return
        await fileRename(storage, before, now)
        await fresh()
        undo(t('{name} is {other} now.', { name: before, other: now }), async () => {
          await fileRename(storage, now, before)
          await fresh()
        })
      }
      return (
        <NameDialog
          title={t('Rename or move {name}', { name: asked.file.name })}
          label={t('New name, with its folders')}
          hint={t('From the folder of the storage on. The folders must be there, and nothing is replaced.')}
          value={before}
          action={t('Rename')}
          onClose={onClose}
          onName={rename}
        />
      )
    }
    case 'replace': {
      const { upload, there } = asked
      return (
        <Confirm danger title={t('Replace {name}?', { name: lastName(upload.path) })} action={t('Replace')} onClose={onClose} onConfirm={() => Promise.resolve(uploads.again(upload.key, true))}>
          <ul className="stack-tight">
            <Facts where={placeName(upload.storage, upload.path)} file={there} />
          </ul>
          <p>{t('The file from this computer, with {size}, takes its place when all of it has come. Nothing brings the other one back.', { size: bytes(upload.source.size) })}</p>
        </Confirm>
      )
    }
  }
}
