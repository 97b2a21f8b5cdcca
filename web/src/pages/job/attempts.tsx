import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import type { Task } from '../../api/client'
import { attemptQuery, attemptsQuery, taskPageQuery } from '../../api/queries'
import { t } from '../../i18n/i18n'
import { keyOfPlace, logHref } from '../../lib/task-facts'
import { taskFilterQuery } from '../../lib/task-filter'
import { Link, useSearch } from '../../router'
import { useSettled } from '../../ui/settled'
import { Ago, Duration, Empty, ErrorNote, Fact, Loading, Said, SelectField, StateBadge, TableCard, TextField } from '../../ui/ui'
import { Advice, ExitType } from './exit'

/** Every attempt of the job, the newest first, with how it ended. */
export function Attempts({ name, roles, mayReadLogs }: { name: string; roles: string[]; mayReadLogs: boolean }) {
  const { data, error } = useQuery(attemptsQuery(name))
  if (!data) return error ? <ErrorNote error={error} /> : <Loading />
  return (
    <div className="stack">
      {error && <ErrorNote error={error} />}
      {data.map((attempt) => (
        <section key={attempt.attemptIndex} className="card" aria-label={t('Attempt {n}', { n: attempt.attemptIndex ?? 0 })}>
          <div className="card-head">
            <h2>{t('Attempt {n}', { n: attempt.attemptIndex ?? 0 })}</h2>
            <StateBadge state={attempt.state} />
            {attempt.isLatest && <span className="tag">{t('latest')}</span>}
          </div>
          <dl className="facts">
            <Fact title={t('Begun')}>
              <Ago ms={attempt.attemptStartedTime} />
            </Fact>
            <Fact title={t('Waited')}>
              <Duration from={attempt.attemptStartedTime} to={attempt.attemptLaunchedTime ?? attempt.attemptCompletedTime} />
            </Fact>
            <Fact title={t('Started')}>
              <Ago ms={attempt.attemptLaunchedTime} />
            </Fact>
            <Fact title={t('Ended')}>
              <Ago ms={attempt.attemptCompletedTime} />
            </Fact>
            <Fact title={t('Ran')}>
              <Duration from={attempt.attemptLaunchedTime} to={attempt.attemptCompletedTime} />
            </Fact>
            {attempt.exitCode !== null && attempt.exitCode !== undefined && (
              <Fact title={t('Exit')}>
                {attempt.originalExitCode ?? attempt.exitCode} <Said>{attempt.exitPhrase}</Said>
                <ExitType type={attempt.exitType} />
              </Fact>
            )}
          </dl>
          {attempt.state === 'FAILED' && <Advice spec={attempt.appExitSpec} />}
          {attempt.state === 'FAILED' && <Trigger name={name} attempt={attempt.attemptIndex ?? 0} />}
          {attempt.exitDiagnostics && (
            <details>
              <summary>{t('Diagnostics')}</summary>
              <pre className="code">{attempt.exitDiagnostics}</pre>
            </details>
          )}
          <Tasks name={name} roles={roles} attempt={attempt.attemptIndex ?? 0} isLatest={!!attempt.isLatest} mayReadLogs={mayReadLogs} />
        </section>
      ))}
    </div>
  )
}

/** Which task ended it, and by what. */
function Trigger({ name, attempt }: { name: string; attempt: number }) {
  const { data } = useQuery(attemptQuery(name, attempt))
  const status = data?.jobStatus
  const role = status?.appExitTriggerTaskRoleName
  const index = status?.appExitTriggerTaskIndex ?? -1
  if (!role || index < 0) return null
  return (
    <p className="small anywhere">
      {t('Ended by')} <TaskLink role={role} index={index} attempt={attempt} />
      {status?.appExitTriggerMessage && (
        <span className="quiet" lang="en">
          {' '}
          {status.appExitTriggerMessage}
        </span>
      )}
    </p>
  )
}

function TaskLink({ role, index, attempt }: { role: string; index: number; attempt: number }) {
  return <Link href={`${location.pathname}?tab=attempts&task=${encodeURIComponent(keyOfPlace({ role, index }))}&run=${attempt}`}>{`${role}[${index}]`}</Link>
}

const SHOWN_MAX = 100 // tasks at once

interface TasksProps {
  name: string
  roles: string[]
  attempt: number
  isLatest: boolean
  mayReadLogs: boolean
}

