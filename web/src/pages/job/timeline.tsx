// Attempts of a job on one axis of time: how long each waited, how long it ran, how it ended.
import { useQuery } from '@tanstack/react-query'
import type { JobDetail } from '../../api/client'
import { attemptsQuery } from '../../api/queries'
import { languageGet, t } from '../../i18n/i18n'
import { clock, duration } from '../../lib/format'
import { Awaited, useAwaited } from '../../ui/in-order'
import { stateName, useNow } from '../../ui/ui'

const ROWS_MAX = 60

export function Timeline({ name, detail }: { name: string; detail: JobDetail }) {
  const now = useNow()
  const { data: attempts, isLoading } = useQuery(attemptsQuery(name))
  const isAwaited = useAwaited(!isLoading)
  const status = detail.jobStatus!
  if (!attempts?.length) return isAwaited ? <Awaited /> : null
  const begin = status.submissionTime ?? attempts.at(-1)?.attemptStartedTime ?? now
  const end = Math.max(status.completedTime ?? now, begin + 1)
  const share = (ms: number) => `${(100 * (Math.min(Math.max(ms, begin), end) - begin)) / (end - begin)}%`
  const width = (from: number, to: number) => `max(3px, ${(100 * (Math.min(to, end) - Math.max(from, begin))) / (end - begin)}%)`
  return (
    <section className="card" aria-label={t('Time line')}>
      <h2>{t('Time line')}</h2>
      <ul className="timeline">
        {attempts
          .slice(0, ROWS_MAX)
          .reverse()
          .map((attempt) => {
            const started = attempt.attemptStartedTime ?? begin
            const launched = attempt.attemptLaunchedTime
            const completed = attempt.attemptCompletedTime ?? end
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
                  <span className="timeline-bar" data-phase="wait" style={{ left: share(started), width: width(started, launched ?? completed) }} />
                  {launched && <span className="timeline-bar" data-state={attempt.state} style={{ left: share(launched), width: width(launched, completed) }} />}
                </span>
                <span className="small quiet timeline-text">{text.slice(text.indexOf(', ') + 2)}</span>
              </li>
            )
          })}
      </ul>
      {attempts.length > ROWS_MAX && <p className="small quiet">{t('The latest {n} attempts are shown.', { n: ROWS_MAX })}</p>}
      <div className="row small quiet">
        <span>{clock(begin, languageGet())}</span>
        <span className="push">{status.completedTime ? clock(end, languageGet()) : t('now')}</span>
      </div>
    </section>
  )
}
