// The tasks of a job: a strip with one cell for each, and a table. The states of all come with the job; rows are read where one looks.
import { keepPreviousData, useQueries, useQuery } from '@tanstack/react-query'
import { useVirtualizer } from '@tanstack/react-virtual'
import { memo, useEffect, useMemo, useReducer, useRef, useState } from 'react'
import { enc, get, type JobDetail, type Task } from '../../api/client'
import { pagesAll } from '../../api/pages'
import { pollMs, TASK_FIELDS, taskPageQuery, tasksQuery } from '../../api/queries'
import { exitWords, t } from '../../i18n/i18n'
import { csvOf, fileSave } from '../../lib/csv'
import { orderNext } from '../../lib/filter'
import { isLive } from '../../lib/job-state'
import { useSettings } from '../../lib/settings'
import { isListed, taskFilterOf, taskFilterQuery, taskFilterWords, type TaskFilter } from '../../lib/task-filter'
import { runsOf, stateOfLetter, stretchesOf, TaskStates, type TaskPlace } from '../../lib/task-states'
import { Link, useSearch } from '../../router'
import { Filtered } from '../../ui/choices'
import { Ago, Button, Duration, ErrorNote, Said, StateBadge, STATES, stateName, useToast } from '../../ui/ui'
import { GO_TO_FROM, GoTo } from '../../ui/go-to'
import { useSettled } from '../../ui/settled'
import { TaskFilters } from './task-filters'

// ---- strip ----

const VARIABLES: Record<string, string> = { WAITING: '--cell-free', RUNNING: '--running', STOPPING: '--stopping', SUCCEEDED: '--succeeded', FAILED: '--failed', STOPPED: '--stopped' }
const STRIP_PX = 260 // as high, while a cell can still be seen
const CELLS = [
  { size: 11, gap: 2 },
  { size: 5, gap: 1 },
  { size: 3, gap: 1 },
  { size: 3, gap: 0 },
]

interface Grid {
  size: number
  step: number
  across: number
  height: number
}

export function gridOf(count: number, width: number): Grid {
  const grids = CELLS.map(({ size, gap }) => {
    const step = size + gap
    const across = Math.max(1, Math.floor(width / step))
    return { size, step, across, height: Math.ceil(count / across) * step }
  })
  return grids.find(({ height }) => height <= STRIP_PX) ?? grids.at(-1)!
}

/** Computed colours: a canvas knows no light-dark(). */
function coloursOf(place: HTMLElement): Map<string, string> {
  const probe = document.createElement('span')
  place.append(probe)
  const colours = new Map<string, string>()
  for (const [state, variable] of Object.entries(VARIABLES)) {
    probe.style.color = `var(${variable})`
    colours.set(state, getComputedStyle(probe).color)
  }
  probe.remove()
  return colours
}

const Cells = memo(function Cells({ letters, grid, width }: { letters: string; grid: Grid; width: number }) {
  const canvas = useRef<HTMLCanvasElement>(null)
  useSettings() // the theme may change
  const [, redraw] = useReducer((count: number) => count + 1, 0)
  useEffect(() => {
    const dark = matchMedia('(prefers-color-scheme: dark)')
    dark.addEventListener('change', redraw)
    return () => dark.removeEventListener('change', redraw)
  }, [])
  useEffect(() => {
    const element = canvas.current!
    const scale = devicePixelRatio || 1
    element.width = width * scale
    element.height = grid.height * scale
    const context = element.getContext('2d')!
    context.scale(scale, scale)
    const colours = coloursOf(element.parentElement!)
    for (const run of runsOf(letters, grid.across)) {
      context.fillStyle = colours.get(stateOfLetter(run.letter) ?? '') ?? '#888'
      context.fillRect(run.column * grid.step, run.line * grid.step, run.count * grid.step, grid.step)
    }
    const gap = grid.step - grid.size
    if (!gap) return
    for (let at = grid.size; at < width; at += grid.step) context.clearRect(at, 0, gap, grid.height)
    for (let at = grid.size; at < grid.height; at += grid.step) context.clearRect(0, at, width, gap)
  })
  return <canvas ref={canvas} className="strip" role="img" aria-label={t('One cell for each task; the table below says the same')} style={{ width, height: grid.height }} />
})

