// The cluster: the map of cells with who holds them, its nodes, the queue, and the virtual clusters with their quotas.
import { useQueries, useQuery } from '@tanstack/react-query'
import { enc, nameOf } from '../api/client'
import { clustersQuery, jobPageQuery, jobQuery, nodesQuery, pollMs } from '../api/queries'
import { t } from '../i18n/i18n'
import { shellWord } from '../lib/filter'
import { mebibytes } from '../lib/format'
import { nodeOf } from '../lib/nodes'
import { Link, useSearch } from '../router'
import '../style/cluster.css'
import { AskAccess } from '../ui/ask-access'
import { Closed, isClosed } from '../ui/closed'
import { useAwaited } from '../ui/in-order'
import { later } from '../ui/later'
import { Cli, Duration, Empty, ErrorNote, Fact, Loading, Meter, OnceButton, Reason, SelectField, TableCard, Tabs, usePageTitle } from '../ui/ui'
import { BusyLine } from './cluster/busy'
import { CellMap } from './cluster/map'
import { nodeAddress, Nodes } from './cluster/nodes'

const UseOverTime = later(async () => ({ default: (await import('../ui/use')).UseOverTime }))

function QueueRow({ name, place }: { name: string; place: number }) {
  const { data } = useQuery({ ...jobQuery(name), refetchInterval: pollMs })
  const status = data?.jobStatus
  return (
    <tr>
      <td className="number">{place}</td>
      <th scope="row" className="nowrap">
        <Link href={`/jobs/${name}`}>{name}</Link>
      </th>
      <td>{status?.virtualCluster}</td>
      <td>{data?.jobPriority ?? t('default')}</td>
      <td className="number">{status?.totalGpuNumber}</td>
      <td className="nowrap">
        <Duration from={status?.submissionTime} to={null} />
      </td>
      <td className="anywhere small">
        <Reason text={status?.waitingReason} parts={status?.waitingReasonParts} />
      </td>
    </tr>
  )
}

const QUEUE_MAX = 40

function Queue() {
  const [search] = useSearch()
  const vc = search.get('vc') ?? ''
  const filter = `state=WAITING&order=submissionTime,ASC${vc && `&vc=${enc(vc)}`}`
  const { data, error } = useQuery(jobPageQuery(filter, 0, QUEUE_MAX))
  const details = useQueries({ queries: (data?.data ?? []).map((job) => jobQuery(nameOf(job))) })
  const isAwaited = useAwaited(!!data && details.every((detail) => !detail.isLoading))
  if (error) return <ErrorNote error={error} />
  if (!data || isAwaited) return <Loading />
  if (!data.data.length)
    return (
      <div className="card">
        <Empty title={vc ? t('Nothing waits in {vc}', { vc }) : t('Nothing waits')}>
          <p>{t('A job that finds no room stands here, with the reason and who holds what it needs.')}</p>
        </Empty>
      </div>
    )
  return (
    <TableCard
      label={t('Queue')}
      caption={t('Jobs that wait, the oldest first')}
      heads={[{ number: '#' }, t('Job'), t('Virtual cluster'), t('Priority'), { number: t('GPUs') }, t('Waited'), t('Why')]}
      foot={
        data.totalCount > QUEUE_MAX && (
          <p className="queue-more">
            <Link href={`/jobs?${filter}`}>{t('All {n} jobs that wait', { n: data.totalCount })}</Link>
          </p>
        )
      }
    >
      {data.data.map((job, index) => (
        <QueueRow key={nameOf(job)} name={nameOf(job)} place={index + 1} />
      ))}
    </TableCard>
  )
}

