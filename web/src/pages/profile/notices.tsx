// Of which changes of their jobs somebody wants to be told: what new jobs of the portal ask for.
import { useQueryClient } from '@tanstack/react-query'
import { useRef, useState } from 'react'
import { call, enc, type User } from '../../api/client'
import type { NoticeKind } from '../../editor/job-extras'
import { t } from '../../i18n/i18n'
import { noticesExtension, noticesOfUser } from '../../lib/notices'
import { NoticeKinds } from '../../ui/notice-kinds'
import { Cli, ErrorNote } from '../../ui/ui'

export function OwnNotices({ user }: { user: User }) {
  const [chosen, setChosen] = useState<NoticeKind[] | null>(null) // until the account says so
  const last = useRef<Promise<unknown>>(Promise.resolve()) // one behind the other: each says all of them
  const [error, setError] = useState<unknown>(null)
  const queries = useQueryClient()
  const asked = chosen ?? noticesOfUser(user)
  const set = (kinds: NoticeKind[]) => {
    setChosen(kinds)
    setError(null)
    last.current = last.current
      .then(() => call('PUT', `/api/v2/users/${enc(user.username ?? '')}/extension`, { json: { extension: noticesExtension(kinds) } }))
      .catch(setError)
      .then(() => queries.invalidateQueries({ queryKey: ['users'] }))
      .finally(() => setChosen((now) => (now === kinds ? null : now)))
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
      {error !== null && <ErrorNote error={error} />}
      <Cli command={`skep run --notify ${asked.join(',') || 'succeeded,failed'} --image IMAGE COMMAND`} />
    </section>
  )
}