function Strip({ states, onPick }: { states: TaskStates; onPick: (role: string, index: number) => void }) {
  const box = useRef<HTMLDivElement>(null)
  const [width, setWidth] = useState(600)
  const [hover, setHover] = useState(-1)
  const letters = states.letters
  const grid = useMemo(() => gridOf(letters.length, width), [letters.length, width])
  useEffect(() => {
    const element = box.current!
    const observer = new ResizeObserver(() => setWidth(element.clientWidth))
    observer.observe(element)
    return () => observer.disconnect()
  }, [])
  const numberAt = (event: React.MouseEvent) => {
    const place = box.current!.getBoundingClientRect()
    const column = Math.floor((event.clientX - place.left) / grid.step)
    const line = Math.floor((event.clientY - place.top) / grid.step)
    return column < grid.across ? line * grid.across + column : -1
  }
  const over = states.place(hover)
  return (
    <div>
      <div
        ref={box}
        onMouseMove={(event) => setHover(numberAt(event))}
        onMouseLeave={() => setHover(-1)}
        onClick={(event) => {
          const place = states.place(numberAt(event))
          if (place) onPick(place.role, place.index)
        }}
      >
        <Cells letters={letters} grid={grid} width={width} />
      </div>
      <p className="small quiet strip-text">{over ? `${over.role}[${over.index}] · ${stateName(states.stateOf(over) ?? '')}` : ' '}</p>
    </div>
  )
}

// ---- rows ----

const PAGE = 100 // rows of the table that are read at once
const FOUND_MAX = 1000 // tasks that a text finds

const NONE: number[] = []

const keyOf = (role: string | undefined, index: number | undefined) => `${role}[${index}]`

/** The rows of the pages of `numbers` in which `first` … `last` are, beside those that are `known`. */
function useRows({ name, isJobLive, states, numbers, state, known }: TableProps, first: number, last: number) {
  const rows = new Map(known.map((task) => [keyOf(task.taskRoleName, task.taskIndex), task]))
  const isUnknown = (number: number) => {
    const place = states.place(number)
    return !rows.has(keyOf(place?.role, place?.index))
  }
  const pages = []
  for (let page = Math.floor(first / PAGE); page <= Math.floor(last / PAGE); page++) pages.push(numbers.slice(page * PAGE, (page + 1) * PAGE).filter(isUnknown))
  const stretches = pages.flatMap((page) => stretchesOf(states, page, state !== ''))
  const results = useQueries({
    queries: stretches.map(({ role, from, count }) => ({
      ...tasksQuery(name, taskFilterQuery({ role, from, limit: count, state })),
      refetchInterval: isJobLive ? pollMs : (false as const),
    })),
  })
  for (const { data } of results) for (const task of data ?? []) rows.set(keyOf(task.taskRoleName, task.taskIndex), task)
  return { rows, error: results.find((result) => result.error)?.error ?? null }
}

/** The rows that the server has put in an order of its own, or has chosen by what it alone knows: page by page. */
function useListed(name: string, isJobLive: boolean, query: string | null, first: number, last: number) {
  const pages: number[] = []
  if (query !== null) for (let page = Math.floor(first / PAGE); page <= Math.floor(last / PAGE); page++) pages.push(page)
  const results = useQueries({
    queries: pages.map((page) => ({ ...taskPageQuery(name, query ?? '', page * PAGE, PAGE), refetchInterval: isJobLive ? pollMs : (false as const) })),
  })
  return {
    at: (index: number): Task | undefined => results[pages.indexOf(Math.floor(index / PAGE))]?.data?.data[index % PAGE],
    error: results.find((result) => result.error)?.error ?? null,
  }
}

/** How many they are; undefined: nothing is known yet. */
function useListedCount(name: string, isJobLive: boolean, query: string | null) {
  const { data } = useQuery({
    ...taskPageQuery(name, query ?? '', 0, PAGE),
    refetchInterval: isJobLive ? pollMs : false,
    enabled: query !== null,
    placeholderData: keepPreviousData,
  })
  return query === null ? undefined : data?.totalCount
}

/** What the server finds by a text, beside the tasks that it names; of one state and one role, where these are given. */
function useFound(name: string, isJobLive: boolean, states: TaskStates, text: string, state: string, role: string) {
  const { data, error } = useQuery({
    ...tasksQuery(name, taskFilterQuery({ keyword: text, state, role, limit: FOUND_MAX })),
    refetchInterval: isJobLive ? pollMs : false,
    enabled: !!text,
    placeholderData: keepPreviousData,
  })
  const tasks = text ? (data ?? []) : []
  const named = text ? states.named(text).filter((number) => (!state || states.state(number) === state) && (!role || states.place(number)?.role === role)) : []
  const found = tasks.map((task) => states.number({ role: task.taskRoleName ?? '', index: task.taskIndex ?? -1 })).filter((number) => number >= 0)
  return { numbers: [...new Set([...named, ...found])], tasks, isCut: tasks.length >= FOUND_MAX, error }
}