/** What became of its tasks; read when one opens it. */
function Tasks(props: TasksProps) {
  const [search] = useSearch()
  const [isOpen, setOpen] = useState(search.get('run') === String(props.attempt))
  return (
    <details open={isOpen} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>{t('Tasks of attempt {n}', { n: props.attempt })}</summary>
      {isOpen && <TaskRows {...props} />}
    </details>
  )
}

/** A stretch of them: of more than one table holds, one chooses the role and gives the number from which on. */
function TaskRows({ name, roles, attempt, isLatest, mayReadLogs }: TasksProps) {
  const [role, setRole] = useState(roles.length === 1 ? roles[0]! : '')
  const [from, setFrom] = useState('')
  const settled = useSettled(from)
  const { data: all, error: failure } = useQuery(taskPageQuery(name, taskFilterQuery({ attempt }), 0, SHOWN_MAX))
  const isLarge = (all?.totalCount ?? 0) > SHOWN_MAX
  const filter = taskFilterQuery({ attempt, role })
  const { data: some, error } = useQuery({
    ...taskPageQuery(name, filter, Number(settled), SHOWN_MAX),
    enabled: isLarge && role !== '',
    placeholderData: (before, query) => (query?.queryKey[3] === filter ? before : undefined), // those of another role are not these
  })
  if (failure) return <ErrorNote error={failure} />
  if (!all) return <Loading />
  if (!all.data.length) return <Empty title={t('No task of this attempt was made')} />
  const shown = isLarge && role ? some : all
  const last = (some?.totalCount ?? 1) - 1
  return (
    <div className="stack">
      {isLarge && (
        <div className="row row-foot">
          {roles.length > 1 && (
            <SelectField
              label={t('Role')}
              value={role}
              onChange={(event) => {
                setRole(event.target.value)
                setFrom('')
              }}
            >
              <option value="">{t('All of them')}</option>
              {roles.map((one) => (
                <option key={one}>{one}</option>
              ))}
            </SelectField>
          )}
          {role && some && (
            <TextField
              label={t('From task, 0 to {last}', { last })}
              type="number"
              min={0}
              max={last}
              placeholder="0"
              value={from}
              onChange={({ target }) => {
                if (target.validity.valid) setFrom(target.value)
              }}
            />
          )}
        </div>
      )}
      {error && <ErrorNote error={error} />}
      {shown ? <TaskTable tasks={shown.data} isCut={isLarge && !role} attempt={attempt} isLatest={isLatest} mayReadLogs={mayReadLogs} /> : !error && <Loading />}
    </div>
  )
}

function TaskTable({ tasks, isCut, attempt, isLatest, mayReadLogs }: { tasks: Task[]; isCut: boolean } & Pick<TasksProps, 'attempt' | 'isLatest' | 'mayReadLogs'>) {
  return (
    <TableCard
      label={t('Tasks of attempt {n}', { n: attempt })}
      heads={[t('Task'), t('State'), t('Node'), t('Ran'), { number: t('Retries') }, t('Exit'), ...(mayReadLogs ? [t('Log')] : [])]}
      foot={isCut && <p className="small quiet foot-note">{t('The first {n} are shown. Choose a role for the others.', { n: SHOWN_MAX })}</p>}
    >
      {tasks.map((task) => {
        const { taskRoleName: role = '', taskIndex: index = 0, containerExitCode: exit } = task
        return (
          <tr key={`${role} ${index}`}>
            <th scope="row">
              <TaskLink role={role} index={index} attempt={attempt} />
            </th>
            <td>
              <StateBadge state={task.taskState} />
            </td>
            <td>{task.containerNodeName ?? '–'}</td>
            <td>
              <Duration from={task.launchedTime} to={task.completedTime} />
            </td>
            <td className="number">{task.retries}</td>
            <td>
              {exit === null || exit === undefined ? '–' : (task.containerOriginalExitCode ?? exit)} <Said>{task.containerExitSpec?.phrase}</Said>
            </td>
            {mayReadLogs && (
              <td>
                {task.containerLog && (
                  <Link href={logHref({ role, index }, task.attemptId, isLatest ? null : attempt)}>
                    {t('Log')}
                    <span className="hidden-text"> {`${role}[${index}]`}</span>
                  </Link>
                )}
              </td>
            )}
          </tr>
        )
      })}
    </TableCard>
  )
}
