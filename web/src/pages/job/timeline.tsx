// Attempts of a job on one axis of time: how long each waited, how long it ran, how it ended. And the tasks of the latest one.
import { useQueries, useQuery } from '@tanstack/react-query'
import { useVirtualizer } from '@tanstack/react-virtual'
import { useEffect, useMemo, useRef, useState } from 'react'
import type { JobAttempt, JobDetail, Task } from '../../api/client'
import { attemptsQuery, pollMs, tasksQuery } from '../../api/queries'
import { languageGet, t } from '../../i18n/i18n'
import { clock, duration } from '../../lib/format'
import { isLive } from '../../lib/job-state'
import { keyOfPlace } from '../../lib/task-facts'
import { taskFilterQuery } from '../../lib/task-filter'
import { stretchesOf, TaskStates } from '../../lib/task-states'
import { axisOf, barOf, ranOf, type Axis } from '../../lib/time-line'
import { Link } from '../../router'
import { Awaited, useAwaited } from '../../ui/in-order'
import { ErrorNote, stateName, useNow } from '../../ui/ui'

const ROWS_MAX = 60

export function Timeline({ name, detail }: { name: string; detail: JobDetail }) {
  const now = useNow()
  const { data: attempts, isLoading } = useQuery(attemptsQuery(name))
  const isAwaited = useAwaited(!isLoading)
  const status = detail.jobStatus!
  if (!attempts?.length) return isAwaited ? <Awaited /> : null
  const axis = axisOf(status.submissionTime ?? attempts.at(-1)?.attemptStartedTime ?? now, status.completedTime ?? now)
  const latest = attempts.find(({ isLatest }) => isLatest)
  return (
    <section className="card" aria-label={t('Time line')}>
      <h2>{t('Time line')}</h2>
      <ul className="timeline">
        {attempts
          .slice(0, ROWS_MAX)
          .reverse()
          .map((attempt) => {
            const started = attempt.attemptStartedTime ?? axis.begin
            const launched = attempt.attemptLaunchedTime
            const completed = attempt.attemptCompletedTime ?? axis.end
            const waited = (launched ?? completed) - started
            const ran = launched ? completed - launched : 0
            const text = [
              t('Attempt {n}', { n: attempt.attemptIndex ?? 0 }),
              stateName(attempt.state ?? ''),
              t('waited {time}', { time: duration(waited) }),
              ...(launched ? [t('ran {time}', { time: duration(ran) })] : []),
              ...(attempt.exitCode !== null && attempt.exitCode !== undefined ? [t('exit code {code}', { code: String(attempt.originalExitCode ?? attempt.exitCode) })] : []),
            ].join(', ')
            return (
              <li key={attempt.attemptIndex} title={text}>
                <span className="timeline-name small">{t('Attempt {n}', { n: attempt.attemptIndex ?? 0 })}</span>
                <span className="timeline-track" aria-hidden="true">
                  <span className="timeline-bar" data-phase="wait" style={barOf(axis, started, launched ?? completed)} />
                  {launched && <span className="timeline-bar" data-state={attempt.state} style={barOf(axis, launched, completed)} />}
                </span>
                <span className="small quiet timeline-text">{text.slice(text.indexOf(', ') + 2)}</span>
              </li>
            )
          })}
      </ul>
      {attempts.length > ROWS_MAX && <p className="small quiet">{t('The latest {n} attempts are shown.', { n: ROWS_MAX })}</p>}
      <Ends axis={axis} isOver={!!status.completedTime} />
      {latest && <Tasks name={name} detail={detail} attempt={latest} now={now} />}
    </section>
  )
}

function Ends({ axis, isOver }: { axis: Axis; isOver: boolean }) {
  return (
    <div className="row small quiet">
      <span>{clock(axis.begin, languageGet())}</span>
      <span className="push">{isOver ? clock(axis.end, languageGet()) : t('now')}</span>
    </div>
  )
}

// ---- tasks ----

interface TasksProps {
  name: string
  detail: JobDetail
  attempt: JobAttempt
  now: number
}