/** Those that are shown, by role and index; in another order they are sorted by the server, page by page. */
async function tasksAll(name: string, filter: Record<string, string>): Promise<Task[]> {
  const most = 5000
  if (!filter['order']) return pagesAll<Task>((cursor) => get(`/api/v2/jobs/${enc(name)}/tasks?${taskFilterQuery(filter)}&limit=${most}&fields=${TASK_FIELDS}&cursor=${enc(cursor)}`))
  const tasks: Task[] = []
  for (let isMore = true; isMore; ) {
    const page = await get<Task[]>(`/api/v2/jobs/${enc(name)}/tasks?${taskFilterQuery(filter)}&offset=${tasks.length}&limit=${most}&fields=${TASK_FIELDS}`)
    tasks.push(...page)
    isMore = page.length === most
  }
  return tasks
}

const portsOf = (row: Task) =>
  Object.entries(row.containerPorts ?? {})
    .map(([label, ports]) => `${label} ${ports}`)
    .join('; ')

function csvRows(rows: Task[]) {
  const head = ['Role', 'Task Index', 'State', 'Retries', 'IP', 'Ports', 'Exit Type', 'Exit Code', 'Started', 'Ended', 'Node', 'Container ID']
  const time = (ms: number | null | undefined) => (ms ? new Date(ms).toISOString() : '')
  return csvOf([
    head,
    ...rows.map((row) => [
      row.taskRoleName,
      row.taskIndex,
      row.taskState,
      row.retries,
      row.containerIp,
      portsOf(row),
      row.containerExitSpec?.type,
      row.containerExitCode,
      time(row.launchedTime),
      time(row.completedTime),
      row.containerNodeName,
      row.containerId,
    ]),
  ])
}

const ROW_PX = 31
const HEAD_PX = 38
const BORDERS_PX = 2
const TEMPLATE = 'minmax(110px, 1fr) 126px minmax(90px, 1fr) 70px 104px 92px 76px minmax(120px, 1fr) minmax(120px, 1.4fr)'
const TEMPLATE_ACTIONS = `${TEMPLATE} 84px`
const TEMPLATE_SSH = `${TEMPLATE} 136px`

function RowCells({ name, state, row, href, onDetails, onSsh }: { name: string; state: string | undefined; row: Task | undefined; href: string; onDetails: () => void; onSsh: (() => void) | undefined }) {
  const exit = row?.containerExitCode
  return (
    <>
      <div role="cell">
        <Link href={href} title={t('Log of {task}', { task: name })}>
          {name}
        </Link>
      </div>
      <div role="cell">
        <StateBadge state={state} />
      </div>
      <div role="cell" title={row && [row.containerIp, portsOf(row)].filter(Boolean).join(' · ')}>
        {row ? (row.containerNodeName ?? '–') : '…'}
      </div>
      <div role="cell">{row?.containerGpus || '–'}</div>
      <div role="cell">
        <Ago ms={row?.launchedTime} />
      </div>
      <div role="cell">
        <Duration from={row?.launchedTime} to={row?.completedTime} />
      </div>
      <div role="cell">{row?.retries}</div>
      <div role="cell" lang="en" title={row?.containerExitSpec?.type ?? undefined}>
        {row?.containerExitSpec?.type ?? '–'}
      </div>
      <div role="cell" title={exitWords(row?.containerExitSpec?.reason ?? '') ?? row?.containerExitSpec?.reason ?? undefined}>
        {exit === null || exit === undefined ? '–' : <Said>{`${row?.containerOriginalExitCode ?? exit} ${row?.containerExitSpec?.phrase ?? ''}`}</Said>}
      </div>
      <div role="cell">
        <Button small aria-label={t('Details of {task}', { task: name })} onClick={onDetails}>
          {t('Details')}
        </Button>{' '}
        {onSsh && state === 'RUNNING' && (
          <Button small aria-label={t('Reach {task} by ssh', { task: name })} onClick={onSsh}>
            ssh
          </Button>
        )}
      </div>
    </>
  )
}

