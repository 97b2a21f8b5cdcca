// The map of cells: racks, nodes, what is inside them, and who holds each leaf.
import { useQuery } from '@tanstack/react-query'
import { memo, useId, useMemo, useState, type FocusEvent, type KeyboardEvent, type MouseEvent, type ReactNode } from 'react'
import { enc } from '../../api/client'
import { cellsQuery, nodesQuery, skusQuery } from '../../api/queries'
import { t } from '../../i18n/i18n'
import { bandOf, BANDS, busyOf, chainsOf, colourIndex, groupsOf, hasGpus, nodesOfCluster, racksOf, type Band, type Chain, type Leaf, type LeafGroup, type NodeCell, type Place } from '../../lib/cells'
import { isStray, lampOf, LAMPS, type LampState } from '../../lib/lamps'
import { STEP, stepOf } from '../../lib/map-steps'
import { Link, useSearch } from '../../router'
import { Button, Empty, ErrorNote, Loading, OnceButton, SelectField } from '../../ui/ui'
import { Lamp, lampName } from './lamp'
import { Shares, useSharesAwaited } from './shares'

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

const placeName = ({ type, name }: Place) => `${type} ${name}`
const placesName = (places: Place[]) => places.map(placeName).join(' › ')

function describe(leaf: Leaf, busy: BusyMap): string {
  const percent = busyAt(busy, leaf)
  return [
    `${leaf.node} ${leaf.index}`,
    leaf.isHealthy ? (leaf.isUsed ? (leaf.jobs.join(', ') || t('in use')) : t('free')) : t('bad'),
    percent !== undefined && t('{percent} % busy', { percent }),
    isStray(leaf, percent) && t('busy without a job'),
    leaf.vc && t('virtual cluster {vc}', { vc: leaf.vc }),
    placesName(leaf.within),
  ]
    .filter(Boolean)
    .join(' · ')
}

/** How the leaves are shown. */
interface View {
  by: Colouring
  busy: BusyMap
  mark: string // a key of the legend that stands out
  vc: string // leaves of this virtual cluster stand out
}

/** The address of a node's use. */
const nodeHref = (node: string, vc: string) => `/cluster?tab=nodes&node=${enc(node)}${vc && `&vc=${enc(vc)}`}`
const nodeStep = (node: NodeCell) => `${node.name} ${node.leaves[0]?.address}` // a node may have cells of several chains

function LeafLink({ leaf, by, busy, mark, vc, isStop }: View & { leaf: Leaf; isStop: boolean }) {
  const key = keyOf(leaf, by, busy)
  const isMarked = !!mark && (leaf.jobs.includes(mark) || key === mark)
  const text = describe(leaf, busy)
  return (
    <span role="gridcell">
      <Link
        className="leaf"
        href={leaf.jobs[0] ? `/jobs/${leaf.jobs[0]}` : nodeHref(leaf.node, vc)}
        {...{ [STEP]: leaf.address }}
        tabIndex={isStop ? 0 : -1}
        aria-label={text}
        title={text}
        data-colour={leaf.isHealthy && key && by !== 'use' ? colourIndex(key) : undefined}
        data-band={leaf.isHealthy && key && by === 'use' ? key : undefined}
        data-used={leaf.isUsed || undefined}
        data-bad={!leaf.isHealthy || undefined}
        data-stray={isStray(leaf, busyAt(busy, leaf)) || undefined}
        data-mark={isMarked || undefined}
        data-dim={(mark && !isMarked) || (vc && leaf.vc !== vc) || undefined}
      />
    </span>
  )
}

/** What stands together inside the node stands together on the map. */
function Leaves({ group, render }: { group: LeafGroup; render: (leaf: Leaf) => ReactNode }) {
  return (
    <span className="leaf-group">
      {group.parts.map((part) => ('parts' in part ? <Leaves key={part.place?.address} group={part} render={render} /> : render(part)))}
    </span>
  )
}

