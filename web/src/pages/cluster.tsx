// The cluster: the map of cells with who holds them, its nodes, the queue, and the virtual clusters with their quotas.
import { useQueries, useQuery } from '@tanstack/react-query'
import { memo, useMemo, useState } from 'react'
import { enc, nameOf } from '../api/client'
import { cellsQuery, clustersQuery, jobPageQuery, jobQuery, nodesQuery, pollMs, skusQuery } from '../api/queries'
import { t } from '../i18n/i18n'
import { bandOf, BANDS, busyOf, chainsOf, colourIndex, hasGpus, type Band, type Chain, type Leaf, type NodeCell } from '../lib/cells'
import { mebibytes } from '../lib/format'
import { isStray, lampOf, LAMPS, type LampState } from '../lib/lamps'
import { Link, navigate, useSearch } from '../router'
import '../style/cluster.css'
import { AskAccess } from '../ui/ask-access'
import { Closed, isClosed } from '../ui/closed'
import { useAwaited } from '../ui/in-order'
import { later } from '../ui/later'
import { Cli, Duration, Empty, ErrorNote, Fact, Loading, Meter, Reason, SelectField, TableCard, Tabs, usePageTitle } from '../ui/ui'
import { BusyLine } from './cluster/busy'
import { Lamp, lampName } from './cluster/lamp'
import { nodeAddress, Nodes } from './cluster/nodes'

const UseOverTime = later(async () => ({ default: (await import('../ui/use')).UseOverTime }))

type Colouring = 'job' | 'user' | 'vc' | 'health' | 'use'
type BusyMap = Map<string, number>

const NOTHING_BUSY: BusyMap = new Map()
const busyAt = (busy: BusyMap, leaf: Leaf) => busy.get(`${leaf.node}/${leaf.index}`)

/** What the key of a leaf is called. */
function keyName(by: Colouring, key: string): string {
  if (by !== 'use') return key
  switch (key as Band) {
    case 'idle':
      return t('below 10 %')
    case 'low':
      return t('10 to 39 %')
    case 'middle':
      return t('40 to 69 %')
    case 'high':
      return t('70 % and more')
    default:
      return t('in use, not measured')
  }
}

function keyOf(leaf: Leaf, by: Colouring, busy: BusyMap): string {
  if (by === 'health') return ''
  if (by === 'use') return leaf.isUsed ? bandOf(busyAt(busy, leaf)) : ''
  if (!leaf.isUsed) return by === 'vc' ? leaf.vc : ''
  if (by === 'vc') return leaf.vc || t('opportunistic')
  const job = leaf.jobs[0] ?? ''
  return by === 'user' ? (job.split('~')[0] ?? '') : job
}

function describe(leaf: Leaf, busy: BusyMap): string {
  const percent = busyAt(busy, leaf)
  return [
    `${leaf.node} ${leaf.index}`,
    leaf.isHealthy ? (leaf.isUsed ? (leaf.jobs.join(', ') || t('in use')) : t('free')) : t('bad'),
    percent !== undefined && t('{percent} % busy', { percent }),
    isStray(leaf, percent) && t('busy without a job'),
    leaf.vc && t('virtual cluster {vc}', { vc: leaf.vc }),
  ]
    .filter(Boolean)
    .join(' · ')
}

interface NodeBoxProps {
  node: NodeCell
  lamp: LampState
  by: Colouring
  busy: BusyMap
  mark: string
  onHover: (text: string) => void
}

const NodeBox = memo(function NodeBox({ node, lamp, by, busy, mark, onHover }: NodeBoxProps) {
  const used = node.leaves.filter((leaf) => leaf.isUsed).length
  const bad = node.leaves.filter((leaf) => !leaf.isHealthy).length
  const stray = node.leaves.filter((leaf) => isStray(leaf, busyAt(busy, leaf))).length
  const facts = [t('{used} of {total} in use', { used, total: node.leaves.length }), bad > 0 && t('{n} bad', { n: bad }), stray > 0 && t('{n} busy without a job', { n: stray }), lamp !== 'ready' && lampName(lamp)]
  return (
    <li className="node-box" aria-label={`${node.name}: ${facts.filter(Boolean).join(', ')}`}>
      <div className="node-name" title={`${node.name} · ${lampName(lamp)}`}>
        <Lamp lamp={lamp} />
        <span className="clip">{node.name}</span>
      </div>
      <div className="node-leaves">
        {node.leaves.map((leaf) => {
          const key = keyOf(leaf, by, busy)
          return (
            <span
              key={leaf.address}
              className="leaf"
              data-colour={leaf.isHealthy && key && by !== 'use' ? colourIndex(key) : undefined}
              data-band={leaf.isHealthy && key && by === 'use' ? key : undefined}
              data-used={leaf.isUsed || undefined}
              data-bad={!leaf.isHealthy || undefined}
              data-stray={isStray(leaf, busyAt(busy, leaf)) || undefined}
              data-mark={(mark && (leaf.jobs.includes(mark) || key === mark)) || undefined}
              title={describe(leaf, busy)}
              onMouseEnter={() => onHover(describe(leaf, busy))}
              onClick={() => {
                if (leaf.jobs[0]) navigate(`/jobs/${leaf.jobs[0]}`)
              }}
            />
          )
        })}
      </div>
    </li>
  )
})

