// The list of jobs. The server sorts, filters and pages; the page holds the rows in sight and a page before and after.
import { useQueries, useQuery, useQueryClient } from '@tanstack/react-query'
import { useVirtualizer } from '@tanstack/react-virtual'
import { useCallback, useEffect, useRef, useState, type KeyboardEvent } from 'react'
import { ARCHIVED, errorOfAll, jobHasBegun } from '../api/actions'
import { bulkDo, bulkTry } from '../api/bulk'
import { nameOf, sessionGet, type JobSummary } from '../api/client'
import { clustersQuery, jobPageQuery, membersQuery, userQuery, usersQuery, type JobPage } from '../api/queries'
import { t } from '../i18n/i18n'
import { layoutOf } from '../lib/columns'
import { fileSave } from '../lib/csv'
import { jobsAll, jobsBetween, jobsCsv } from '../lib/job-csv'
import { filterCommand, filterOf, filterQuery, filtersKept, isFiltered, listTyped, ME, type JobFilter } from '../lib/filter'
import { isLive } from '../lib/job-state'
import { settingsChange, useSettings } from '../lib/settings'
import { jobPath, Link, navigate, useSearch } from '../router'
import { ChoiceMenu, type Values } from '../ui/choices'
import { GO_TO_FROM, GoTo } from '../ui/go-to'
import { useNarrow } from '../ui/narrow'
import { Ago, Button, Check, Cli, Confirm, Empty, ErrorNote, LinkButton, Loading, Menu, OnceButton, stateName, STATES, TextField, usePageTitle, useToast, useUndo } from '../ui/ui'
import { ColumnMenu, columnsAll, Head, layoutStyle } from './jobs/columns'

const PAGE = 200
const LAYOUT_NARROW = { template: '34px minmax(0, 1fr) 118px', minPx: 0 }

// ---- filters ----

interface SearchFieldProps {
  label: string
  value: string
  isDisabled?: boolean
  read?: (text: string) => string
  onValue: (value: string) => void
}

const trimmed = (text: string) => text.trim()

/** A text field that changes the address when one stops typing. `read`: what the address has of a text, which stays as it is typed. */
function SearchField({ label, value, isDisabled, read = trimmed, onValue }: SearchFieldProps) {
  const [text, setText] = useState(value)
  const given = useRef(value) // what the text comes from, or has been given on
  useEffect(() => {
    if (value !== given.current) setText(value) // the address was changed by something else
    given.current = value
  }, [value])
  useEffect(() => {
    const next = read(text)
    if (text === value || next === value) return
    const timer = setTimeout(() => {
      given.current = next
      onValue(next)
    }, 250)
    return () => clearTimeout(timer)
  }, [text, value])
  return <input type="search" className="input" aria-label={label} placeholder={label} disabled={isDisabled} value={text} onChange={(event) => setText(event.target.value)} />
}

const useSelf = () => useQuery({ ...userQuery(sessionGet()?.user ?? ''), enabled: !!sessionGet() })

/** May the person choose users from a list: of all, or of the groups that they administer? */
function useMaySeeNames(): boolean {
  const { data } = useSelf()
  return !!sessionGet()?.admin || !!data?.adminOfGroups?.length
}

/** Oneself first; administrators have all users, those of a group its members. */
function useNames(): Values {
  const isAdmin = !!sessionGet()?.admin
  const { data: self, error: selfError } = useSelf()
  const all = useQuery({ ...usersQuery, enabled: isAdmin })
  const members = useQueries({ queries: (isAdmin ? [] : (self?.adminOfGroups ?? [])).map((group) => membersQuery(group)) })
  const known = isAdmin ? all.data : members.every(({ data }) => data) ? members.flatMap(({ data }) => data ?? []) : undefined
  const names = known && [...new Set(known.map(({ username = '' }) => username))].sort()
  return { values: names && [ME, ...names], error: (isAdmin ? all.error : (selfError ?? members.find(({ error }) => error)?.error)) ?? null }
}

