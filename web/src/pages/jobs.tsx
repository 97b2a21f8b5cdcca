// The list of jobs. The server sorts, filters and pages; the page holds the rows in sight and a page before and after.
import { useQueries, useQuery, useQueryClient } from '@tanstack/react-query'
import { useVirtualizer } from '@tanstack/react-virtual'
import { useCallback, useEffect, useMemo, useRef, useState, type KeyboardEvent, type ReactNode } from 'react'
import { ARCHIVED, errorOfAll, forEachJob, forEachWhole, jobDelete, jobHasBegun, jobStart, jobStop, tagAdd, tagRemove } from '../api/actions'
import { nameOf, sessionGet, type JobSummary } from '../api/client'
import { clustersQuery, jobPageQuery, type JobPage } from '../api/queries'
import { t } from '../i18n/i18n'
import { filterCommand, filterOf, filterQuery, filtersKept, isFiltered, orderNext, type JobFilter } from '../lib/filter'
import { settingsChange, useSettings } from '../lib/settings'
import { jobPath, Link, navigate, useSearch } from '../router'
import { GO_TO_FROM, GoTo } from '../ui/go-to'
import { Ago, Button, Check, Cli, Confirm, Duration, Empty, ErrorNote, LinkButton, Loading, Menu, StateBadge, STATES, stateName, usePageTitle, useToast, useUndo } from '../ui/ui'

const PAGE = 200

interface Column {
  id: string
  title: string
  order?: string
  width: string
  isNumber?: boolean
  cell: (job: JobSummary) => ReactNode
}

const columnsAll = (onStop?: (job: JobSummary) => void): Column[] => [
  { id: 'state', title: t('State'), order: 'state', width: '118px', cell: (job) => <StateBadge state={job.state} /> },
  { id: 'user', title: t('User'), order: 'username', width: 'minmax(70px, 0.6fr)', cell: (job) => job.username },
  { id: 'vc', title: t('Virtual cluster'), order: 'vc', width: 'minmax(70px, 0.6fr)', cell: (job) => job.virtualCluster },
  { id: 'gpus', title: t('GPUs'), order: 'totalGpuNumber', width: '64px', isNumber: true, cell: (job) => job.totalGpuNumber },
  { id: 'tasks', title: t('Tasks'), order: 'totalTaskNumber', width: '68px', isNumber: true, cell: (job) => job.totalTaskNumber },
  { id: 'submitted', title: t('Submitted'), order: 'submissionTime', width: '120px', cell: (job) => <Ago ms={job.submissionTime} /> },
  { id: 'duration', title: t('Duration'), width: '110px', cell: (job) => <Duration from={job.launchedTime ?? job.submissionTime} to={job.completedTime} /> },
  { id: 'retries', title: t('Retries'), order: 'retries', width: '76px', isNumber: true, cell: (job) => job.retries },
  { id: 'priority', title: t('Priority'), order: 'jobPriority', width: '84px', cell: (job) => job.jobPriority ?? '–' },
  { id: 'completed', title: t('Ended'), order: 'completionTime', width: '120px', cell: (job) => <Ago ms={job.completedTime} /> },
  { id: 'exit', title: t('Exit code'), width: '80px', isNumber: true, cell: (job) => job.appExitCode ?? '–' },
  { id: 'tags', title: t('Tags'), width: 'minmax(80px, 1fr)', cell: (job) => job.tags?.join(', ') },
  {
    id: 'actions',
    title: t('Actions'),
    width: '76px',
    // by keyboard: Space selects the row, and Stop stands above the list
    cell: (job) =>
      isLive(job.state) &&
      mayStop(job) && (
        <Button small tabIndex={-1} aria-label={t('Stop {name}', { name: nameOf(job) })} disabled={job.state === 'STOPPING' || job.executionType === 'STOP'} onClick={() => onStop?.(job)}>
          {t('Stop')}
        </Button>
      ),
  },
]

const mayStop = (job: JobSummary) => !!sessionGet()?.admin || job.username === sessionGet()?.user
export const isLive = (state: string | undefined) => state === 'WAITING' || state === 'RUNNING' || state === 'STOPPING'

function useNarrow() {
  const query = useMemo(() => matchMedia('(max-width: 720px)'), [])
  const [isNarrow, setNarrow] = useState(query.matches)
  useEffect(() => {
    const change = () => setNarrow(query.matches)
    query.addEventListener('change', change)
    return () => query.removeEventListener('change', change)
  }, [query])
  return isNarrow
}

