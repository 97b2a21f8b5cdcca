// Which storages the job has mounted, what each is, and where its tasks find it.
import { useQuery } from '@tanstack/react-query'
import { useId } from 'react'
import { storagesQuery, type Storage } from '../../api/queries'
import { mountPathOf, mountPathSet, storageSet } from '../../editor/job-extras'
import type { JobForm } from '../../editor/job-file'
import { t } from '../../i18n/i18n'
import { filesHref } from '../../lib/files'
import { storageWhere } from '../../lib/storages'
import { Awaited, useAwaited } from '../../ui/in-order'
import { StorageCommands } from '../../ui/storage-commands'
import { Check, ErrorNote, TextField } from '../../ui/ui'
import type { Editing } from './fields'

/** A storage that the text names and nobody offers is shown as well. */
export function Storages({ form, text, setText }: Editing & { form: JobForm }) {
  const { data, error } = useQuery(storagesQuery)
  const isAwaited = useAwaited(!!data || !!error)
  const offered = new Map((data ?? []).map((storage) => [storage.name ?? '', storage]))
  const names = [...new Set([...offered.keys(), ...form.storages.map((storage) => storage.name)])]
  const defaults = [...offered.values()].filter((storage) => storage.isDefault).map((storage) => storage.name ?? '')
  if (!names.length && !error) return isAwaited ? <Awaited /> : null
  return (
    <section className="card" aria-label={t('Storages')} data-awaited={isAwaited}>
      <h2>{t('Storages')}</h2>
      {error !== null && <ErrorNote error={error} />}
      {form.hasDefaultStorages && <p className="small quiet">{t('The job file has an empty list: it asks for your default storages.')}</p>}
      <ul className="stack choices">
        {names.map((name) => {
          const isDefault = form.hasDefaultStorages && defaults.includes(name)
          const mounts = isDefault ? [] : form.storages.map((storage, index) => ({ ...storage, index })).filter((storage) => storage.name === name)
          return (
            <li key={name}>
              <Choice name={name} storage={offered.get(name)} isLoading={!data} isMounted={isDefault || mounts.length > 0} onChange={(isWanted) => setText(storageSet(text, name, isWanted, defaults))} />
              {isDefault && (
                <p className="small">
                  {t('Mounted at')} <code>{mountPathOf(name)}</code>
                </p>
              )}
              {mounts.map(({ mountPath, index }) => (
                <TextField key={index} label={t('{name} is mounted at', { name })} value={mountPath} placeholder={mountPathOf(name)} onChange={(event) => setText(mountPathSet(text, index, event.target.value))} />
              ))}
              {offered.has(name) && (
                <div className="row small">
                  <a className="button" data-small href={filesHref(name)} target="_blank" rel="noopener" aria-label={t('Files of {name}, in a tab of their own', { name })}>
                    {t('Files')} ↗
                  </a>
                  <StorageCommands storage={offered.get(name)!} />
                </div>
              )}
            </li>
          )
        })}
      </ul>
    </section>
  )
}

interface ChoiceProps {
  name: string
  storage: Storage | undefined
  isLoading: boolean
  isMounted: boolean
  onChange: (isWanted: boolean) => void
}

function Choice({ name, storage, isLoading, isMounted, onChange }: ChoiceProps) {
  const about = useId()
  const where = storage && storageWhere(storage)
  return (
    <div className="row">
      <Check checked={isMounted} aria-describedby={about} onChange={(event) => onChange(event.target.checked)}>
        {name}
      </Check>
      <span id={about} className="row small quiet">
        {!storage && !isLoading && t('not offered to you')}
        {storage && (
          <>
            {storage.type !== 'other' && <span lang="en">{storage.type}</span>}
            {where && <code className="anywhere">{where}</code>}
            <span>{storage.share === false ? t('the folder of its user') : t('all of it')}</span>
            <span>{storage.readOnly ? t('read only') : t('read and write')}</span>
          </>
        )}
      </span>
      {storage?.isDefault && <span className="tag">{t('default')}</span>}
    </div>
  )
}
