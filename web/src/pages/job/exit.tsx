// How something ended: what the code means, what to do, the rule that knew it and the last lines.
import { useQuery } from '@tanstack/react-query'
import type { ExitSpec, JobDetail, TaskAttempt } from '../../api/client'
import { taskQuery } from '../../api/queries'
import { t } from '../../i18n/i18n'
import { plainOf } from '../../lib/ansi'
import { useAwaited } from '../../ui/in-order'
import { ExitText, LinkButton, Said } from '../../ui/ui'

/** Behind the exit: whose doing it was, in the words of the exit table. */
export function ExitType({ type }: { type: string | null | undefined }) {
  return type ? (
    <span className="quiet" lang="en">
      {' '}
      · {type}
    </span>
  ) : null
}

export function Advice({ spec }: { spec: ExitSpec | null | undefined }) {
  if (!spec) return null
  return (
    <>
      {spec.reason && (
        <p>
          <ExitText text={spec.reason} />
        </p>
      )}
      {!!spec.solution?.length && (
        <ul className="bullets">
          {spec.solution.map((line) => (
            <li key={line}>
              <ExitText text={line} />
            </li>
          ))}
        </ul>
      )}
    </>
  )
}

export function Rule({ attempt }: { attempt: TaskAttempt | undefined }) {
  const rule = attempt?.matchedRule
  if (!rule) return null
  return (
    <div className="small">
      <span className="quiet">{t('Recognised by the rule {name} ({file}, line {line})', { name: rule.name ?? '', file: rule.file === 'built-in' ? t('built-in rules') : (rule.file ?? ''), line: rule.line ?? 0 })}</span>
      {rule.text && <pre className="code">{plainOf(rule.text)}</pre>}
    </div>
  )
}

/** Why the job failed, from its trigger down to the last lines of the task. */
export function Failure({ name, detail, logHref }: { name: string; detail: JobDetail; logHref: (role: string, index: number) => string }) {
  const status = detail.jobStatus!
  const role = status.appExitTriggerTaskRoleName ?? ''
  const index = status.appExitTriggerTaskIndex ?? -1
  const hasTrigger = !!role && index >= 0
  const { data: task, isLoading } = useQuery({ ...taskQuery(name, status.attemptId ?? 0, role, index), enabled: hasTrigger })
  const isAwaited = useAwaited(!isLoading)
  const attempt = task?.attempts?.[0]
  const spec = status.appExitSpec
  return (
    <section className="note stack" data-kind="error" aria-label={t('Why it failed')} data-awaited={isAwaited}>
      <div>
        <strong>{spec?.phrase ? <Said>{spec.phrase}</Said> : t('Failed')}</strong> · {t('exit code {code}', { code: String(status.appOriginalExitCode ?? status.appExitCode ?? '?') })}
        <ExitType type={status.appExitType} />
      </div>
      <Advice spec={spec} />
      {status.appExitTriggerMessage && <p className="quiet small anywhere" lang="en">
          {status.appExitTriggerMessage}
        </p>}
      <Rule attempt={attempt} />
      {attempt?.containerLogTail && (
        <details open={!attempt.matchedRule}>
          <summary>{t('Last lines of {task}', { task: `${role}[${index}]` })}</summary>
          <pre className="code">{attempt.containerLogTail}</pre>
        </details>
      )}
      {hasTrigger && (
        <div>
          <LinkButton small href={logHref(role, index)}>
            {t('Log of {task}', { task: `${role}[${index}]` })}
          </LinkButton>
        </div>
      )}
    </section>
  )
}
