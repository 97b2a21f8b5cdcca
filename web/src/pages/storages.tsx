// Storages that the caller may have mounted into jobs, and how a job file asks for them.
import { useQuery } from '@tanstack/react-query'
import { storagesQuery } from '../api/queries'
import { t } from '../i18n/i18n'
import { filesHref } from '../lib/files'
import { storageWhere } from '../lib/storages'
import { Link } from '../router'
import { Cli, Copy, Empty, ErrorNote, Loading, TableCard, usePageTitle } from '../ui/ui'

const usage = (name: string) => `extras:\n  storages:\n    - name: ${name}\n      mountPath: /mnt/${name}\n`

export default function Storages() {
  const { data, error } = useQuery(storagesQuery)
  usePageTitle(t('Storages'))
  return (
    <div className="page">
      <h1>{t('Storages')}</h1>
      {error && <ErrorNote error={error} />}
      {!data && !error && <Loading />}
      {data && !data.length && (
        <div className="card">
          <Empty title={t('No storage is offered to you')}>
            <p>{t('The operator names storages in the configuration, and an administrator grants them to users and groups.')}</p>
          </Empty>
        </div>
      )}
      {data && data.length > 0 && (
        <TableCard label={t('Storages')} heads={[t('Name'), t('Kind'), t('Where it is'), t('What a job sees'), t('In a job file')]}>
          {data.map((storage) => (
            <tr key={storage.name}>
              <th scope="row">
                <Link href={filesHref(storage.name ?? '')} aria-label={t('Files of {name}', { name: storage.name ?? '' })}>
                  {storage.name}
                </Link>{' '}
                {storage.isDefault && <span className="tag">{t('default')}</span>}
              </th>
              <td lang="en">{storage.type}</td>
              <td className="anywhere">
                <code>{storageWhere(storage)}</code>
              </td>
              <td>
                {storage.share === false ? t('the folder of its user') : t('all of it')}
                {storage.readOnly && `, ${t('read only')}`}
              </td>
              <td>
                <Copy text={usage(storage.name ?? '')} label={t('Copy the lines for {name}', { name: storage.name ?? '' })} />
              </td>
            </tr>
          ))}
        </TableCard>
      )}
      <Cli command="skep storage ls" />
    </div>
  )
}
