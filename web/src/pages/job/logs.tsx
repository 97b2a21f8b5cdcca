import { useQuery, useQueryClient } from '@tanstack/react-query'
import { useMemo } from 'react'
import { enc, type JobDetail } from '../../api/client'
import { pollMs, taskQuery, taskRowQuery } from '../../api/queries'
import { t } from '../../i18n/i18n'
import { readAgain, useWhenEnded } from '../../lib/changes'
import { isLive } from '../../lib/job-state'
import { TaskStates } from '../../lib/task-states'
import { useSearch } from '../../router'
import '../../style/log.css'
import { Log } from '../../ui/log'
import { Button, Empty, ErrorNote, Loading, Reason, SelectField, StateBadge, stateName } from '../../ui/ui'
import { LogSearch } from './log-search'

const BESIDE_MAX = 3 // a browser has six connections to a server, and each log that is followed takes one
const elsewhere = { attempt: null, at: null } // of another task
const STREAMS = ['all', 'stdout', 'stderr', 'runtime'] as const

/** The row of a task, which is read again and again while the job says that the task has not ended, and once more then. */
function useTaskRow(name: string, states: TaskStates, role: string, index: number) {
  const isTaskLive = isLive(states.stateOf({ role, index }))
  const queries = useQueryClient()
  useWhenEnded(isTaskLive, () => {
    for (const kind of ['tasks', 'task']) readAgain(queries, { queryKey: ['job', name, kind] })
  })
  return useQuery({ ...taskRowQuery(name, role, index), enabled: index < states.countOf(role), refetchInterval: isTaskLive ? pollMs : false })
}

/** Which task, which attempt of it, which stream; all of it in the address. */
export function Logs({ name, detail }: { name: string; detail: JobDetail }) {
  const [search, change] = useSearch()
  const states = useMemo(() => TaskStates.of(detail), [detail])
  const roles = states.roles.map(({ name: one }) => one)
  const role = search.get('role') ?? roles[0] ?? ''
  const count = states.countOf(role)
  const wanted = Number(search.get('index') ?? 0)
  const index = wanted < count ? wanted : 0
  const { data: task, error } = useTaskRow(name, states, role, index)
  const latest = detail.jobStatus?.attemptId ?? 0
  const jobAttempt = Number(search.get('run') ?? latest)
  const at = search.get('at')
  const { data: history } = useQuery({ ...taskQuery(name, jobAttempt, role, index), enabled: !!task && ((task.retries ?? 0) > 0 || jobAttempt !== latest) })
  const attempts = history?.attempts ?? []
  const attempt = Number(search.get('attempt') ?? task?.attemptId ?? 0)
  const stream = search.get('stream') ?? 'all'

  if (error) return <ErrorNote error={error} />
  if (!count || task === null) return <Empty title={t('The job has no task of this name')} />
  const shown = attempts.find((one) => one.attemptId === attempt) ?? task
  const hasLog = jobAttempt !== latest || attempt !== task?.attemptId || task.containerLog
  const beside = besideOf(search.get('beside')).filter((one) => detail.taskRoles?.[one.role])
  const here = `${role}.${index}`
  const url = `/api/v2/jobs/${enc(name)}/attempts/${jobAttempt}/taskRoles/${enc(role)}/taskIndex/${index}/attempts/${attempt}/logs/${stream}`
  const streamNames: Record<string, string> = { all: t('All output'), stdout: 'stdout', stderr: 'stderr', runtime: t('Set-up') }
  return (
    <div className="stack">
      <LogSearch name={name}>
        <div className="row row-foot">
          <SelectField label={t('Role')} value={role} onChange={(event) => change({ role: event.target.value, index: null, ...elsewhere })}>
            {roles.map((one) => (
              <option key={one}>{one}</option>
            ))}
          </SelectField>
          {count <= 500 ? (
            <SelectField label={t('Task')} value={index} onChange={(event) => change({ role, index: event.target.value, ...elsewhere })}>
              {Array.from({ length: count }, (_, one) => (
                <option key={one} value={one}>
                  {one} · {stateName(states.stateOf({ role, index: one }) ?? '')}
                </option>
              ))}
            </SelectField>
          ) : (
            <div className="field">
              <label htmlFor="task-number">{t('Task, 0 to {last}', { last: count - 1 })}</label>
              <input
                id="task-number"
                className="input"
                type="number"
                min={0}
                max={count - 1}
                value={index}
                onChange={(event) => change({ role, index: event.target.value, ...elsewhere })}
              />
            </div>
          )}
          {attempts.length > 1 && (
            <SelectField label={t('Attempt')} value={attempt} onChange={(event) => change({ role, index: String(index), attempt: event.target.value, at: null })}>
              {attempts.map((one) => (
                <option key={one.attemptId} value={one.attemptId}>
                  {one.attemptId} · {stateName(one.attemptState ?? '')}
                </option>
              ))}
            </SelectField>
          )}
          <SelectField label={t('Stream')} value={stream} onChange={(event) => change({ stream: event.target.value === 'all' ? null : event.target.value })}>
            {STREAMS.map((one) => (
              <option key={one} value={one}>
                {streamNames[one]}
              </option>
            ))}
          </SelectField>
          {jobAttempt !== latest && (
            <Button onClick={() => change({ run: null, ...elsewhere })}>{t('This is attempt {n} of the job: show the latest', { n: jobAttempt })}</Button>
          )}
          {count + beside.length > 1 && (
            <Button disabled={beside.length >= BESIDE_MAX || beside.some((one) => one.key === here)} title={t('At most {n} logs stand beside each other', { n: BESIDE_MAX + 1 })} onClick={() => change({ beside: [...beside.map((one) => one.key), here].join(',') })}>
              {t('Keep it beside')}
            </Button>
          )}
          <div className="push">
            <StateBadge state={shown?.attemptState} />
          </div>
        </div>
        <div className="logs" data-many={beside.length > 0 || undefined}>
          <Beside detail={detail} name={name} entries={beside} onClose={(key) => change({ beside: beside.flatMap((one) => (one.key === key ? [] : [one.key])).join(',') })} />
        {!task ? (
          <Loading />
        ) : hasLog ? (
          <section className="stack" aria-label={t('Log of {task}', { task: `${role}[${index}]` })}>
            {beside.length > 0 && <h2>{`${role}[${index}]`}</h2>}
            <Log key={`${url} ${at}`} url={url} at={at === null ? null : Number(at)} onEnd={() => change({ at: null })} onJump={(offset) => change({ at: String(offset) })} isLive={isLive(shown?.attemptState)} name={`${name}-${role}-${index}-${attempt}-${stream}.log`} />
          </section>
        ) : (
          <div className="card">
            <Empty title={t('There is no log yet')}>
              <p>{detail.jobStatus?.waitingReason ? <Reason text={detail.jobStatus.waitingReason} parts={detail.jobStatus.waitingReasonParts} /> : t('The log begins when the task has been started.')}</p>
            </Empty>
          </div>
        )}
        </div>
      </LogSearch>
    </div>
  )
}