interface TableProps {
  name: string
  isJobLive: boolean
  states: TaskStates
  numbers: number[]
  state: string // the one that all of them have, and no other task of their roles; '' when there is more to it
  known: Task[] // rows that have been read
  listed: { query: string; count: number } | null // of tasks that the server names; then `numbers` is empty
  filter: TaskFilter
  hasText: boolean // a text chooses among them, too
  onOrder: (order: string | null) => void
  logHref: (role: string, index: number) => string
  onDetails: (place: TaskPlace) => void
  onSsh: ((place: TaskPlace) => void) | undefined // where the person may
}

function HeadCell({ title, field, isFiltered, order, onOrder }: { title: string; field?: string; isFiltered: boolean; order: string; onOrder: (order: string | null) => void }) {
  const [ordered, direction] = order.split(',')
  const sort = field && ordered === field ? (direction === 'ASC' ? 'ascending' : 'descending') : undefined
  const text = (
    <>
      {title} {isFiltered && <Filtered />}
    </>
  )
  return (
    <div role="columnheader" aria-sort={sort}>
      {field ? (
        <button type="button" onClick={() => onOrder(orderNext(order, field))}>
          {text} {sort === 'ascending' ? '▲' : sort === 'descending' ? '▼' : ''}
        </button>
      ) : (
        text
      )}
    </div>
  )
}

function TaskTable(props: TableProps) {
  const { name, isJobLive, numbers, states, listed, filter, hasText, onOrder, logHref, onDetails, onSsh } = props
  const template = onSsh ? TEMPLATE_SSH : TEMPLATE_ACTIONS
  const box = useRef<HTMLDivElement>(null)
  const count = listed ? listed.count : numbers.length
  const virtual = useVirtualizer({ count, getScrollElement: () => box.current, estimateSize: () => ROW_PX, overscan: 12 })
  const items = virtual.getVirtualItems()
  const first = items[0]?.index ?? 0
  const last = items.at(-1)?.index ?? 0
  const { rows, error } = useRows(props, first, last)
  const page = useListed(name, isJobLive, listed && listed.query, first, last)
  const goTo = (number: number) => {
    virtual.scrollToIndex(number - 1, { align: 'start' })
    requestAnimationFrame(() => box.current?.querySelector<HTMLElement>(`[aria-rowindex="${number + 1}"] a`)?.focus())
  }
  const heads = [
    { title: t('Task'), isFiltered: hasText },
    { title: t('State'), field: 'state', isFiltered: !!filter.state },
    { title: t('Node'), isFiltered: filter.nodes.length > 0 },
    { title: t('GPUs'), isFiltered: false },
    { title: t('Started'), isFiltered: false },
    { title: t('Ran'), isFiltered: false },
    { title: t('Retries'), isFiltered: false },
    { title: t('Exit type'), field: 'exitType', isFiltered: filter.exitTypes.length > 0 },
    { title: t('Exit'), isFiltered: filter.exitCodes.length > 0 },
  ]
  const rowOf = (index: number): { place: TaskPlace | undefined; row: Task | undefined; state: string | undefined } => {
    if (listed) {
      const row = page.at(index)
      return { place: row && { role: row.taskRoleName ?? '', index: row.taskIndex ?? 0 }, row, state: row?.taskState }
    }
    const place = states.place(numbers[index] ?? -1)
    return { place, row: place && rows.get(keyOf(place.role, place.index)), state: place && states.stateOf(place) }
  }
  const wrong = listed ? page.error : error
  return (
    <>
      {wrong !== null && <ErrorNote error={wrong} />}
      {count > GO_TO_FROM && <GoTo label={t('Go to row')} max={count} onGo={goTo} />}
      <div className="grid task-grid" ref={box} role="table" aria-label={t('Tasks')} aria-rowcount={count + 1} tabIndex={0} style={{ height: Math.min(460, HEAD_PX + count * ROW_PX + BORDERS_PX) }}>
        <div role="rowgroup">
          <div className="grid-head" role="row" aria-rowindex={1} style={{ gridTemplateColumns: template }}>
            {heads.map((head) => (
              <HeadCell key={head.title} {...head} order={filter.order} onOrder={onOrder} />
            ))}
            <div role="columnheader">
              <span className="hidden-text">{t('Actions')}</span>
            </div>
          </div>
        </div>
        <div className="grid-rows" role="rowgroup" style={{ height: virtual.getTotalSize() }}>
          {items.map((item) => {
            const { place, row, state } = rowOf(item.index)
            if (!place) return null
            return (
              <div key={item.key} role="row" aria-rowindex={item.index + 2} className="grid-row" style={{ gridTemplateColumns: template, height: ROW_PX, transform: `translateY(${item.start}px)` }}>
                <RowCells name={keyOf(place.role, place.index)} state={state} row={row} href={logHref(place.role, place.index)} onDetails={() => onDetails(place)} onSsh={onSsh && (() => onSsh(place))} />
              </div>
            )
          })}
        </div>
      </div>
    </>
  )
}

