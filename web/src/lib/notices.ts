// The changes of a job of which its user can be told: in words, and those that somebody wants for all new jobs, which stand in the user's extension.
import type { User } from '../api/client'
import { NOTICE_KINDS, type NoticeKind } from '../editor/job-extras'
import { t } from '../i18n/i18n'

export function noticeText(kind: NoticeKind): string {
  switch (kind) {
    case 'running':
      return t('when its first task has started')
    case 'retried':
      return t('when it is tried again')
    case 'succeeded':
      return t('when it has succeeded')
    case 'stopped':
      return t('when it was stopped')
    case 'failed':
      return t('when it has failed')
  }
}

const KEY = 'jobStatusChangeNotification' // as in a job file

export function noticesOfUser(user: User | undefined): NoticeKind[] {
  const kept: unknown = (user?.extension as Record<string, unknown> | undefined)?.[KEY]
  if (typeof kept !== 'object' || kept === null) return []
  return NOTICE_KINDS.filter((kind) => (kept as Record<string, unknown>)[kind] === true)
}

const DECISIONS = 'requestDecisionNotification'

/** Of what is decided on their requests everybody is told, unless the account says otherwise. */
export const hearsDecisions = (user: User | undefined) => (user?.extension as Record<string, unknown> | undefined)?.[DECISIONS] !== false
export const decisionsExtension = (hears: boolean) => ({ [DECISIONS]: hears })

export const noticesExtension = (kinds: readonly NoticeKind[]) => ({ [KEY]: Object.fromEntries(NOTICE_KINDS.map((kind) => [kind, kinds.includes(kind)])) })
