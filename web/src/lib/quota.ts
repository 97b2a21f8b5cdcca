// The quotas that a user or a group can have, in the order in which they are shown.
import type { Schema } from '../api/client'
import { t } from '../i18n/i18n'

export type QuotaKind = keyof Schema['UserQuotas']
export const QUOTAS: QuotaKind[] = ['liveJobs', 'gpus', 'storedJobs', 'submitsPerMinute', 'requestsPerSecond', 'streams', 'gpuHoursPerMonth', 'keptJobs']

export function quotaName(kind: QuotaKind): string {
  switch (kind) {
    case 'liveJobs':
      return t('Jobs that have not ended')
    case 'gpus':
      return t('GPUs of these')
    case 'storedJobs':
      return t('Jobs kept, ended ones too')
    case 'submitsPerMinute':
      return t('Submissions in a minute')
    case 'requestsPerSecond':
      return t('Requests in a second')
    case 'streams':
      return t('Logs and events followed at once')
    case 'gpuHoursPerMonth':
      return t('GPU hours in this calendar month (UTC)')
    case 'keptJobs':
      return t('Ended jobs that stay when room gets short')
  }
}
