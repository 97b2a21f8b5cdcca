// Alerts: which of them a person has not seen yet, and what one is about.
import type { Schema } from '../api/client'
import { t } from '../i18n/i18n'

export type Alert = Schema['Alert']

export const ALERTS_SHOWN = 200 // the server gives what stands first, the newest first

/** An alert that comes again is another one. */
export const alertKey = (alert: Alert) => `${alert.fingerprint}@${alert.startsAt}`
export const hasEnded = (alert: Alert) => alert.status.state === 'resolved'

export const unseenOf = (alerts: Alert[], seen: string[]) => {
  const known = new Set(seen)
  return alerts.filter((alert) => !known.has(alertKey(alert)))
}

/** The page that shows what it is about; null: there is none. */
export function alertPath(alert: Alert): { href: string; text: string } | null {
  const { node_name: node, job_name: job, request } = alert.labels
  if (job) return { href: `/jobs/${encodeURIComponent(job)}`, text: job }
  if (node) return { href: `/cluster?tab=nodes&node=${encodeURIComponent(node)}`, text: node }
  if (request) return { href: '/admin?tab=requests', text: t('Requests') }
  return null
}