// ---- filters ----

/** A text field that changes the address when one stops typing. */
function SearchField({ label, value, onValue }: { label: string; value: string; onValue: (value: string) => void }) {
  const [text, setText] = useState(value)
  useEffect(() => setText(value), [value])
  useEffect(() => {
    if (text === value) return
    const timer = setTimeout(() => onValue(text.trim()), 250)
    return () => clearTimeout(timer)
  }, [text, value, onValue])
  return <input type="search" className="input" aria-label={label} placeholder={label} value={text} onChange={(event) => setText(event.target.value)} />
}

function Filters({ filter, change }: { filter: JobFilter; change: (changes: Record<string, string | null>) => void }) {
  const toggle = (key: string, values: string[], value: string) => {
    const next = values.includes(value) ? values.filter((other) => other !== value) : [...values, value]
    change({ [key]: next.join(',') })
  }
  const isMine = filter.users.includes('@me')
  return (
    <div className="row" role="search">
      <SearchField label={t('Part of a name')} value={filter.keyword} onValue={(keyword) => change({ keyword })} />
      <Button aria-pressed={isMine} onClick={() => change({ user: isMine ? null : '@me' })}>
        {t('Mine')}
      </Button>
      <div className="row" role="group" aria-label={t('State')}>
        {STATES.map((state) => (
          <Button key={state} small aria-pressed={filter.states.includes(state)} onClick={() => toggle('state', filter.states, state)}>
            {stateName(state)}
          </Button>
        ))}
      </div>
      <Menu start label={t('More filters')}>
        {() => (
          <div className="stack">
            <SearchField label={t('Users, by comma')} value={filter.users.join(',')} onValue={(user) => change({ user })} />
            <SearchField label={t('Tags, by comma')} value={filter.tags.join(',')} onValue={(tag) => change({ tag })} />
            <ClusterChoices chosen={filter.vcs} onToggle={(vc) => toggle('vc', filter.vcs, vc)} />
            <div className="label">{t('Priority')}</div>
            {['crit', 'prod', 'test', 'oppo', 'default'].map((priority) => (
              <Check key={priority} checked={filter.priorities.includes(priority)} onChange={() => toggle('priority', filter.priorities, priority)}>
                {priority}
              </Check>
            ))}
            <Check checked={filter.isArchived} onChange={() => change({ archived: filter.isArchived ? null : 'true' })}>
              {t('The archived ones')}
            </Check>
          </div>
        )}
      </Menu>
      {(isFiltered(filter) || filter.isArchived) && (
        <Button kind="plain" onClick={() => change({ keyword: null, user: null, vc: null, state: null, priority: null, tag: null, archived: null })}>
          {t('Clear filters')}
        </Button>
      )}
    </div>
  )
}

/** Those that there are, and what the address names beside them. */
function ClusterChoices({ chosen, onToggle }: { chosen: string[]; onToggle: (vc: string) => void }) {
  const { data } = useQuery(clustersQuery)
  return (
    <div className="stack-tight" role="group" aria-label={t('Virtual clusters')}>
      <div className="label">{t('Virtual clusters')}</div>
      {[...new Set([...Object.keys(data ?? {}), ...chosen])].map((vc) => (
        <Check key={vc} checked={chosen.includes(vc)} onChange={() => onToggle(vc)}>
          {vc}
        </Check>
      ))}
    </div>
  )
}

function ColumnMenu() {
  const { columns } = useSettings()
  return (
    <Menu label={t('Columns')}>
      {() =>
        columnsAll().map((column) => (
          <Check
            key={column.id}
            checked={columns.includes(column.id)}
            onChange={() => settingsChange({ columns: columns.includes(column.id) ? columns.filter((id) => id !== column.id) : [...columns, column.id] })}
          >
            {column.title}
          </Check>
        ))
      }
    </Menu>
  )
}

// ---- what is done to several ----

type Bulk = 'stop' | 'delete' | 'archive'

