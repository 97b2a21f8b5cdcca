import { useQuery } from '@tanstack/react-query'
import { attemptsQuery } from '../../api/queries'
import { t } from '../../i18n/i18n'
import { Ago, Duration, ErrorNote, Loading, Said, StateBadge } from '../../ui/ui'
import { Advice } from './exit'

/** Every attempt of the job, the newest first, with how it ended. */
export function Attempts({ name }: { name: string }) {
  const { data, error } = useQuery(attemptsQuery(name))
  if (error) return <ErrorNote error={error} />
  if (!data) return <Loading />
  return (
    <div className="stack">
      {data.map((attempt) => (
        <section key={attempt.attemptIndex} className="card" aria-label={t('Attempt {n}', { n: attempt.attemptIndex ?? 0 })}>
          <div className="card-head">
            <h2>{t('Attempt {n}', { n: attempt.attemptIndex ?? 0 })}</h2>
            <StateBadge state={attempt.state} />
            {attempt.isLatest && <span className="tag">{t('latest')}</span>}
          </div>
          <dl className="facts">
            <div>
              <dt>{t('Begun')}</dt>
              <dd>
                <Ago ms={attempt.attemptStartedTime} />
              </dd>
            </div>
            <div>
              <dt>{t('Waited')}</dt>
              <dd>
                <Duration from={attempt.attemptStartedTime} to={attempt.attemptLaunchedTime ?? attempt.attemptCompletedTime} />
              </dd>
            </div>
            <div>
              <dt>{t('Ran')}</dt>
              <dd>
                <Duration from={attempt.attemptLaunchedTime} to={attempt.attemptCompletedTime} />
              </dd>
            </div>
            {attempt.exitCode !== null && attempt.exitCode !== undefined && (
              <div>
                <dt>{t('Exit')}</dt>
                <dd>
                  {attempt.originalExitCode ?? attempt.exitCode} <Said>{attempt.exitPhrase}</Said>
                </dd>
              </div>
            )}
          </dl>
          {attempt.state === 'FAILED' && <Advice spec={attempt.appExitSpec} />}
          {attempt.exitDiagnostics && (
            <details>
              <summary>{t('Diagnostics')}</summary>
              <pre className="code">{attempt.exitDiagnostics}</pre>
            </details>
          )}
        </section>
      ))}
    </div>
  )
}
