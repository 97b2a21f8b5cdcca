// What the person has asked administrators for, and what became of it.
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { sessionGet } from '../../api/client'
import { requestsOf, requestWithdraw } from '../../api/requests'
import { t } from '../../i18n/i18n'
import { useAwaited } from '../../ui/in-order'
import { RequestState } from '../../ui/request-state'
import { Ago, Button, Cli, ErrorNote, useToast } from '../../ui/ui'

export function OwnRequests() {
  const { data, error } = useQuery(requestsOf(sessionGet()?.user ?? ''))
  const isAwaited = useAwaited(!!data || !!error)
  const queries = useQueryClient()
  const toast = useToast()
  const withdraw = (id: string) =>
    void requestWithdraw(id)
      .then(
        () => toast(t('The request is withdrawn.')),
        (failure: unknown) => toast(failure instanceof Error ? failure.message : String(failure), 'error'),
      )
      .finally(() => void queries.invalidateQueries({ queryKey: ['requests'] }))
  return (
    <section className="card" aria-label={t('Your requests')} data-awaited={isAwaited}>
      <h2>{t('Your requests')}</h2>
      {error !== null && <ErrorNote error={error} />}
      {data?.data.length === 0 && <p className="quiet">{t('You have asked for no virtual cluster. The page of a cluster’s virtual clusters has a button for that.')}</p>}
      <ul className="stack">
        {data?.data.map((request) => (
          <li key={request.id} className="stack-tight">
            <div className="row">
              <strong>{t('virtual cluster {vc}', { vc: request.virtualCluster ?? '' })}</strong>
              <span className="small quiet">
                <Ago ms={request.askedTime} />
              </span>
              {request.status === 'open' && (
                <div className="push">
                  <Button small aria-label={t('Withdraw the request for {name}', { name: request.virtualCluster ?? '' })} onClick={() => withdraw(request.id)}>
                    {t('Withdraw')}
                  </Button>
                </div>
              )}
            </div>
            {request.reason && (
              <div className="small quiet anywhere" lang="">
                {request.reason}
              </div>
            )}
            <div>
              <RequestState request={request} />
            </div>
          </li>
        ))}
      </ul>
      <Cli command="skep request list" />
    </section>
  )
}
