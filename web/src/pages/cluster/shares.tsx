// What of one type each virtual cluster has: its guarantee, what of it is used, and what its jobs use beside it.
import { useQuery } from '@tanstack/react-query'
import { sessionGet } from '../../api/client'
import { clustersQuery, userQuery } from '../../api/queries'
import { t } from '../../i18n/i18n'
import { sharesOf } from '../../lib/cells'
import { isClosed } from '../../ui/closed'
import { useAwaited } from '../../ui/in-order'
import { Meter } from '../../ui/ui'

const useShared = () => ({ clusters: useQuery(clustersQuery), me: useQuery(userQuery(sessionGet()?.user ?? '')) })

/** Is what Shares tells still on its way? They stand above the map, which would move when they come. */
export function useSharesAwaited(): true | undefined {
  const { clusters, me } = useShared()
  return useAwaited((!!clusters.data || !!clusters.error) && (!!me.data || !!me.error))
}

/** `free`: leaves that no job holds, whosoever they are. With `vc` that virtual cluster alone. */
export function Shares({ leafType, vc, free }: { leafType: string; vc: string; free: number }) {
  const session = sessionGet()
  const shared = useShared()
  const [clusters, me] = [shared.clusters.data, shared.me.data]
  if (!clusters) return null // what is wrong with the server is said by the map itself
  const isAdmin = session?.admin ?? false
  const shares = sharesOf(clusters, leafType, isAdmin ? null : (me?.virtualCluster ?? []))
  const shown = vc ? shares.filter((share) => share.vc === vc) : shares
  const mine = shown.filter(({ isMine }) => isMine)
  if (!shown.length) return null
  return (
    <div className="stack-tight">
      <ul className="shares" aria-label={t('Virtual clusters: {type}', { type: leafType })}>
        {shown.map((share) => (
          <li key={share.vc} className="stack-tight">
            <div className="row small">
              <strong>{share.vc}</strong>
              {!isAdmin && share.isMine && <span className="tag">{t('yours')}</span>}
              {isClosed(clusters[share.vc]) && <span className="tag">{t('closed')}</span>}
            </div>
            <Meter label={t('Guaranteed')} used={share.used} bad={share.bad} total={share.total} text={t('{used} of {total} used', { used: share.used, total: share.total })} />
            <p className="small quiet">
              {[share.bad > 0 && t('{n} bad', { n: share.bad }), t('{n} used opportunistically', { n: share.opportunistic })].filter(Boolean).join(', ')}
            </p>
          </li>
        ))}
      </ul>
      {mine.length > 0 && (
        <p className="small">
          {t('Free for you: {guaranteed} with a guarantee; {free} of the whole cluster for opportunistic jobs.', { guaranteed: mine.reduce((sum, share) => sum + share.free, 0), free })}
        </p>
      )}
    </div>
  )
}