function BulkDialog({ kind, jobs, onClose, onDone }: { kind: Bulk; jobs: JobSummary[]; onClose: () => void; onDone: (names: string[]) => void }) {
  const toast = useToast()
  const undo = useUndo()
  const queries = useQueryClient()
  const names = jobs.map(nameOf)
  const wordsOf = (n: number) => ({
    stop: { title: t('Stop {n} job?|Stop {n} jobs?', { n }), action: t('Stop'), done: t('{n} job is being stopped.|{n} jobs are being stopped.', { n }) },
    delete: { title: t('Delete {n} job?|Delete {n} jobs?', { n }), action: t('Delete'), done: t('{n} job is deleted.|{n} jobs are deleted.', { n }) },
    archive: { title: t('Archive {n} job?|Archive {n} jobs?', { n }), action: t('Archive'), done: t('{n} job is archived.|{n} jobs are archived.', { n }) },
  })[kind]
  const words = wordsOf(names.length)
  const action = kind === 'stop' ? jobStop : kind === 'delete' ? jobDelete : (name: string) => tagAdd(name, ARCHIVED)
  const confirm = async () => {
    // what had not begun loses nothing when it waits again, and what was archived before stays so
    const back = new Set(kind === 'archive' ? jobs.filter((job) => !job.tags?.includes(ARCHIVED)).map(nameOf) : [])
    const failed = await forEachJob(names, async (name) => {
      const mayWaitAgain = kind === 'stop' && !(await jobHasBegun(name))
      await action(name)
      if (mayWaitAgain) back.add(name)
    })
    await queries.invalidateQueries({ queryKey: ['jobs'] })
    const done = names.filter((name) => !failed.some(([other]) => other === name))
    onDone(done)
    const text = wordsOf(done.length).done
    const takeBack = kind === 'archive' ? (name: string) => tagRemove(name, ARCHIVED) : jobStart
    const undone = done.filter((name) => back.has(name))
    if (kind === 'archive' ? undone.length : undone.length && undone.length === done.length)
      undo(text, () => forEachWhole(undone, takeBack, () => queries.invalidateQueries({ queryKey: ['jobs'] })))
    else if (done.length) toast(text)
    if (failed.length) throw errorOfAll(failed)
  }
  return (
    <Confirm title={words.title} action={words.action} danger={kind !== 'archive'} onClose={onClose} onConfirm={confirm}>
      {kind === 'delete' && <p>{t('Their history and their logs are removed for ever.')}</p>}
      {kind === 'archive' && <p>{t('They get the tag “archived” and leave the list until one asks for it. Nothing is removed.')}</p>}
      <ul className="mono small stack-tight">
        {names.slice(0, 12).map((name) => (
          <li key={name} className="anywhere">
            {name}
          </li>
        ))}
        {names.length > 12 && <li>{t('and {n} more', { n: names.length - 12 })}</li>}
      </ul>
    </Confirm>
  )
}

// ---- rows ----

interface Rows {
  total: number
  at: (index: number) => JobSummary | undefined
  error: unknown
  isFirst: boolean // nothing has come yet
}

/** The pages under the rows `first` … `last`. */
function useRows(filter: string, first: number, last: number): Rows {
  const pages: number[] = []
  for (let page = Math.floor(first / PAGE); page <= Math.floor(Math.max(first, last) / PAGE); page++) pages.push(page)
  const results = useQueries({ queries: pages.map((page) => jobPageQuery(filter, page * PAGE, PAGE)) })
  const known = useRef({ filter, total: 0 })
  const data = results.map((result) => (result.isPlaceholderData ? undefined : result.data)) as (JobPage | undefined)[]
  const total = data.find((page) => page)?.totalCount
  if (known.current.filter !== filter) known.current = { filter, total: known.current.total }
  if (total !== undefined) known.current.total = total
  return {
    total: known.current.total,
    at: (index) => data[pages.indexOf(Math.floor(index / PAGE))]?.data[index % PAGE],
    error: results.find((result) => result.error)?.error ?? null,
    isFirst: data.every((page) => !page) && known.current.total === 0,
  }
}

function headCell(column: Column, filter: JobFilter, change: (changes: Record<string, string | null>) => void) {
  const [field, direction] = filter.order.split(',')
  const sort = field === column.order ? (direction === 'ASC' ? 'ascending' : 'descending') : undefined
  return (
    <div key={column.id} role="columnheader" aria-sort={sort} className={column.isNumber ? 'number' : undefined}>
      {column.order ? (
        <button type="button" onClick={() => change({ order: orderNext(filter.order, column.order!) })}>
          {column.title} {sort === 'ascending' ? '▲' : sort === 'descending' ? '▼' : ''}
        </button>
      ) : (
        column.title
      )}
    </div>
  )
}

