// The lamp of a machine: each state has a shape of its own, so that nobody must tell colours apart.
import type { ReactNode } from 'react'
import { t } from '../../i18n/i18n'
import type { LampState } from '../../lib/lamps'

const SHAPES: Record<LampState, ReactNode> = {
  ready: <circle cx="8" cy="8" r="6" fill="currentColor" />,
  warned: <path d="M8 1.500L15 14.500H1z M7.200 6v4h1.600V6z M7.200 11.200v1.600h1.600v-1.600z" fill="currentColor" fillRule="evenodd" />,
  cordoned: <path d="M8 1a7 7 0 1 0 0 14A7 7 0 0 0 8 1z M3.500 7h9v2h-9z" fill="currentColor" fillRule="evenodd" />,
  unhealthy: <path d="M3 3l10 10M13 3L3 13" fill="none" stroke="currentColor" strokeWidth="3" />,
  lost: <path d="M2 2l12 12" fill="none" stroke="currentColor" strokeWidth="2" />,
  unknown: <circle cx="8" cy="8" r="5.5" fill="none" stroke="currentColor" strokeWidth="2" strokeDasharray="3 2.2" />,
}

export function lampName(lamp: LampState): string {
  switch (lamp) {
    case 'ready':
      return t('Ready')
    case 'warned':
      return t('Ready, with failures')
    case 'cordoned':
      return t('Cordoned')
    case 'unhealthy':
      return t('Unhealthy')
    case 'lost':
      return t('Lost')
    case 'unknown':
      return t('No engine has it')
  }
}

export function Lamp({ lamp }: { lamp: LampState }) {
  return (
    <svg className="lamp" data-lamp={lamp} viewBox="0 0 16 16" aria-hidden="true">
      {SHAPES[lamp]}
      {lamp === 'lost' && <circle cx="8" cy="8" r="6" fill="none" stroke="currentColor" strokeWidth="2" />}
    </svg>
  )
}
