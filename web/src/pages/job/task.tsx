// One task of an attempt of the job: where it is, its addresses to be copied, and how each of its own attempts ended.
import { useQuery } from '@tanstack/react-query'
import type { ReactNode } from 'react'
import type { Task, TaskAttempt } from '../../api/client'
import { pollMs, taskQuery } from '../../api/queries'
import { t } from '../../i18n/i18n'
import { isLive } from '../../lib/job-state'
import { portName } from '../../lib/port-names'
import { addressOf, logHref, portsOf } from '../../lib/task-facts'
import type { TaskPlace } from '../../lib/task-states'
import { Ago, Button, Copy, Dialog, Duration, ErrorNote, Fact, LinkButton, Loading, Said, StateBadge } from '../../ui/ui'
import { Advice, ExitType, Rule } from './exit'

interface Props {
  name: string
  place: TaskPlace
  jobAttempt: number
  isLatest: boolean // of the job's attempts
  mayReadLogs: boolean
  onClose: () => void
}

export default function TaskDialog({ name, place, jobAttempt, isLatest, mayReadLogs, onClose }: Props) {
  const { role, index } = place
  const { data: task, error } = useQuery({ ...taskQuery(name, jobAttempt, role, index), refetchInterval: (query) => (isLive(query.state.data?.taskState) ? pollMs() : false) })
  const attempts = task?.attempts ?? []
  return (
    <Dialog wide title={t('Task {task}', { task: `${role}[${index}]` })} onClose={onClose}>
      {error && <ErrorNote error={error} />}
      {!task && !error && <Loading />}
      {task && (
        <div className="stack">
          {!isLatest && <p className="quiet">{t('In attempt {n} of the job', { n: jobAttempt })}</p>}
          <Story task={task} />
          {attempts.map((attempt, at) => (
            <Attempt key={attempt.attemptId} attempt={attempt} isFirst={at === 0}>
              {mayReadLogs && attempt.containerLog && (
                <LinkButton small href={logHref(place, attempt.attemptId, isLatest ? null : jobAttempt)}>
                  {t('Log')}
                  <span className="hidden-text"> {t('of attempt {n}', { n: attempt.attemptId ?? 0 })}</span>
                </LinkButton>
              )}
            </Attempt>
          ))}
        </div>
      )}
      {(task || error) && (
        <div className="dialog-foot">
          <Button onClick={onClose}>{t('Close')}</Button>
        </div>
      )}
    </Dialog>
  )
}

function Story({ task }: { task: Task }) {
  return (
    <dl className="facts">
      <Fact title={t('State')}>
        <StateBadge state={task.taskState} />
      </Fact>
      <Fact title={t('Retries')}>{task.retries}</Fact>
      <Fact title={t('Begun')}>
        <Ago ms={task.createdTime} />
      </Fact>
      <Fact title={t('Started')}>
        <Ago ms={task.launchedTime} />
      </Fact>
      <Fact title={t('Ended')}>
        <Ago ms={task.completedTime} />
      </Fact>
    </dl>
  )
}

/** A text that one needs elsewhere. */
function Copied({ text, label }: { text: string; label: string }) {
  return (
    <span className="row row-line">
      <code className="anywhere">{text}</code>
      <Copy text={text} label={t('Copy: {what}', { what: label })} />
    </span>
  )
}

function Attempt({ attempt, isFirst, children }: { attempt: TaskAttempt; isFirst: boolean; children: ReactNode }) {
  const title = t('Attempt {n} of the task', { n: attempt.attemptId ?? 0 })
  const ports = portsOf(attempt.containerPorts)
  const ip = attempt.containerIp ?? ''
  const exit = attempt.containerExitCode
  return (
    <section className="task-attempt stack" aria-label={title}>
      <div className="row">
        <h3>{title}</h3>
        <StateBadge state={attempt.attemptState} />
        {isFirst && <span className="tag">{t('latest')}</span>}
        <div className="push">{children}</div>
      </div>
      <dl className="facts">
        <Fact title={t('Node')}>{attempt.containerNodeName ?? '–'}</Fact>
        <Fact title={t('GPUs')}>{attempt.containerGpus || '–'}</Fact>
        <Fact title={t('Started')}>
          <Ago ms={attempt.currentAttemptLaunchedTime} />
        </Fact>
        <Fact title={t('Ran')}>
          <Duration from={attempt.currentAttemptLaunchedTime} to={attempt.currentAttemptCompletedTime} />
        </Fact>
        {exit !== null && exit !== undefined && (
          <Fact title={t('Exit')}>
            {attempt.containerOriginalExitCode ?? exit} <Said>{attempt.containerExitSpec?.phrase}</Said>
            <ExitType type={attempt.containerExitSpec?.type} />
          </Fact>
        )}
        {ip && (
          <Fact title={t('Address')}>
            <Copied text={ip} label={t('Address')} />
          </Fact>
        )}
        {attempt.containerId && (
          <Fact title={t('Container')}>
            <Copied text={attempt.containerId} label={t('Container')} />
          </Fact>
        )}
        {ports.map(({ label, number }) => (
          <Fact key={number} title={t('Port {label}', { label: portName(label) })}>
            <Copied text={ip ? addressOf(ip, number) : number} label={t('Port {label}', { label: portName(label) })} />
          </Fact>
        ))}
      </dl>
      {attempt.attemptState === 'FAILED' && <Advice spec={attempt.containerExitSpec} />}
      <Rule attempt={attempt} />
      {attempt.containerExitDiagnostics && (
        <details>
          <summary>{t('Diagnostics')}</summary>
          <pre className="code">{attempt.containerExitDiagnostics}</pre>
        </details>
      )}
      {attempt.containerLogTail && (
        <details>
          <summary>{t('Last lines')}</summary>
          <pre className="code">{attempt.containerLogTail}</pre>
        </details>
      )}
    </section>
  )
}