function Legend({ chain, by, busy, mark, onMark }: { chain: Chain; by: Colouring; busy: BusyMap; mark: string; onMark: (key: string) => void }) {
  const counts = new Map<string, number>()
  for (const leaf of chain.nodes.flatMap((node) => node.leaves)) {
    const key = keyOf(leaf, by, busy)
    if (key) counts.set(key, (counts.get(key) ?? 0) + 1)
  }
  const rows = by === 'use' ? BANDS.flatMap((band): [string, number][] => (counts.has(band) ? [[band, counts.get(band)!]] : [])) : [...counts].sort((a, b) => b[1] - a[1]).slice(0, 24)
  return (
    <ul className="row small legend">
      {rows.map(([key, count]) => (
        <li key={key}>
          <button type="button" className="button" data-small aria-pressed={mark === key} onClick={() => onMark(mark === key ? '' : key)}>
            <span className="leaf" data-colour={by === 'use' ? undefined : colourIndex(key)} data-band={by === 'use' ? key : undefined} data-used aria-hidden="true" />
            {keyName(by, key)} · {count}
          </button>
        </li>
      ))}
      <li className="row">
        <span className="leaf" aria-hidden="true" /> {t('free')}
      </li>
      <li className="row">
        <span className="leaf" data-bad aria-hidden="true" /> {t('bad')}
      </li>
    </ul>
  )
}

/** How many machines have which lamp. */
function Lamps({ lamps }: { lamps: LampState[] }) {
  const rows = LAMPS.map((lamp) => [lamp, lamps.filter((one) => one === lamp).length] as const).filter(([, count]) => count > 0)
  return (
    <ul className="row small legend" aria-label={t('Health of the nodes')}>
      {rows.map(([lamp, count]) => (
        <li key={lamp} className="row">
          <Lamp lamp={lamp} /> {lampName(lamp)} · {count}
        </li>
      ))}
    </ul>
  )
}

const STRAYS_NAMED = 12

/** Somebody uses them past the platform, or a task left a process behind. */
function Strays({ leaves, busy }: { leaves: Leaf[]; busy: BusyMap }) {
  const strays = leaves.filter((leaf) => isStray(leaf, busyAt(busy, leaf)))
  if (!strays.length) return null
  const named = strays.slice(0, STRAYS_NAMED).map((leaf) => `${leaf.node} ${leaf.index}`)
  return (
    <p className="note" data-kind="wait">
      <span className="leaf" data-stray aria-hidden="true" /> {t('{n} GPU is busy without a job:|{n} GPUs are busy without a job:', { n: strays.length })} {named.join(', ')}
      {strays.length > STRAYS_NAMED && ` … ${t('and {n} more', { n: strays.length - STRAYS_NAMED })}`}
    </p>
  )
}

