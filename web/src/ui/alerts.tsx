// What needs somebody's attention now: a button in the bar that is there only while there is something.
import { useQuery } from '@tanstack/react-query'
import { alertsQuery } from '../api/queries'
import { t } from '../i18n/i18n'
import { Link } from '../router'
import { Menu } from './ui'

export function Alerts() {
  const { data } = useQuery(alertsQuery)
  if (!data?.length) return null
  return (
    <Menu label={<span className="alert-mark">⚠ {data.length}</span>} name={t('{n} alert|{n} alerts', { n: data.length })}>
      {(close) => (
        <ul className="stack alerts">
          {data.map((alert) => {
            const node = alert.labels?.['node_name']
            return (
              <li key={alert.fingerprint}>
                <div className="row">
                  <strong lang="en">{alert.labels?.['alertname']}</strong>
                  <span className="tag">{alert.labels?.['severity'] === 'error' ? t('error') : t('warning')}</span>
                </div>
                <div className="anywhere" lang="en">
                  {alert.annotations?.['summary']}
                </div>
                {node && (
                  <Link href={`/cluster?tab=nodes&node=${encodeURIComponent(node)}`} onClick={close}>
                    {node}
                  </Link>
                )}
              </li>
            )
          })}
        </ul>
      )}
    </Menu>
  )
}