/** `stop`: which of its parts Tab goes to; "": none. */
const NodeBox = memo(function NodeBox({ node, lamp, stop, ...view }: View & { node: NodeCell; lamp: LampState; stop: string }) {
  const { busy, vc } = view
  const used = node.leaves.filter((leaf) => leaf.isUsed).length
  const bad = node.leaves.filter((leaf) => !leaf.isHealthy).length
  const stray = node.leaves.filter((leaf) => isStray(leaf, busyAt(busy, leaf))).length
  const facts = [t('{used} of {total} in use', { used, total: node.leaves.length }), bad > 0 && t('{n} bad', { n: bad }), stray > 0 && t('{n} busy without a job', { n: stray }), lamp !== 'ready' && lampName(lamp)]
  const told = `${node.name}: ${facts.filter(Boolean).join(', ')}`
  return (
    <div role="row" className="node-box" aria-label={told}>
      <div role="rowheader" className="node-name">
        <Lamp lamp={lamp} />
        <Link className="clip" href={nodeHref(node.name, vc)} {...{ [STEP]: nodeStep(node) }} tabIndex={stop === nodeStep(node) ? 0 : -1} aria-label={told} title={`${told} · ${lampName(lamp)}`}>
          {node.name}
        </Link>
      </div>
      <Leaves group={groupsOf(node.leaves)} render={(leaf) => <LeafLink key={leaf.address} leaf={leaf} isStop={stop === leaf.address} {...view} />} />
    </div>
  )
})

const LEGEND_FIRST = 24

