// What needs somebody's attention, and what has needed it lately: a bell in the bar, with a mark while something is unseen.
import { useEffect, useState } from 'react'
import { useQuery } from '@tanstack/react-query'
import { alertsQuery } from '../api/queries'
import { languageGet, t } from '../i18n/i18n'
import { alertKey, alertPath, ALERTS_SHOWN, hasEnded, unseenOf, type Alert } from '../lib/alerts'
import { clock } from '../lib/format'
import { settingsChange, settingsGet, useSettings } from '../lib/settings'
import { Link } from '../router'
import { Ago, ErrorNote, Menu } from './ui'

function When({ text, at }: { text: string; at: string }) {
  const ms = Date.parse(at)
  return (
    <div className="quiet">
      {text} <Ago ms={ms} /> ({clock(ms, languageGet())})
    </div>
  )
}

function Item({ alert, isNew, close }: { alert: Alert; isNew: boolean; close: () => void }) {
  const path = alertPath(alert)
  return (
    <li data-ended={hasEnded(alert) || undefined}>
      <div className="row">
        <strong lang="en">{alert.labels['alertname']}</strong>
        <span className="tag" data-severity={hasEnded(alert) ? undefined : alert.labels['severity']}>
          {alert.labels['severity'] === 'error' ? t('error') : t('warning')}
        </span>
        {isNew && <span className="tag">{t('new')}</span>}
      </div>
      <div className="anywhere" lang="en">
        {alert.annotations['summary']}
      </div>
      <When text={t('Since')} at={alert.startsAt} />
      {hasEnded(alert) && <When text={t('Ended')} at={alert.endsAt} />}
      {path && (
        <Link href={path.href} onClick={close}>
          {path.text}
        </Link>
      )}
    </li>
  )
}

/** Whoever opens the list has seen what is on it; until it is closed it says what was new. */
function List({ alerts, close }: { alerts: Alert[]; close: () => void }) {
  const [seen] = useState(() => settingsGet().alertsSeen)
  useEffect(() => settingsChange({ alertsSeen: alerts.map(alertKey) }), [alerts])
  const unseen = new Set(unseenOf(alerts, seen))
  const parts: [string, Alert[]][] = [
    [t('Now'), alerts.filter((alert) => !hasEnded(alert))],
    [t('Ended within a week'), alerts.filter(hasEnded)],
  ]
  return (
    <div className="alerts" tabIndex={0} role="region" aria-label={t('Alerts')}>
      {alerts.length === 0 && <p>{t('Nothing needs attention')}</p>}
      {parts.map(
        ([title, part]) =>
          part.length > 0 && (
            <section key={title}>
              <h2>{title}</h2>
              <ul className="stack">
                {part.map((alert) => (
                  <Item key={alertKey(alert)} alert={alert} isNew={unseen.has(alert)} close={close} />
                ))}
              </ul>
            </section>
          ),
      )}
      {alerts.length >= ALERTS_SHOWN && <p className="quiet">{t('These are the newest {n}; skep alerts --all shows all.', { n: ALERTS_SHOWN })}</p>}
    </div>
  )
}

export function Alerts() {
  const { data, error } = useQuery(alertsQuery)
  const seen = useSettings().alertsSeen
  const now = (data ?? []).filter((alert) => !hasEnded(alert)).length
  const unseen = unseenOf(data ?? [], seen).length
  const known = [now ? t('{n} alert|{n} alerts', { n: now }) : t('No alerts'), ...(unseen ? [t('{n} unseen', { n: unseen })] : [])].join(', ')
  const name = data ? known : t('Alerts') // the bell is there from the first moment, so that the bar does not move
  return (
    <Menu
      label={
        <span className="bell" data-now={now > 0 || undefined} data-unseen={unseen > 0 || undefined} title={name}>
          <svg viewBox="0 0 16 16" width="16" height="16" aria-hidden="true">
            <path fill="currentColor" d="M8 1a1 1 0 0 0-1 1v.6A4.5 4.5 0 0 0 3.5 7v3L2 12v1h12v-1l-1.500-2V7A4.500 4.500 0 0 0 9 2.600V2a1 1 0 0 0-1-1ZM6.300 14a1.800 1.800 0 0 0 3.400 0Z" />
          </svg>
          {now > 0 && now}
        </span>
      }
      name={name}
    >
      {(close) => (data ? <List alerts={data} close={close} /> : error && <ErrorNote error={error} />)}
    </Menu>
  )
}
