// What has become of a request: open, or who decided it, and what they said.
import type { Request } from '../api/requests'
import { t } from '../i18n/i18n'
import { Ago } from './ui'

const COLOURS: Record<Request['status'], string> = { open: 'WAITING', accepted: 'SUCCEEDED', refused: 'FAILED', withdrawn: 'STOPPED' }

function stateName(status: Request['status']): string {
  switch (status) {
    case 'open':
      return t('Waits for a decision')
    case 'accepted':
      return t('Accepted')
    case 'refused':
      return t('Refused')
    case 'withdrawn':
      return t('Withdrawn')
  }
}

export function RequestState({ request }: { request: Request }) {
  return (
    <>
      <span className="state" data-state={COLOURS[request.status]}>
        {stateName(request.status)}
      </span>
      {request.decidedBy && request.status !== 'withdrawn' && (
        <div className="small quiet">
          {t('by {user}', { user: request.decidedBy })} <Ago ms={request.decidedTime} />
          {request.group && `, ${t('by the group {group}', { group: request.group })}`}
        </div>
      )}
      {request.answer && (
        <div className="small anywhere" lang="">
          {request.answer}
        </div>
      )}
    </>
  )
}