interface BesideEntry {
  key: string // as the address names it: ROLE.INDEX
  role: string
  index: number
}

export function besideOf(text: string | null): BesideEntry[] {
  return (text ?? '').split(',').flatMap((key) => {
    const match = /^(.+)\.(\d+)$/.exec(key)
    return match ? [{ key, role: match[1]!, index: Number(match[2]) }] : []
  }).slice(0, BESIDE_MAX)
}

/** Logs of other tasks, each as it grows. */
function Beside({ detail, name, entries, onClose }: { detail: JobDetail; name: string; entries: BesideEntry[]; onClose: (key: string) => void }) {
  return entries.map(({ key, ...place }) => <BesideLog key={key} detail={detail} name={name} {...place} onClose={() => onClose(key)} />)
}

function BesideLog({ detail, name, role, index, onClose }: { detail: JobDetail; name: string; role: string; index: number; onClose: () => void }) {
  const states = useMemo(() => TaskStates.of(detail), [detail])
  const { data: task } = useTaskRow(name, states, role, index)
  if (!task) return null
  const url = `/api/v2/jobs/${enc(name)}/attempts/${detail.jobStatus?.attemptId ?? 0}/taskRoles/${enc(role)}/taskIndex/${index}/attempts/${task.attemptId}/logs/all`
  return (
    <section className="stack" aria-label={t('Log of {task}', { task: `${role}[${index}]` })}>
      <div className="row">
        <h2>{`${role}[${index}]`}</h2>
        <StateBadge state={task.taskState} />
        <span className="push" />
        <Button small aria-label={t('Close the log of {task}', { task: `${role}[${index}]` })} onClick={onClose}>
          ✕
        </Button>
      </div>
      {task.containerLog ? <Log key={url} url={url} isLive={isLive(task.taskState)} name={`${name}-${role}-${index}.log`} /> : <Empty title={t('There is no log yet')} />}
    </section>
  )
}