function Legend({ leaves, by, busy, mark, onMark }: { leaves: Leaf[]; by: Colouring; busy: BusyMap; mark: string; onMark: (key: string) => void }) {
  const [isWhole, setWhole] = useState(false)
  const counts = new Map<string, number>()
  for (const leaf of leaves) {
    const key = keyOf(leaf, by, busy)
    if (key) counts.set(key, (counts.get(key) ?? 0) + 1)
  }
  const rows = by === 'use' ? BANDS.flatMap((band): [string, number][] => (counts.has(band) ? [[band, counts.get(band)!]] : [])) : [...counts].sort((a, b) => b[1] - a[1])
  const shown = isWhole ? rows : rows.filter(([key], index) => index < LEGEND_FIRST || key === mark)
  const left = rows.length - shown.length
  return (
    <ul className="row small legend" aria-label={t('Colours of the map')}>
      {shown.map(([key, count]) => (
        <li key={key}>
          <button type="button" className="button" data-small aria-pressed={mark === key} onClick={() => onMark(mark === key ? '' : key)}>
            <span className="leaf" data-colour={by === 'use' ? undefined : colourIndex(key)} data-band={by === 'use' ? key : undefined} data-used aria-hidden="true" />
            {keyName(by, key)} · {count}
          </button>
        </li>
      ))}
      {(left > 0 || (isWhole && rows.length > LEGEND_FIRST)) && (
        <li>
          <Button small aria-expanded={isWhole} onClick={() => setWhole(!isWhole)}>
            {isWhole ? t('Fewer') : t('and {n} more', { n: left })}
          </Button>
        </li>
      )}
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

interface GridProps extends View {
  label: string
  hint: string // the id of what says which keys there are
  nodes: NodeCell[]
  lamps: Map<string, LampState>
}

/** One stop of the Tab key, however many leaves there are: from there the arrow keys go on. */
function Grid({ label, hint, nodes, lamps, ...view }: GridProps) {
  const [at, setAt] = useState('')
  const racks = useMemo(() => racksOf(nodes), [nodes])
  const hasStop = (node: NodeCell) => nodeStep(node) === at || node.leaves.some((leaf) => leaf.address === at)
  const first = racks[0]?.nodes[0]
  const holder = nodes.find(hasStop) ?? first // what had the focus may be gone since
  const stop = holder && !hasStop(holder) ? nodeStep(holder) : at
  const onKey = (event: KeyboardEvent<HTMLElement>) => {
    if (event.altKey || event.metaKey || event.shiftKey || !(event.target instanceof HTMLElement) || !event.target.hasAttribute(STEP)) return
    const next = stepOf(event.currentTarget, event.target, event.key, event.ctrlKey)
    if (!next) return
    event.preventDefault()
    next.focus()
  }
  const onFocus = (event: FocusEvent<HTMLElement>) => {
    const step = event.target.getAttribute(STEP)
    if (step) setAt(step)
  }
  return (
    <div role="grid" className="stack" aria-label={label} aria-describedby={hint} onKeyDown={onKey} onFocus={onFocus}>
      {racks.map(({ path, nodes: own }) => (
        <div key={path.at(-1)?.address ?? ''} role="rowgroup" className="node-boxes">
          {path.length > 0 && (
            <div role="row" className="rack-name quiet small">
              <span role="rowheader">{placesName(path)}</span>
            </div>
          )}
          {own.map((node) => (
            <NodeBox key={nodeStep(node)} node={node} lamp={lamps.get(node.name) ?? 'unknown'} stop={node === holder ? stop : ''} {...view} />
          ))}
        </div>
      ))}
    </div>
  )
}

interface CardProps extends View {
  chain: Chain
  hint: string
  lamps: Map<string, LampState>
  onMark: (key: string) => void
  onClear: () => void
}

const ChainCard = memo(function ChainCard({ chain, hint, lamps, onMark, onClear, ...view }: CardProps) {
  const { by, busy, mark, vc } = view
  const leaves = useMemo(() => chain.nodes.flatMap((node) => node.leaves), [chain])
  const nodes = useMemo(() => nodesOfCluster(chain.nodes, vc), [chain, vc])
  const free = leaves.filter((leaf) => !leaf.isUsed && leaf.isHealthy).length
  const names = [...new Set(chain.nodes.map((node) => node.name))]
  return (
    <section className="card" tabIndex={-1} aria-label={chain.leafType}>
      <div className="card-head">
        <h2>{chain.leafType}</h2>
        <span className="quiet">{t('{free} of {total} free', { free, total: leaves.length })}</span>
        {vc && (
          <span className="quiet push" role="status">
            {t('{shown} of {n} node has cells of {vc}|{shown} of {n} nodes have cells of {vc}', { shown: nodes.length, n: chain.nodes.length, vc })}
          </span>
        )}
      </div>
      <Shares leafType={chain.leafType} vc={vc} free={free} />
      <Lamps lamps={names.map((name) => lamps.get(name) ?? 'unknown')} />
      <Strays leaves={leaves} busy={busy} />
      {by !== 'health' && <Legend leaves={vc ? leaves.filter((leaf) => leaf.vc === vc) : leaves} by={by} busy={busy} mark={mark} onMark={onMark} />}
      {nodes.length ? (
        <Grid label={t('Map of {type}', { type: chain.leafType })} hint={hint} nodes={nodes} lamps={lamps} {...view} />
      ) : (
        <Empty title={t('{vc} has no cell of this type now', { vc })}>
          <p>{t('Cells are chosen when its jobs start: until then its guarantee is somewhere among those that are free.')}</p>
          <OnceButton onClick={onClear}>{t('Show all virtual clusters')}</OnceButton>
        </Empty>
      )}
    </section>
  )
})

export function CellMap() {
  const { data, error } = useQuery(cellsQuery)
  const { data: nodes, error: nodesError } = useQuery(nodesQuery)
  const { data: types, error: typesError } = useQuery(skusQuery(''))
  const areSharesAwaited = useSharesAwaited()
  const [search, change] = useSearch()
  const [told, setTold] = useState('') // of what the pointer or the focus is on
  const hint = useId()
  const by = (search.get('by') ?? 'job') as Colouring
  const mark = search.get('mark') ?? ''
  const vc = search.get('vc') ?? ''
  const chains = useMemo(() => (data ? chainsOf(data.cells, data.groups) : []), [data])
  const busyGpus = useMemo(() => busyOf(nodes?.data ?? []), [nodes])
  const lamps = useMemo(() => new Map(nodes?.data.map((node) => [node.name ?? '', lampOf(node)])), [nodes])
  const onMark = useMemo(() => (key: string) => change({ mark: key }), [change])
  const onClear = useMemo(() => () => change({ vc: null, mark: null }), [change])
  if (error && !data) return <ErrorNote error={error} />
  if (data?.refusal)
    return (
      <div className="note">
        {t('This server places jobs without cells, so there is no map. The nodes show what is free.')} <span className="quiet">{data.refusal}</span>
      </div>
    )
  if (!data || (!nodes && !nodesError) || (!types && !typesError) || areSharesAwaited) return <Loading />
  const tell = (event: FocusEvent | MouseEvent) => {
    if (event.target instanceof HTMLElement && event.target.hasAttribute(STEP)) setTold(event.target.title)
  }
  return (
    <div className="stack" onFocus={tell} onMouseOver={tell}>
      {error && <ErrorNote error={error} />}
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
      </div>
      <p id={hint} className="quiet small">
        {t('The arrow keys go from one to the next, Home and End to the name of the node and to its last one, with Ctrl to the ends of the map. Enter opens the job that holds it, or the node.')}
      </p>
      {chains.map((chain) => (
        <ChainCard
          key={chain.leafType}
          chain={chain}
          hint={hint}
          lamps={lamps}
          by={by}
          busy={types && hasGpus(types, chain.leafType) ? busyGpus : NOTHING_BUSY}
          mark={mark}
          vc={vc}
          onMark={onMark}
          onClear={onClear}
        />
      ))}
      <p className="map-told small">{told}</p>
    </div>
  )
}
