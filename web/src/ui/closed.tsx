// That a virtual cluster is closed: by whom, since when and why.
import type { VirtualCluster } from '../api/client'
import { t } from '../i18n/i18n'
import { Ago } from './ui'

export const isClosed = (cluster: VirtualCluster | undefined) => cluster?.status === 'STOPPED'

/** "Closed by alice 3 h ago: why"; nothing of one that is open. */
export function Closed({ cluster }: { cluster: VirtualCluster | undefined }) {
  if (!isClosed(cluster)) return null
  return (
    <>
      {t('Closed by {user}', { user: cluster?.closedBy ?? '' })} <Ago ms={cluster?.closedTime} />
      {cluster?.closedReason && (
        <>
          : <span lang="">{cluster.closedReason}</span>
        </>
      )}
    </>
  )
}
