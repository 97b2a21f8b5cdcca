// What users and visitors ask for, and the decisions of administrators.
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { groupsQuery } from '../../api/queries'
import { requestAccept, requestRefuse, requestsQuery, type Request } from '../../api/requests'
import { t } from '../../i18n/i18n'
import { groupsFor } from '../../lib/requests'
import { useSearch } from '../../router'
import { RequestState } from '../../ui/request-state'
import { Ago, Button, Check, Confirm, Empty, ErrorNote, Loading, SelectField, TableCard, TextField, useToast } from '../../ui/ui'

const wishOf = (request: Request) => (request.kind === 'account' ? t('an account') : t('virtual cluster {vc}', { vc: request.virtualCluster ?? '' }))

interface DecisionProps {
  request: Request
  onClose: () => void
}

function useFresh() {
  const queries = useQueryClient()
  return () => Promise.all(['requests', 'users', 'groups'].map((key) => queries.invalidateQueries({ queryKey: [key] })))
}

/** A decision that somebody else has made meanwhile is shown, too. */
function AcceptDialog({ request, onClose }: DecisionProps) {
  const { data: groups, error } = useQuery(groupsQuery)
  const [chosen, setChosen] = useState<string | null>(null) // until somebody chooses: the first that fits
  const [answer, setAnswer] = useState('')
  const [reuses, setReuses] = useState(false)
  const fresh = useFresh()
  const toast = useToast()
  const fitting = groupsFor(request, groups ?? [])
  const group = chosen ?? (request.kind === 'account' ? '' : (fitting[0] ?? ''))
  const confirm = async () => {
    await requestAccept(request.id, group, answer.trim(), reuses).finally(() => void fresh())
    toast(t('The request of {name} is accepted.', { name: request.username }))
  }
  return (
    <Confirm title={t('Accept the request of {name}?', { name: request.username })} action={t('Accept')} disabled={!groups && !error} onClose={onClose} onConfirm={confirm}>
      {request.kind === 'account' ? (
        <p>{t('{name} becomes a user with the password that was typed in, and the mail address {email}. Nobody has checked that address: accept whom you know.', { name: request.username, email: request.email ?? '' })}</p>
      ) : (
        <p>{t('{name} may use the virtual cluster {vc} at once.', { name: request.username, vc: request.virtualCluster ?? '' })}</p>
      )}
      {request.nameUsedBefore && (
        <Check required checked={reuses} onChange={(event) => setReuses(event.target.checked)}>
          {t('Use the name again: what the removed user left in storages becomes this one’s')}
        </Check>
      )}
      {error && <ErrorNote error={error} />}
      {!groups && !error && <Loading />}
      {groups && (
        <SelectField label={request.kind === 'account' ? t('A group besides “default”') : t('Granted by')} value={group} onChange={(event) => setChosen(event.target.value)}>
          {fitting.map((name) => (
            <option key={name} value={name}>
              {t('the group {group}', { group: name })}
            </option>
          ))}
          <option value="">{request.kind === 'account' ? t('none') : t('nothing else: to the user alone')}</option>
        </SelectField>
      )}
      <TextField label={t('Answer, for who has asked')} maxLength={300} value={answer} onChange={(event) => setAnswer(event.target.value)} />
    </Confirm>
  )
}

function RefuseDialog({ request, onClose }: DecisionProps) {
  const [answer, setAnswer] = useState('')
  const fresh = useFresh()
  const toast = useToast()
  const confirm = async () => {
    await requestRefuse(request.id, answer.trim()).finally(() => void fresh())
    toast(t('The request of {name} is refused.', { name: request.username }))
  }
  return (
    <Confirm title={t('Refuse the request of {name}?', { name: request.username })} action={t('Refuse')} danger onClose={onClose} onConfirm={confirm}>
      {request.kind === 'account' && <p>{t('The visitor is not told: write to {email} if you want to say why.', { email: request.email ?? '' })}</p>}
      <TextField label={t('Reason, for people')} required maxLength={300} value={answer} autoFocus onChange={(event) => setAnswer(event.target.value)} />
    </Confirm>
  )
}

function Row({ request, onAccept, onRefuse }: { request: Request; onAccept: () => void; onRefuse: () => void }) {
  const wish = wishOf(request)
  return (
    <tr>
      <th scope="row" className="anywhere">
        {request.username}
        {request.email && (
          <div className="small quiet" lang="">
            {request.email}
          </div>
        )}
        {request.address && (
          <div className="small quiet" lang="">
            {t('from {address}', { address: request.address })}
          </div>
        )}
      </th>
      <td>
        {wish}
        {request.nameTaken && request.status === 'open' && <div className="small error">{t('There is a user of this name: it can only be refused.')}</div>}
        {request.nameUsedBefore && request.status === 'open' && <div className="small error">{t('A user of this name was removed: it may be somebody else who asks.')}</div>}
      </td>
      <td className="nowrap">
        <Ago ms={request.askedTime} />
      </td>
      <td className="anywhere" lang="">
        {request.reason}
      </td>
      <td>
        <RequestState request={request} />
      </td>
      <td className="nowrap">
        {request.status === 'open' && (
          <>
            <Button small aria-label={t('Accept the request of {name}: {wish}', { name: request.username, wish })} disabled={request.nameTaken} onClick={onAccept}>
              {t('Accept …')}
            </Button>{' '}
            <Button small kind="danger" aria-label={t('Refuse the request of {name}: {wish}', { name: request.username, wish })} onClick={onRefuse}>
              {t('Refuse …')}
            </Button>
          </>
        )}
      </td>
    </tr>
  )
}

export default function Requests() {
  const [search, change] = useSearch()
  const isAll = search.get('show') === 'all'
  const { data, error } = useQuery(requestsQuery(isAll ? '' : 'status=open'))
  const [asked, setAsked] = useState<{ act: 'accept' | 'refuse'; request: Request } | null>(null)
  if (!data) return error ? <ErrorNote error={error} /> : <Loading />
  const close = () => setAsked(null)
  return (
    <div className="stack">
      {error && <ErrorNote error={error} />}
      <p className="quiet">{t('A decision is never changed. What is decided is kept for 30 days, and so is a request for an account that nobody decides.')}</p>
      <div className="row">
        <SelectField label={t('Show')} value={isAll ? 'all' : 'open'} onChange={(event) => change({ show: event.target.value === 'all' ? 'all' : null })}>
          <option value="open">{t('what waits for a decision')}</option>
          <option value="all">{t('all requests')}</option>
        </SelectField>
      </div>
      {data.data.length === 0 ? (
        <div className="card">
          <Empty title={isAll ? t('Nothing was asked for') : t('No request waits')}>
            <p>
              {t('Users ask for virtual clusters on the page of the cluster. Visitors ask for accounts where the configuration allows it:')} <code>auth.signUp: request</code>
            </p>
          </Empty>
        </div>
      ) : (
        <TableCard label={t('Requests')} heads={[t('Who'), t('Asks for'), t('Asked'), t('Why'), t('State'), { hidden: t('Actions') }]}>
          {data.data.map((request) => (
            <Row key={request.id} request={request} onAccept={() => setAsked({ act: 'accept', request })} onRefuse={() => setAsked({ act: 'refuse', request })} />
          ))}
        </TableCard>
      )}
      {asked?.act === 'accept' && <AcceptDialog request={asked.request} onClose={close} />}
      {asked?.act === 'refuse' && <RefuseDialog request={asked.request} onClose={close} />}
    </div>
  )
}
