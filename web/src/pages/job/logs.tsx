import { useQuery } from '@tanstack/react-query'
import { enc, type JobDetail } from '../../api/client'
import { taskQuery } from '../../api/queries'
import { t } from '../../i18n/i18n'
import { useSearch } from '../../router'
import '../../style/log.css'
import { Log } from '../../ui/log'
import { Empty, SelectField, StateBadge, stateName } from '../../ui/ui'
import { isLive } from '../jobs'

const STREAMS = ['all', 'stdout', 'stderr', 'runtime'] as const

/** Which task, which attempt of it, which stream; all of it in the address. */
export function Logs({ name, detail }: { name: string; detail: JobDetail }) {
  const [search, change] = useSearch()
  const roles = Object.keys(detail.taskRoles ?? {})
  const role = search.get('role') ?? roles[0] ?? ''
  const tasks = detail.taskRoles?.[role]?.taskStatuses ?? []
  const index = Number(search.get('index') ?? 0)
  const task = tasks.find((one) => one.taskIndex === index) ?? tasks[0]
  const jobAttempt = detail.jobStatus?.attemptId ?? 0
  const { data: history } = useQuery({ ...taskQuery(name, jobAttempt, role, task?.taskIndex ?? 0), enabled: !!task && (task.retries ?? 0) > 0 })
  const attempts = history?.attempts ?? []
  const attempt = Number(search.get('attempt') ?? task?.attemptId ?? 0)
  const stream = search.get('stream') ?? 'all'

  if (!task) return <Empty title={t('The job has no task of this name')} />
  const shown = attempts.find((one) => one.attemptId === attempt) ?? task
  const hasLog = attempt !== task.attemptId || task.containerLog
  const url = `/api/v2/jobs/${enc(name)}/attempts/${jobAttempt}/taskRoles/${enc(role)}/taskIndex/${task.taskIndex}/attempts/${attempt}/logs/${stream}`
  const streamNames: Record<string, string> = { all: t('All output'), stdout: 'stdout', stderr: 'stderr', runtime: t('Set-up') }
  return (
    <div className="stack">
      <div className="row">
        <SelectField label={t('Role')} value={role} onChange={(event) => change({ role: event.target.value, index: null, attempt: null })}>
          {roles.map((one) => (
            <option key={one}>{one}</option>
          ))}
        </SelectField>
        {tasks.length <= 500 ? (
          <SelectField label={t('Task')} value={task.taskIndex} onChange={(event) => change({ role, index: event.target.value, attempt: null })}>
            {tasks.map((one) => (
              <option key={one.taskIndex} value={one.taskIndex}>
                {one.taskIndex} · {stateName(one.taskState ?? '')}
              </option>
            ))}
          </SelectField>
        ) : (
          <div className="field">
            <label htmlFor="task-number">{t('Task, 0 to {last}', { last: tasks.length - 1 })}</label>
            <input
              id="task-number"
              className="input"
              type="number"
              min={0}
              max={tasks.length - 1}
              value={task.taskIndex}
              onChange={(event) => change({ role, index: event.target.value, attempt: null })}
            />
          </div>
        )}
        {attempts.length > 1 && (
          <SelectField label={t('Attempt')} value={attempt} onChange={(event) => change({ role, index: String(index), attempt: event.target.value })}>
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
        <div className="push">
          <StateBadge state={shown.attemptState} />
        </div>
      </div>
      {hasLog ? (
        <Log key={url} url={url} isLive={isLive(shown.attemptState)} name={`${name}-${role}-${task.taskIndex}-${attempt}-${stream}.log`} />
      ) : (
        <div className="card">
          <Empty title={t('There is no log yet')}>
            <p>{detail.jobStatus?.waitingReason ?? t('The log begins when the task has been started.')}</p>
          </Empty>
        </div>
      )}
    </div>
  )
}