function Filters({ filter, change }: { filter: JobFilter; change: (changes: Record<string, string | null>) => void }) {
  const toggle = (key: string, values: string[], value: string) => {
    const next = values.includes(value) ? values.filter((other) => other !== value) : [...values, value]
    change({ [key]: next.join(',') })
  }
  const maySeeNames = useMaySeeNames()
  const isMine = filter.users.includes('@me')
  const isMyRunning = filter.users.join() === '@me' && filter.states.join() === 'RUNNING'
  return (
    <div className="row" role="search" tabIndex={-1}>
      <SearchField label={t('Part of a name')} value={filter.keyword} onValue={(keyword) => change({ keyword })} />
      <Button aria-pressed={isMine} onClick={() => change({ user: isMine ? null : '@me' })}>
        {t('Mine')}
      </Button>
      <Button aria-pressed={isMyRunning} onClick={() => change(isMyRunning ? { user: null, state: null } : { user: '@me', state: 'RUNNING' })}>
        {t('My running jobs')}
      </Button>
      <div className="row" role="group" aria-label={t('State')}>
        {STATES.map((state) => (
          <Button key={state} small aria-pressed={filter.states.includes(state)} onClick={() => toggle('state', filter.states, state)}>
            {stateName(state)}
          </Button>
        ))}
      </div>
      {maySeeNames && <ChoiceMenu label={t('Users')} chosen={filter.users} titleOf={(user) => (user === ME ? t('@Me') : user)} useValues={useNames} onToggle={(user) => toggle('user', filter.users, user)} />}
      <Menu start label={t('More filters')}>
        {() => (
          <div className="stack">
            {!maySeeNames && <SearchField label={t('Users, by comma')} value={filter.users.join(',')} read={listTyped} onValue={(user) => change({ user })} />}
            <SearchField label={t('Tags, by comma')} value={filter.tags.join(',')} isDisabled={filter.isArchived} read={listTyped} onValue={(tag) => change({ tag })} />
            {filter.isArchived && <p className="small quiet">{t('The archived ones are found by their tag: no other tag can be asked for beside it.')}</p>}
            <TextField label={t('Submitted since')} type="date" value={filter.since} onChange={(event) => change({ since: event.target.value || null })} />
            <TextField label={t('Submitted until')} type="date" value={filter.until} onChange={(event) => change({ until: event.target.value || null })} />
            <ClusterChoices chosen={filter.vcs} onToggle={(vc) => toggle('vc', filter.vcs, vc)} />
            <div className="label">{t('Priority')}</div>
            {['crit', 'prod', 'test', 'oppo', 'default'].map((priority) => (
              <Check key={priority} checked={filter.priorities.includes(priority)} onChange={() => toggle('priority', filter.priorities, priority)}>
                {priority}
              </Check>
            ))}
            <Check checked={filter.isArchived} onChange={() => change(filter.isArchived ? { archived: null } : { archived: 'true', tag: null })}>
              {t('The archived ones')}
            </Check>
          </div>
        )}
      </Menu>
      {(isFiltered(filter) || filter.isArchived) && (
        <OnceButton kind="plain" onClick={() => change({ keyword: null, user: null, vc: null, state: null, priority: null, tag: null, since: null, until: null, archived: null })}>
          {t('Clear filters')}
        </OnceButton>
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

// ---- what is done to several ----

type BulkKind = 'stop' | 'delete' | 'archive'

interface Bulk {
  kind: BulkKind
  jobs: JobSummary[]
  left: number // selected beside them, to which it cannot be done
}

const BULK_ACTIONS = { stop: ['stop', undefined, 'start'], delete: ['delete', undefined, null], archive: ['addTag', ARCHIVED, 'removeTag'] } as const

/** One looks at each job whether it has begun: for a few. */
const LOOKED_AT_MAX = 50

/** What had not begun loses nothing when it waits again. A list may have been read a while ago. */
async function allWait(jobs: JobSummary[]): Promise<boolean> {
  if (jobs.length > LOOKED_AT_MAX || !jobs.every(({ state }) => state === 'WAITING')) return false
  for (const job of jobs) if (await jobHasBegun(nameOf(job))) return false
  return true
}

/** The server is asked before which of them the person may do it to, and how many that are is said. */
function BulkDialog({ bulk: { kind, jobs, left }, onClose, onDone }: { bulk: Bulk; onClose: () => void; onDone: (names: string[]) => void }) {
  const toast = useToast()
  const undo = useUndo()
  const queries = useQueryClient()
  const [told, setTold] = useState(0)
  const all = jobs.map(nameOf)
  const [action, tag, back] = BULK_ACTIONS[kind]
  // asked once: what is changed by the action itself must not change what one has confirmed
  const trial = useQuery({ queryKey: ['bulk', kind, all], queryFn: ({ signal }) => bulkTry(action, all, tag, signal), enabled: ({ state }) => !state.data, gcTime: 0, retry: false, refetchOnWindowFocus: false })
  const stop = useRef<AbortController | null>(null)
  useEffect(() => () => stop.current?.abort(), []) // who closes the dialog wants it to go no further
  const refused = new Set(trial.data?.failed.map(([name]) => name))
  const names = all.filter((name) => !refused.has(name))
  const wordsOf = (n: number) => ({
    stop: { title: t('Stop {n} job?|Stop {n} jobs?', { n }), action: t('Stop'), done: t('{n} job is being stopped.|{n} jobs are being stopped.', { n }) },
    delete: { title: t('Delete {n} job?|Delete {n} jobs?', { n }), action: t('Delete'), done: t('{n} job is deleted.|{n} jobs are deleted.', { n }) },
    archive: { title: t('Archive {n} job?|Archive {n} jobs?', { n }), action: t('Archive'), done: t('{n} job is archived.|{n} jobs are archived.', { n }) },
  })[kind]
  const words = wordsOf(names.length || all.length)
  const fresh = () => queries.invalidateQueries({ queryKey: ['jobs'] })
  const confirm = async () => {
    stop.current = new AbortController()
    const { signal } = stop.current
    const mayWaitAgain = kind === 'stop' && (await allWait(jobs))
    const { done, failed, left: untouched } = await bulkDo(action, names, tag, setTold, signal)
    await fresh()
    onDone(done)
    const text = wordsOf(done.length).done
    // what was archived before stays so
    const archived = new Set(jobs.filter((job) => job.tags?.includes(ARCHIVED)).map(nameOf))
    const undone = kind === 'archive' ? done.filter((name) => !archived.has(name)) : mayWaitAgain ? done : []
    if (back && undone.length)
      undo(text, async () => {
        const { failed } = await bulkDo(back, undone, tag)
        await fresh()
        if (failed.length) throw errorOfAll(failed)
      })
    else if (done.length) toast(text)
    if (untouched.length) toast(t('{n} job is left as it was.|{n} jobs are left as they were.', { n: untouched.length }))
    if (failed.length) throw errorOfAll(failed)
  }
  return (
    <Confirm title={words.title} action={words.action} danger={kind !== 'archive'} disabled={trial.isPending || !names.length} onClose={onClose} onConfirm={confirm}>
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
      {left > 0 && <p>{kind === 'stop' ? t('{n} selected job has ended, and is left out.|{n} selected jobs have ended, and are left out.', { n: left }) : t('{n} selected job has not ended, and is left out.|{n} selected jobs have not ended, and are left out.', { n: left })}</p>}
      {refused.size > 0 && <p>{t('{n} selected job is not yours to change or is gone, and is left out.|{n} selected jobs are not yours to change or are gone, and are left out.', { n: refused.size })}</p>}
      {trial.isPending && <Loading />}
      {trial.error && <ErrorNote error={trial.error} />}
      {told > 0 && told < names.length && (
        <label className="stack-tight">
          <span role="status">{t('{n} of {m} jobs', { n: told, m: names.length })}</span>
          <progress value={told} max={names.length} />
        </label>
      )}
    </Confirm>
  )
}

// ---- rows ----

interface Rows {
  total: number
  at: (index: number) => JobSummary | undefined
  shown: JobSummary[] // of the pages under the rows in sight
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
    shown: data.flatMap((page) => page?.data ?? []),
    error: results.find((result) => result.error)?.error ?? null,
    isFirst: data.every((page) => !page) && known.current.total === 0,
  }
}

export default function Jobs() {
  const [search, searchChange] = useSearch()
  const { columns: chosen, widths } = useSettings()
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
  const [bulk, setBulk] = useState<Bulk | null>(null)
  const [isFinding, setFinding] = useState(false)
  const anchor = useRef(0) // where a range of rows begins
  const toast = useToast()
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
  const turn = useRef(0) // of the selection: what was asked for an earlier one selects nothing any more
  const selectNone = () => {
    turn.current++
    setFinding(false)
    setSelected(new Map())
  }
  useEffect(() => {
    selectNone()
    anchor.current = 0
    setAt(0)
    box.current?.scrollTo(0, 0)
  }, [query])

  const columns = columnsAll((job) => setBulk({ kind: 'stop', jobs: [job], left: 0 })).filter((column) => (isNarrow ? column.id === 'state' : chosen.includes(column.id)))
  const layout = isNarrow ? LAYOUT_NARROW : layoutOf(columns.map(({ id }) => id), widths)
  const jobs = [...selected.values()]

  const live = jobs.filter((job) => isLive(job.state))
  const ended = jobs.filter((job) => !isLive(job.state))
  const isAllShown = rows.shown.length > 0 && rows.shown.every((job) => selected.has(nameOf(job)))

  const add = (more: JobSummary[]) => setSelected((before) => new Map([...before, ...more.map((job): [string, JobSummary] => [nameOf(job), job])]))
  const addLater = async (found: Promise<JobSummary[]>, done: () => void = () => undefined) => {
    const asked = turn.current
    const isCurrent = () => turn.current === asked
    try {
      const more = await found
      if (isCurrent()) add(more)
    } catch (failure) {
      if (isCurrent()) toast(failure instanceof Error ? failure.message : String(failure), 'error')
    }
    if (isCurrent()) done()
  }
  const select = (index: number) => {
    const job = rows.at(index)
    anchor.current = index
    if (!job) return
    const next = new Map(selected)
    if (!next.delete(nameOf(job))) next.set(nameOf(job), job)
    setSelected(next)
  }
  /** From the row that was selected last to this one; what the page does not hold is asked for. */
  const selectTo = (index: number) => {
    const [from, to] = [Math.min(anchor.current, index), Math.max(anchor.current, index)]
    const between = Array.from({ length: to - from + 1 }, (_, step) => rows.at(from + step))
    if (between.every((job) => job !== undefined)) return add(between)
    void addLater(jobsBetween(query, from, to))
  }
  const selectShown = () => {
    if (!isAllShown) return add(rows.shown)
    const next = new Map(selected)
    for (const job of rows.shown) next.delete(nameOf(job))
    setSelected(next)
  }
  const selectFound = () => {
    setFinding(true)
    void addLater(jobsAll(query), () => setFinding(false))
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
    if (to !== undefined) {
      const goal = Math.max(0, Math.min(rows.total - 1, to))
      if (event.shiftKey && !selected.size) anchor.current = at
      if (event.shiftKey) selectTo(goal)
      focus(goal)
    } else if (event.key === ' ') {
      if (event.shiftKey) selectTo(at)
      else select(at)
    } else if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === 'a') add(rows.shown)
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
        <div className="row push" tabIndex={-1}>
          {jobs.length > 0 && (
            <>
              <span role="status">{t('{n} selected', { n: jobs.length })}</span>
              {jobs.length < rows.total && (
                <OnceButton disabled={isFinding} onClick={selectFound}>
                  {t('Select all {n}', { n: rows.total })}
                </OnceButton>
              )}
              <OnceButton onClick={selectNone}>{t('Select none')}</OnceButton>
              <Button kind="danger" disabled={!live.length} onClick={() => setBulk({ kind: 'stop', jobs: live, left: ended.length })}>
                {t('Stop')}
              </Button>
              <Button disabled={!ended.length} onClick={() => setBulk({ kind: 'archive', jobs: ended, left: live.length })}>
                {t('Archive')}
              </Button>
              <Button kind="danger" disabled={!ended.length} onClick={() => setBulk({ kind: 'delete', jobs: ended, left: live.length })}>
                {t('Delete')}
              </Button>
            </>
          )}
          {rows.total > GO_TO_FROM && <GoTo label={t('Go to row')} max={rows.total} onGo={(number) => focus(number - 1)} />}
          {!isNarrow && <ColumnMenu box={box} />}
          <CsvButton filter={query} isEmpty={rows.total === 0} />
          <LinkButton href="/submit" kind="main">
            {t('New job')}
          </LinkButton>
        </div>
      </div>
      <div className="stack">
        <Filters filter={filter} change={change} />
        {rows.error !== null && rows.shown.length > 0 && <ErrorNote error={rows.error} />}
      </div>
      {rows.error && rows.shown.length === 0 ? (
        <ErrorNote error={rows.error} />
      ) : rows.total === 0 ? (
        <RowsMissing query={query} filter={filter} clear={() => change({ keyword: null, user: null, vc: null, state: null, priority: null, tag: null, since: null, until: null, archived: null })} />
      ) : (
        <div className="grid job-grid" ref={box} role="grid" style={layoutStyle(layout)} aria-label={t('Jobs')} aria-rowcount={rows.total + 1} aria-multiselectable="true" onKeyDown={onKey}>
          <Head columns={columns} filter={filter} change={change} box={box} isNarrow={isNarrow} isAll={isAllShown} isSome={selected.size > 0} onAll={selectShown} />
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
                  style={{ height: rowHeight, transform: `translateY(${item.start}px)` }}
                  onFocus={() => setAt(item.index)}
                >
                  <div role="gridcell">
                    {job && <input type="checkbox" tabIndex={-1} aria-label={t('Select {name}', { name: nameOf(job) })} checked={isSelected} onChange={({ nativeEvent }) => {
                      if (!(nativeEvent instanceof MouseEvent && nativeEvent.shiftKey)) return select(item.index)
                      getSelection()?.removeAllRanges() // the browser takes the press for one that marks text
                      selectTo(item.index)
                    }} />}
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
      {bulk && <BulkDialog bulk={bulk} onClose={() => setBulk(null)} onDone={(done) => setSelected((before) => new Map([...before].filter(([name]) => !done.includes(name))))} />}
    </div>
  )
}

/** All jobs that the filters find, not only those in sight. It keeps its place while there are none, so that nothing moves when they come. */
function CsvButton({ filter, isEmpty }: { filter: string; isEmpty: boolean }) {
  const [isBusy, setBusy] = useState(false)
  const toast = useToast()
  const save = () => {
    setBusy(true)
    jobsAll(filter)
      .then(
        (jobs) => fileSave('jobs.csv', 'text/csv', jobsCsv(jobs)),
        (error: unknown) => toast(error instanceof Error ? error.message : String(error), 'error'),
      )
      .finally(() => setBusy(false))
  }
  return (
    <Button disabled={isBusy || isEmpty} onClick={save}>
      {t('Save as CSV')}
    </Button>
  )
}

function RowsMissing({ query, filter, clear }: { query: string; filter: JobFilter; clear: () => void }) {
  const [result] = useQueries({ queries: [jobPageQuery(query, 0, PAGE)] })
  if (!result.data || result.isPlaceholderData) return <Loading />
  return (
    <div className="card">
      {isFiltered(filter) ? (
        <Empty title={t('No job fits these filters')}>
          <OnceButton onClick={clear}>{t('Clear filters')}</OnceButton>
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
