// What is on its way into storages, and what has become of it.
import { memo } from 'react'
import { ApiError } from '../../api/client'
import { uploads } from '../../api/files'
import { t } from '../../i18n/i18n'
import { folderOf, lastName, type StorageFile } from '../../lib/files'
import { bytes, duration } from '../../lib/format'
import type { Upload } from '../../lib/uploads'
import { adviceOf, Button, Said, useNow } from '../../ui/ui'

const textOf = (error: unknown) => (error instanceof Error ? error.message : String(error))

function Why({ error }: { error: unknown }) {
  return <>{error instanceof ApiError ? <Said>{textOf(error)}</Said> : textOf(error)}</>
}

function What({ upload: { state, sent, source } }: { upload: Upload }) {
  const now = useNow()
  const how = t('{sent} of {size}', { sent: bytes(sent), size: bytes(source.size) })
  switch (state.kind) {
    case 'waiting':
      return <>{t('waits for others')}</>
    case 'sending':
      return <>{how}</>
    case 'held':
      return (
        <>
          {how} · <Why error={state.error} /> · {t('Tries again in {time}', { time: duration(Math.ceil(Math.max(0, state.untilMs - now) / 1000) * 1000) })}
        </>
      )
    case 'taken':
      return <>{t('A file of this name is there already, with {size}.', { size: bytes(state.there.size) })}</>
    case 'failed':
      return (
        <strong className="upload-failed">
          <Why error={state.error} /> {adviceOf(state.error)}
        </strong>
      )
    case 'done':
      return <>{t('uploaded, {size}', { size: bytes(source.size) })}</>
  }
}

const Row = memo(function Row({ upload, onReplace }: { upload: Upload; onReplace: (upload: Upload, there: StorageFile) => void }) {
  const { key, storage, path, source, sent, state } = upload
  const name = lastName(path)
  const folder = folderOf(`${storage}/${path}`)
  const isUnderWay = state.kind === 'sending' || state.kind === 'held' || state.kind === 'waiting'
  return (
    <li className="upload" data-state={state.kind}>
      <div className="anywhere">
        <strong lang="">{name}</strong>{' '}
        <span className="quiet small">
          {t('into')} <span lang="">{folder}</span>
        </span>
      </div>
      <div className="row">
        {state.kind === 'taken' && (
          <Button small aria-label={t('Replace {name} …', { name })} onClick={() => onReplace(upload, state.there)}>
            {t('Replace …')}
          </Button>
        )}
        {state.kind === 'failed' && (
          <Button small aria-label={t('Upload {name} again', { name })} onClick={() => uploads.again(key)}>
            {t('Try again')}
          </Button>
        )}
        <Button small aria-label={isUnderWay ? t('Cancel the upload of {name}', { name }) : t('Take {name} from this list', { name })} onClick={() => uploads.remove([key])}>
          {isUnderWay ? t('Cancel') : '✕'}
        </Button>
      </div>
      {isUnderWay && <progress aria-label={t('Upload of {name}', { name })} max={source.size || 1} value={sent} />}
      <div className="small upload-what">
        <What upload={upload} />
      </div>
    </li>
  )
})

/** Of more than these the list has those alone that are not uploaded yet, and the first of them. */
const SHOWN_MAX = 200

export function UploadList({ all, onReplace }: { all: readonly Upload[]; onReplace: (upload: Upload, there: StorageFile) => void }) {
  if (!all.length) return null
  const shown = all.length > SHOWN_MAX ? all.filter(({ state }) => state.kind !== 'done').slice(0, SHOWN_MAX) : all
  const over = all.filter(({ state }) => state.kind === 'done')
  const wrong = all.filter(({ state }) => state.kind === 'failed' || state.kind === 'taken').length
  return (
    <section className="card" aria-label={t('Uploads')}>
      <div className="card-head">
        <h2>{t('Uploads')}</h2>
        <span className="small" role="status">
          {t('{done} of {n} file is uploaded.|{done} of {n} files are uploaded.', { done: over.length, n: all.length })}{' '}
          {wrong > 0 && t('{n} needs a decision of yours.|{n} need a decision of yours.', { n: wrong })}
        </span>
        <div className="row push">
          {over.length < all.length && (
            <Button small onClick={() => uploads.remove(all.filter(({ state }) => state.kind !== 'done').map(({ key }) => key))}>
              {t('Cancel all')}
            </Button>
          )}
          {over.length > 0 && (
            <Button small onClick={() => uploads.remove(over.map(({ key }) => key))}>
              {t('Clear what is uploaded')}
            </Button>
          )}
        </div>
      </div>
      <ul className="uploads" tabIndex={0} aria-label={t('Uploads')}>
        {shown.map((upload) => (
          <Row key={upload.key} upload={upload} onReplace={onReplace} />
        ))}
      </ul>
      {shown.length < all.length && <p className="small quiet">{t('{n} more is not shown here.|{n} more are not shown here.', { n: all.length - shown.length })}</p>}
      {over.length < all.length && <p className="small quiet">{t('They go on while you look at other pages of this tab. What has come of a file is seen by nobody until all of it is there.')}</p>}
    </section>
  )
}