/** Read when one opens it. */
function Tasks(props: TasksProps) {
  const [isOpen, setOpen] = useState(false)
  return (
    <details open={isOpen} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>{t('Tasks of attempt {n}', { n: props.attempt.attemptIndex ?? 0 })}</summary>
      {isOpen && <TaskBars {...props} />}
    </details>
  )
}

const ROW_PX = 24
const PAGE = 100 // tasks that are read at once, as the table of the tasks reads them

/** Of many thousands of tasks those in sight are read and drawn. */
function TaskBars({ name, detail, attempt, now }: TasksProps) {
  const states = useMemo(() => TaskStates.of(detail), [detail])
  const box = useRef<HTMLDivElement>(null)
  const virtual = useVirtualizer({ count: states.count, getScrollElement: () => box.current, estimateSize: () => ROW_PX, overscan: 8 })
  const items = virtual.getVirtualItems()
  const first = items[0]?.index ?? 0
  const last = items.at(-1)?.index ?? 0
  const [range, setRange] = useState({ first, last })
  useEffect(() => {
    const timer = setTimeout(() => setRange({ first, last }), 60) // a fast scroll asks for nothing on its way
    return () => clearTimeout(timer)
  }, [first, last])
  const { tasks, error } = useTasks(name, states, isLive(detail.jobStatus?.state), range.first, range.last)
  const axis = axisOf(attempt.attemptStartedTime ?? now, attempt.attemptCompletedTime ?? now)
  const counts = [...states.counts()].map(([state, count]) => `${count.toLocaleString(languageGet())} ${stateName(state)}`)
  return (
    <div className="stack-tight">
      {error && <ErrorNote error={error} />}
      <p className="small quiet">{t('{n} task|{n} tasks', { n: states.count })}: {counts.join(', ')}</p>
      <div className="timeline-tasks" ref={box} tabIndex={0} role="region" aria-label={t('Time line of the tasks')}>
        <ul className="timeline timeline-lines" style={{ height: virtual.getTotalSize() }}>
          {items.map(({ index, start }) => {
            const place = states.place(index)!
            const key = `${place.role}[${place.index}]`
            const task = tasks.get(key)
            const state = states.stateOf(place) ?? ''
            const ran = task && ranOf(task, now)
            const text = !task ? '…' : [stateName(state), ...(ran ? [t('ran {time}', { time: duration(ran[1] - ran[0]) })] : [])].join(', ')
            return (
              <li key={key} aria-posinset={index + 1} aria-setsize={states.count} title={`${key}, ${text}`} style={{ transform: `translateY(${start}px)` }}>
                <Link className="timeline-name small" href={`${location.pathname}?task=${encodeURIComponent(keyOfPlace(place))}`}>
                  {key}
                </Link>
                <span className="timeline-track" aria-hidden="true">
                  {ran && <span className="timeline-bar" data-state={state} style={barOf(axis, ...ran)} />}
                </span>
                <span className="small quiet timeline-text">{text}</span>
              </li>
            )
          })}
        </ul>
      </div>
      <Ends axis={axis} isOver={!!attempt.attemptCompletedTime} />
    </div>
  )
}

/** The tasks of the pages in which the first to the last number are. */
function useTasks(name: string, states: TaskStates, isJobLive: boolean, first: number, last: number) {
  const from = Math.floor(first / PAGE) * PAGE
  const to = Math.min(states.count, (Math.floor(last / PAGE) + 1) * PAGE)
  const pages = []
  for (let page = from; page < to; page += PAGE) pages.push(Array.from({ length: Math.min(PAGE, to - page) }, (_, i) => page + i))
  const results = useQueries({
    queries: pages
      .flatMap((page) => stretchesOf(states, page))
      .map(({ role, from, count }) => ({
        ...tasksQuery(name, taskFilterQuery({ role, from, limit: count })),
        refetchInterval: isJobLive ? pollMs : (false as const),
      })),
  })
  const tasks = new Map<string, Task>()
  for (const { data } of results) for (const task of data ?? []) tasks.set(`${task.taskRoleName}[${task.taskIndex}]`, task)
  return { tasks, error: results.find((result) => result.error)?.error ?? null }
}
