// What is busy of what is held: a GPU that is allocated may idle.
import { useQuery } from '@tanstack/react-query'
import { useMemo } from 'react'
import { cellsQuery, nodesQuery, skusQuery } from '../../api/queries'
import { t } from '../../i18n/i18n'
import { busyByCluster, busyOf } from '../../lib/cells'
import { Meter } from '../../ui/ui'

const part = (value: number) => value.toLocaleString(undefined, { maximumFractionDigits: 1 })

/** Of the jobs of a virtual cluster; nothing where no GPU is sampled, or where jobs are placed without cells. */
export function BusyLine({ vc }: { vc: string }) {
  const { data: cells } = useQuery(cellsQuery)
  const { data: nodes } = useQuery(nodesQuery)
  const { data: types } = useQuery(skusQuery(''))
  const busy = useMemo(() => (cells && nodes && types ? busyByCluster(cells.cells, cells.groups, busyOf(nodes.data), types) : null), [cells, nodes, types])
  const one = busy?.get(vc)
  if (!one?.sampled) return null
  return <Meter label={t('Busy, of the GPUs its jobs hold')} used={one.busy} total={one.sampled} text={t('{busy} of {held}', { busy: part(one.busy), held: one.held })} />
}

/** Of the whole cluster. */
export function BusyAll() {
  const { data: nodes } = useQuery(nodesQuery)
  const busy = useMemo(() => [...busyOf(nodes?.data ?? []).values()], [nodes])
  if (!busy.length) return null
  const sum = busy.reduce((all, percent) => all + percent, 0) / 100
  return <Meter label={t('Busy now')} used={sum} total={busy.length} text={t('{busy} of {held}', { busy: part(sum), held: busy.length })} />
}
