import { useQuery } from '@tanstack/react-query'
import { storagesQuery } from '../../api/queries'
import { t } from '../../i18n/i18n'
import { filesHref } from '../../lib/files'
import { storageWhere } from '../../lib/storages'
import { Link } from '../../router'
import { useAwaited } from '../../ui/in-order'
import { ErrorNote } from '../../ui/ui'

/** What the person may have mounted; the page of storages says how a job file asks for it. */
export function OwnStorages() {
  const { data, error } = useQuery(storagesQuery)
  const isAwaited = useAwaited(!!data || !!error)
  return (
    <section className="card" aria-label={t('Storages')} data-awaited={isAwaited}>
      <div className="card-head">
        <h2>{t('Storages')}</h2>
        <Link className="push small" href="/storages">
          {t('How a job asks for them')}
        </Link>
      </div>
      {error !== null && <ErrorNote error={error} />}
      {data?.length === 0 && <p className="quiet">{t('No storage is offered to you')}</p>}
      <ul className="stack-tight">
        {data?.map((storage) => (
          <li key={storage.name} className="row">
            <strong>
              <Link href={filesHref(storage.name ?? '')} aria-label={t('Files of {name}', { name: storage.name ?? '' })}>
                {storage.name}
              </Link>
            </strong>
            <span className="quiet small" lang="en">{storage.type}</span>
            {storage.isDefault && <span className="tag">{t('default')}</span>}
            {storageWhere(storage) && <code className="small anywhere">{storageWhere(storage)}</code>}
            {storage.readOnly && <span className="tag">{t('read only')}</span>}
          </li>
        ))}
      </ul>
    </section>
  )
}