/** How many tasks of each role are in which state; a press shows those of the role alone. */
function Roles({ states, role, onRole }: { states: TaskStates; role: string; onRole: (role: string) => void }) {
  return (
    <ul className="roles" aria-label={t('Roles')}>
      {states.roles.map(({ name }) => {
        const counts = states.counts(name)
        return (
          <li key={name} className="row small">
            <Button small aria-pressed={role === name} onClick={() => onRole(role === name ? '' : name)}>
              <span className="clip" lang="">
                {name}
              </span>
            </Button>
            {STATES.filter((state) => counts.get(state)).map((state) => (
              <span key={state}>
                <StateBadge state={state} /> {counts.get(state)}
              </span>
            ))}
          </li>
        )
      })}
    </ul>
  )
}

export function Tasks({ name, detail, logHref, onPick, onDetails, onSsh }: { name: string; detail: JobDetail; logHref: (role: string, index: number) => string; onPick: (role: string, index: number) => void; onDetails: (place: TaskPlace) => void; onSsh?: (place: TaskPlace) => void }) {
  const states = useMemo(() => TaskStates.of(detail), [detail])
  const [search, change] = useSearch()
  const filter = taskFilterOf(search)
  const { state } = filter
  const [role, setRole] = useState('')
  const [text, setText] = useState('')
  const [isBusy, setBusy] = useState(false)
  const toast = useToast()
  const settled = useSettled(text.trim())
  const isJobLive = isLive(detail.jobStatus?.state)
  const words = taskFilterWords(filter, role, settled)
  const query = isListed(filter) ? taskFilterQuery(words) : null
  const listedCount = useListedCount(name, isJobLive, query)
  const found = useFound(name, isJobLive, states, query === null ? settled : '', state, role)
  const counts = useMemo(() => states.counts(role), [states, role])
  const chosen = useMemo(() => states.numbers(state, role), [states, state, role])
  const numbers = query !== null ? NONE : settled ? found.numbers : chosen
  const csvSave = () => {
    setBusy(true)
    tasksAll(name, words)
      .then(
        (tasks) => fileSave(`${name}-tasks.csv`, 'text/csv', csvRows(tasks)),
        (error: unknown) => toast(error instanceof Error ? error.message : String(error), 'error'),
      )
      .finally(() => setBusy(false))
  }
  return (
    <section className="card" aria-label={t('Tasks')}>
      <div className="card-head">
        <h2>{t('Tasks')}</h2>
        <div className="row" role="group" aria-label={t('State')}>
          {STATES.filter((one) => counts.get(one) || one === state).map((one) => (
            <Button key={one} small aria-pressed={state === one} onClick={() => change({ state: state === one ? null : one })}>
              <StateBadge state={one} /> {counts.get(one) ?? 0}
            </Button>
          ))}
        </div>
        <input type="search" className="input push" aria-label={t('Task, node, address or exit')} placeholder={t('Task, node, address or exit')} value={text} onChange={(event) => setText(event.target.value)} />
        <Button small disabled={isBusy} onClick={csvSave}>
          CSV
        </Button>
      </div>
      <TaskFilters name={name} isJobLive={isJobLive} filter={filter} change={change} />
      {states.roles.length > 1 && <Roles states={states} role={role} onRole={setRole} />}
      {states.count > 1 && <Strip states={states} onPick={onPick} />}
      {found.error !== null && <ErrorNote error={found.error} />}
      {listedCount !== undefined && (
        <p className="small quiet" role="status">
          {t('{n} of {m} tasks', { n: listedCount, m: states.count })}
        </p>
      )}
      {settled && query === null && found.isCut && <p className="small quiet">{t('The first {n} are shown.', { n: FOUND_MAX })}</p>}
      <TaskTable name={name} isJobLive={isJobLive} states={states} numbers={numbers} state={settled ? '' : state} known={found.tasks} listed={query === null ? null : { query, count: listedCount ?? 0 }} filter={filter} hasText={!!settled} onOrder={(order) => change({ order })} logHref={logHref} onDetails={onDetails} onSsh={onSsh} />
    </section>
  )
}
