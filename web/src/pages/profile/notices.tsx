// Of which changes of their jobs somebody wants to be told: what new jobs of the portal ask for. And of the decisions on their requests.
import { useQueryClient } from '@tanstack/react-query'
import { useRef, useState } from 'react'
import { call, enc, type User } from '../../api/client'
import type { NoticeKind } from '../../editor/job-extras'
import { t } from '../../i18n/i18n'
import { decisionsExtension, hearsDecisions, noticesExtension, noticesOfUser } from '../../lib/notices'
import { NoticeKinds } from '../../ui/notice-kinds'
import { Check, Cli, ErrorNote } from '../../ui/ui'

export function OwnNotices({ user }: { user: User }) {
  const [chosen, setChosen] = useState<NoticeKind[] | null>(null) // until the account says so
  const last = useRef<Promise<unknown>>(Promise.resolve()) // one behind the other: each says all of them
  const [decisions, setDecisions] = useState<boolean | null>(null) // likewise
  const [error, setError] = useState<unknown>(null)
  const queries = useQueryClient()
  const asked = chosen ?? noticesOfUser(user)
  const write = (extension: Record<string, unknown>) => {
    setError(null)
    last.current = last.current
      .then(() => call('PUT', `/api/v2/users/${enc(user.username ?? '')}/extension`, { json: { extension } }))
      .catch(setError)
      .then(() => queries.invalidateQueries({ queryKey: ['users'] }))
    return last.current
  }
  const set = (kinds: NoticeKind[]) => {
    setChosen(kinds)
    void write(noticesExtension(kinds)).finally(() => setChosen((now) => (now === kinds ? null : now)))
  }
  const setHears = (hears: boolean) => {
    setDecisions(hears)
    void write(decisionsExtension(hears)).finally(() => setDecisions((now) => (now === hears ? null : now)))
  }
  return (
    <section className="card" aria-label={t('Messages about my jobs')}>
      <h2>{t('Messages about my jobs')}</h2>
      <p className="small quiet">
        {t('A new job of the portal begins with these; its form and its text can say otherwise.')} {!user.email && t('Your account has no mail address, so none can be sent.')}
      </p>
      <div role="group" aria-label={t('Messages about my jobs')} className="stack-tight">
        <NoticeKinds asked={asked} onChange={set} />
      </div>
      <Cli command={`skep run --notify ${asked.join(',') || 'succeeded,failed'} --image IMAGE COMMAND`} />
      <h3>{t('Messages about my requests')}</h3>
      <Check checked={decisions ?? hearsDecisions(user)} onChange={(event) => setHears(event.target.checked)}>
        {t('when a request of mine is accepted or refused')}
      </Check>
      {error !== null && <ErrorNote error={error} />}
    </section>
  )
}