function Quotas() {
  const { data, error } = useQuery(clustersQuery)
  const [search] = useSearch()
  const wanted = search.get('vc')
  if (error) return <ErrorNote error={error} />
  if (!data) return <Loading />
  const shown = Object.entries(data).filter(([name]) => !wanted || name === wanted)
  if (!shown.length)
    return (
      <div className="card">
        <Empty title={t('There is no virtual cluster {vc}', { vc: wanted ?? '' })} />
      </div>
    )
  return (
    <div className="grid-cards">
      {shown.map(([name, vc]) => (
        <section key={name} className="card" aria-label={name}>
          <div className="card-head">
            <h2>{name}</h2>
            {vc.dedicated && <span className="tag">{t('dedicated')}</span>}
            <Link className="push small" href={`/jobs?vc=${encodeURIComponent(name)}`}>
              {t('Its jobs')}
            </Link>
          </div>
          {isClosed(vc) && (
            <p className="note small" data-kind="wait">
              <Closed cluster={vc} />
            </p>
          )}
          <AskAccess vc={name} />
          <BusyLine vc={name} />
          {Object.entries(vc.skus ?? {}).map(([sku, quota]) => (
            <div key={sku}>
              <Meter label={t('{sku}, guaranteed', { sku })} used={quota.used ?? 0} bad={quota.bad ?? 0} total={quota.total ?? 0} />
              {((quota.bad ?? 0) > 0 || (quota.opportunistic ?? 0) > 0) && (
                <p className="small quiet">{t('{bad} bad, {oppo} more used opportunistically', { bad: quota.bad ?? 0, oppo: quota.opportunistic ?? 0 })}</p>
              )}
            </div>
          ))}
          <dl className="facts">
            <Fact title={t('GPUs')}>
              {vc.resourcesUsed?.gpu} / {vc.resourcesTotal?.gpu}
            </Fact>
            <Fact title={t('CPUs')}>
              {vc.resourcesUsed?.cpu} / {vc.resourcesTotal?.cpu}
            </Fact>
            <Fact title={t('Memory')}>
              {mebibytes(vc.resourcesUsed?.memory ?? 0)} / {mebibytes(vc.resourcesTotal?.memory ?? 0)}
            </Fact>
            <Fact title={t('Share of the cluster')}>{Math.round(vc.capacity ?? 0)} %</Fact>
          </dl>
        </section>
      ))}
    </div>
  )
}

/** `given`: the node's name, or its address, by which OpenPAI's portal knew machines. */
function UseOfNode({ given, closed }: { given: string; closed: string }) {
  const { data, error } = useQuery(nodesQuery)
  if (!data) return error ? <ErrorNote error={error} /> : <Loading />
  const node = nodeOf(data.data, given)
  return (
    <section className="card" aria-label={t('Use of {node}', { node })}>
      <div className="card-head">
        <h2>{t('Use of {node}', { node })}</h2>
        <Link className="push small" href={closed}>
          {t('Close')}
        </Link>
      </div>
      <UseOverTime path={`/api/v2/nodes/${enc(node)}/use`} isLive />
    </section>
  )
}

/** Which virtual cluster every view of the cluster is about; "": all of them. */
function ClusterChoice({ vc, onChange }: { vc: string; onChange: (vc: string) => void }) {
  const { data } = useQuery(clustersQuery)
  const names = Object.keys(data ?? {})
  return (
    <div className="row row-foot" tabIndex={-1}>
      <SelectField label={t('Virtual cluster')} value={vc} onChange={(event) => onChange(event.target.value)}>
        <option value="">{t('All')}</option>
        {(vc && !names.includes(vc) ? [...names, vc] : names).map((name) => (
          <option key={name}>{name}</option>
        ))}
      </SelectField>
      {vc && <OnceButton onClick={() => onChange('')}>{t('Clear filters')}</OnceButton>}
    </div>
  )
}

function commandOf(tab: string, node: string | null, vc: string): string {
  switch (tab) {
    case 'nodes':
      return node ? `skep use --node ${shellWord(node)}` : 'skep nodes -o wide'
    case 'queue':
      return `skep list --state WAITING --order submissionTime,ASC${vc && ` --vc ${shellWord(vc)}`}`
    case 'quotas':
      return 'skep vc'
    default:
      return 'skep cells'
  }
}

export default function Cluster() {
  const [search, change] = useSearch()
  const tab = search.get('tab') ?? 'map'
  const node = search.get('node')
  const vc = search.get('vc') ?? ''
  usePageTitle(t('Cluster'))
  return (
    <div className="page">
      <h1>{t('Cluster')}</h1>
      <Tabs
        name="tab"
        label={t('Views of the cluster')}
        keep={['vc']}
        tabs={[
          { id: 'map', title: t('Map') },
          { id: 'nodes', title: t('Nodes') },
          { id: 'queue', title: t('Queue') },
          { id: 'quotas', title: t('Virtual clusters') },
        ]}
      />
      <ClusterChoice vc={vc} onChange={(next) => change({ vc: next, mark: null })} />
      {tab === 'map' && <CellMap />}
      {tab === 'nodes' && node && <UseOfNode given={node} closed={nodeAddress(search, null)} />}
      {tab === 'nodes' && <Nodes />}
      {tab === 'queue' && <Queue />}
      {tab === 'quotas' && <Quotas />}
      <Cli command={commandOf(tab, node, vc)} />
    </div>
  )
}