export default function Jobs() {
  const [search, searchChange] = useSearch()
  const { columns: chosen } = useSettings()
  const isNarrow = useNarrow()
  const me = sessionGet()?.user ?? ''
  const change = useCallback(
    (changes: Record<string, string | null>) => {
      searchChange(changes)
      settingsChange({ jobFilters: { user: me, query: filtersKept(new URLSearchParams(location.search)) } })
    },
    [searchChange, me],
  )
  const filter = filterOf(search)
  const query = filterQuery(filter, me, ARCHIVED)
  const [selected, setSelected] = useState<Map<string, JobSummary>>(new Map())
  const [bulk, setBulk] = useState<{ kind: Bulk; jobs: JobSummary[] } | null>(null)
  const [at, setAt] = useState(0) // the row that the keyboard is on
  const box = useRef<HTMLDivElement>(null)
  const [range, setRange] = useState({ first: 0, last: PAGE - 1 })
  const rows = useRows(query, range.first, range.last)
  const rowHeight = isNarrow ? 58 : 33
  usePageTitle(t('Jobs'))

  const virtual = useVirtualizer({
    count: rows.total,
    getScrollElement: () => box.current,
    estimateSize: () => rowHeight,
    overscan: 10,
  })
  useEffect(() => virtual.measure(), [rowHeight, virtual])
  const items = virtual.getVirtualItems()
  const first = items[0]?.index ?? 0
  const last = items.at(-1)?.index ?? PAGE - 1
  useEffect(() => {
    const timer = setTimeout(() => setRange({ first, last }), 60) // a fast scroll asks for nothing on its way
    return () => clearTimeout(timer)
  }, [first, last])
  useEffect(() => {
    setSelected(new Map())
    setAt(0)
    box.current?.scrollTo(0, 0)
  }, [query])

  const columns = columnsAll((job) => setBulk({ kind: 'stop', jobs: [job] })).filter((column) => (isNarrow ? column.id === 'state' : chosen.includes(column.id)))
  const template = isNarrow ? '34px minmax(0, 1fr) 118px' : `34px minmax(160px, 1.6fr) ${columns.map((column) => column.width).join(' ')}`
  const jobs = [...selected.values()]

  const select = (job: JobSummary | undefined) => {
    if (!job) return
    const next = new Map(selected)
    if (!next.delete(nameOf(job))) next.set(nameOf(job), job)
    setSelected(next)
  }
  const focus = (index: number) => {
    const to = Math.max(0, Math.min(rows.total - 1, index))
    setAt(to)
    virtual.scrollToIndex(to)
    requestAnimationFrame(() => box.current?.querySelector<HTMLElement>(`[data-index="${to}"]`)?.focus())
  }
  const onKey = (event: KeyboardEvent) => {
    if (!(event.target instanceof HTMLElement) || event.target.role !== 'row') return
    const page = Math.max(1, Math.floor((box.current?.clientHeight ?? 300) / rowHeight) - 2)
    const steps: Record<string, number> = { ArrowDown: at + 1, ArrowUp: at - 1, PageDown: at + page, PageUp: at - page, Home: 0, End: rows.total - 1 }
    const to = steps[event.key]
    if (to !== undefined) focus(to)
    else if (event.key === ' ') select(rows.at(at))
    else if (event.key === 'Enter') {
      const job = rows.at(at)
      if (job) navigate(jobPath(job.username!, job.name!))
    } else return
    event.preventDefault()
  }

  return (
    <div className="page page-fill">
      <div className="page-head">
        <h1>{t('Jobs')}</h1>
        <span className="quiet" role="status">
          {rows.isFirst ? '' : t('{n} job|{n} jobs', { n: rows.total })}
        </span>
        <div className="row push">
          {jobs.length > 0 && (
            <>
              <span>{t('{n} selected', { n: jobs.length })}</span>
              <Button kind="danger" disabled={!jobs.some((job) => isLive(job.state))} onClick={() => setBulk({ kind: 'stop', jobs: jobs.filter((job) => isLive(job.state)) })}>
                {t('Stop')}
              </Button>
              <Button disabled={jobs.some((job) => isLive(job.state))} onClick={() => setBulk({ kind: 'archive', jobs })}>
                {t('Archive')}
              </Button>
              <Button kind="danger" disabled={jobs.some((job) => isLive(job.state))} onClick={() => setBulk({ kind: 'delete', jobs })}>
                {t('Delete')}
              </Button>
            </>
          )}
          {rows.total > GO_TO_FROM && <GoTo label={t('Go to row')} max={rows.total} onGo={(number) => focus(number - 1)} />}
          {!isNarrow && <ColumnMenu />}
          <LinkButton href="/submit" kind="main">
            {t('New job')}
          </LinkButton>
        </div>
      </div>
      <Filters filter={filter} change={change} />
      {rows.error ? (
        <ErrorNote error={rows.error} />
      ) : rows.total === 0 ? (
        <RowsMissing query={query} filter={filter} clear={() => change({ keyword: null, user: null, vc: null, state: null, priority: null, tag: null, archived: null })} />
      ) : (
        <div className="grid" ref={box} role="grid" aria-label={t('Jobs')} aria-rowcount={rows.total + 1} aria-multiselectable="true" onKeyDown={onKey}>
          <div className="grid-head" role="row" aria-rowindex={1} style={{ gridTemplateColumns: template }}>
            <div role="columnheader">
              <span className="hidden-text">{t('Selected')}</span>
            </div>
            {headCell({ id: 'name', title: t('Name'), order: 'jobName', width: '', cell: () => null }, filter, change)}
            {columns.map((column) => headCell(column, filter, change))}
          </div>
          <div className="grid-rows" role="rowgroup" style={{ height: virtual.getTotalSize() }}>
            {items.map((item) => {
              const job = rows.at(item.index)
              const isSelected = !!job && selected.has(nameOf(job))
              return (
                <div
                  key={item.key}
                  role="row"
                  data-index={item.index}
                  aria-rowindex={item.index + 2}
                  aria-selected={isSelected}
                  tabIndex={item.index === at ? 0 : -1}
                  className="grid-row"
                  style={{ gridTemplateColumns: template, height: rowHeight, transform: `translateY(${item.start}px)` }}
                  onFocus={() => setAt(item.index)}
                >
                  <div role="gridcell">
                    {job && <input type="checkbox" tabIndex={-1} aria-label={t('Select {name}', { name: nameOf(job) })} checked={isSelected} onChange={() => select(job)} />}
                  </div>
                  <div role="gridcell">
                    {job ? (
                      <Link tabIndex={-1} href={jobPath(job.username!, job.name!)} title={nameOf(job)}>
                        {job.name}
                      </Link>
                    ) : (
                      <span className="quiet">…</span>
                    )}
                    {isNarrow && job && (
                      <div className="small quiet clip">
                        {job.username} · {job.virtualCluster} · {t('{n} GPU|{n} GPUs', { n: job.totalGpuNumber ?? 0 })} · <Ago ms={job.submissionTime} />
                      </div>
                    )}
                  </div>
                  {columns.map((column) => (
                    <div key={column.id} role="gridcell" className={column.isNumber ? 'number' : undefined}>
                      {job && column.cell(job)}
                    </div>
                  ))}
                </div>
              )
            })}
          </div>
        </div>
      )}
      <Cli command={filterCommand(filter, me, ARCHIVED)} />
      {bulk && <BulkDialog kind={bulk.kind} jobs={bulk.jobs} onClose={() => setBulk(null)} onDone={(done) => setSelected((before) => new Map([...before].filter(([name]) => !done.includes(name))))} />}
    </div>
  )
}

function RowsMissing({ query, filter, clear }: { query: string; filter: JobFilter; clear: () => void }) {
  const [result] = useQueries({ queries: [jobPageQuery(query, 0, PAGE)] })
  if (!result.data || result.isPlaceholderData) return <Loading />
  return (
    <div className="card">
      {isFiltered(filter) ? (
        <Empty title={t('No job fits these filters')}>
          <Button onClick={clear}>{t('Clear filters')}</Button>
        </Empty>
      ) : (
        <Empty title={t('There are no jobs yet')}>
          <p>{t('Write a job file, or begin with a form:')}</p>
          <LinkButton href="/submit" kind="main">
            {t('Submit a job')}
          </LinkButton>
          <code>skep run --image skep/base -- echo hello</code>
        </Empty>
      )}
    </div>
  )
}