function CellMap() {
  const { data, error } = useQuery(cellsQuery)
  const { data: nodes, error: nodesError } = useQuery(nodesQuery)
  const { data: types, error: typesError } = useQuery(skusQuery(''))
  const [search, change] = useSearch()
  const [hover, setHover] = useState('')
  const by = (search.get('by') ?? 'job') as Colouring
  const mark = search.get('mark') ?? ''
  const chains = useMemo(() => (data ? chainsOf(data.cells, data.groups) : []), [data])
  const busyGpus = useMemo(() => busyOf(nodes?.data ?? []), [nodes])
  const lamps = useMemo(() => new Map(nodes?.data.map((node) => [node.name ?? '', lampOf(node)])), [nodes])
  const lampAt = (name: string): LampState => lamps.get(name) ?? 'unknown'
  if (error)
    return (
      <div className="note">
        {t('This server places jobs without cells, so there is no map. The nodes show what is free.')} <span className="quiet">{error.message}</span>
      </div>
    )
  if (!data || (!nodes && !nodesError) || (!types && !typesError)) return <Loading />
  return (
    <div className="stack">
      {nodesError && <ErrorNote error={nodesError} />}
      {typesError && <ErrorNote error={typesError} />}
      <div className="row">
        <SelectField label={t('Colour by')} value={by} onChange={(event) => change({ by: event.target.value, mark: null })}>
          <option value="job">{t('job')}</option>
          <option value="user">{t('user')}</option>
          <option value="vc">{t('virtual cluster')}</option>
          <option value="health">{t('health')}</option>
          <option value="use">{t('use')}</option>
        </SelectField>
        <p className="quiet small map-hover">{hover}</p>
      </div>
      {chains.map((chain) => {
        const busy = types && hasGpus(types, chain.leafType) ? busyGpus : NOTHING_BUSY
        const leaves = chain.nodes.flatMap((node) => node.leaves)
        const free = leaves.filter((leaf) => !leaf.isUsed && leaf.isHealthy).length
        const parents = [...new Set(chain.nodes.map((node) => node.parent))]
        return (
          <section key={chain.leafType} className="card" aria-label={chain.leafType}>
            <div className="card-head">
              <h2>{chain.leafType}</h2>
              <span className="quiet">{t('{free} of {total} free', { free, total: leaves.length })}</span>
            </div>
            <Lamps lamps={[...new Set(chain.nodes.map((node) => node.name))].map(lampAt)} />
            <Strays leaves={leaves} busy={busy} />
            {by !== 'health' && <Legend chain={chain} by={by} busy={busy} mark={mark} onMark={(key) => change({ mark: key })} />}
            {parents.map((parent) => (
              <div key={parent} className="stack">
                {parent && <h3 className="quiet small">{parent}</h3>}
                <ul className="node-boxes" data-marked={mark ? true : undefined}>
                  {chain.nodes
                    .filter((node) => node.parent === parent)
                    .map((node) => (
                      <NodeBox key={`${node.name} ${node.leaves[0]?.address}`} node={node} lamp={lampAt(node.name)} by={by} busy={busy} mark={mark} onHover={setHover} />
                    ))}
                </ul>
              </div>
            ))}
          </section>
        )
      })}
    </div>
  )
}

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
        <Reason text={status?.waitingReason} />
      </td>
    </tr>
  )
}

const QUEUE_MAX = 40

function Queue() {
  const [search] = useSearch()
  const vc = search.get('vc')
  const { data, error } = useQuery(jobPageQuery(`state=WAITING&order=submissionTime,ASC${vc ? `&vc=${encodeURIComponent(vc)}` : ''}`, 0, QUEUE_MAX))
  const details = useQueries({ queries: (data?.data ?? []).map((job) => jobQuery(nameOf(job))) })
  const isAwaited = useAwaited(!!data && details.every((detail) => !detail.isLoading))
  if (error) return <ErrorNote error={error} />
  if (!data || isAwaited) return <Loading />
  if (!data.data.length)
    return (
      <div className="card">
        <Empty title={t('Nothing waits')}>
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
            <Link href="/jobs?state=WAITING&order=submissionTime,ASC">{t('All {n} jobs that wait', { n: data.totalCount })}</Link>
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
  if (error) return <ErrorNote error={error} />
  if (!data) return <Loading />
  return (
    <div className="grid-cards">
      {Object.entries(data).map(([name, vc]) => (
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

export default function Cluster() {
  const [search] = useSearch()
  const tab = search.get('tab') ?? 'map'
  const node = search.get('node')
  const commands: Record<string, string> = { map: 'skep cells', nodes: node ? `skep use --node ${node}` : 'skep nodes -o wide', queue: 'skep list --state WAITING --order submissionTime,ASC', quotas: 'skep vc' }
  usePageTitle(t('Cluster'))
  return (
    <div className="page">
      <h1>{t('Cluster')}</h1>
      <Tabs
        name="tab"
        label={t('Views of the cluster')}
        tabs={[
          { id: 'map', title: t('Map') },
          { id: 'nodes', title: t('Nodes') },
          { id: 'queue', title: t('Queue') },
          { id: 'quotas', title: t('Virtual clusters') },
        ]}
      />
      {tab === 'map' && <CellMap />}
      {tab === 'nodes' && node && (
        <section className="card" aria-label={t('Use of {node}', { node })}>
          <div className="card-head">
            <h2>{t('Use of {node}', { node })}</h2>
            <Link className="push small" href={nodeAddress(search, null)}>
              {t('Close')}
            </Link>
          </div>
          <UseOverTime path={`/api/v2/nodes/${enc(node)}/use`} isLive />
        </section>
      )}
      {tab === 'nodes' && <Nodes />}
      {tab === 'queue' && <Queue />}
      {tab === 'quotas' && <Quotas />}
      <Cli command={commands[tab] ?? 'skep cells'} />
    </div>
  )
}
