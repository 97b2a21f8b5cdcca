import { useQuery } from '@tanstack/react-query'
import { memo, useDeferredValue } from 'react'
import { enc, type JobDetail, type StoryEvent } from '../../api/client'
import { storyQuery, useOverTimeQuery } from '../../api/queries'
import { t } from '../../i18n/i18n'
import { shellWord } from '../../lib/filter'
import type { TaskPlace } from '../../lib/task-states'
import { Link, navigate } from '../../router'
import { Ago, Copy, Duration, Empty, Fact, Loading, Reason, Said, usePageTitle } from '../../ui/ui'
import { Advice, Failure } from './exit'
import { Tasks } from './tasks'
import { Timeline } from './timeline'
import '../../style/job.css'

/** What of its GPUs is busy now: an allocated GPU may idle. */
function BusyFact({ name }: { name: string }) {
  const { data, isLoading } = useQuery(useOverTimeQuery(`/api/v2/jobs/${enc(name)}/use`, 'recent', true))
  if (isLoading) return <Fact title={t('Busy now')}>…</Fact> // its place: the others do not move
  const busy = data?.use.gpu?.points.findLast((point) => point !== null)
  if (!data?.given.gpu || busy === undefined || busy === null) return null
  return <Fact title={t('Busy now')}>{t('{busy} of {held}', { busy: busy.toLocaleString(undefined, { maximumFractionDigits: 1 }), held: data.given.gpu })}</Fact>
}

const EVENTS_FIRST = 30 // of the story; more than its box shows

function Facts({ detail }: { detail: JobDetail }) {
  const status = detail.jobStatus!
  const fact = (title: string, value: React.ReactNode) => <Fact title={title}>{value}</Fact>
  const retries = status.retryDetails
  return (
    <dl className="facts">
      {fact(t('Virtual cluster'), <Link href={`/cluster?vc=${encodeURIComponent(status.virtualCluster ?? '')}`}>{status.virtualCluster}</Link>)}
      {fact(t('Priority'), detail.jobPriority ?? t('default'))}
      {fact(t('GPUs'), status.totalGpuNumber)}
      {status.state === 'RUNNING' && !!status.totalGpuNumber && <BusyFact name={`${status.username}~${status.name}`} />}
      {fact(t('Tasks'), status.totalTaskNumber)}
      {fact(t('Submitted'), <Ago ms={status.submissionTime} />)}
      {fact(t('Waited'), <Duration from={status.submissionTime} to={status.launchedTime ?? status.completedTime} />)}
      {fact(t('Ran'), <Duration from={status.launchedTime} to={status.completedTime} />)}
      {fact(t('Attempt'), status.attemptId)}
      {fact(
        t('Retries'),
        retries && (status.retries ?? 0) > 0
          ? t('{user} by the user, {platform} by the platform, {resource} for resources', { user: retries.user ?? 0, platform: retries.platform ?? 0, resource: retries.resource ?? 0 })
          : status.retries,
      )}
      {detail.debugId &&
        fact(
          t('Debug ID'),
          <span className="row row-line" title={t('Who looks after the platform finds the job by it')}>
            <code className="small">{detail.debugId}</code>
            <Copy text={detail.debugId} label={t('Copy: {what}', { what: t('Debug ID') })} />
          </span>,
        )}
    </dl>
  )
}

/** The first ones at once; the others, which are hundreds for a large job, when the browser has nothing better to do. */
function Events({ events }: { events: StoryEvent[] }) {
  const shown = useDeferredValue(events, events.slice(0, EVENTS_FIRST))
  return (
    <tbody>
      {shown.map((event) => (
        <EventRow key={event.sequence} event={event} />
      ))}
    </tbody>
  )
}

const timeOf = (text: string | undefined) => (text ? Date.parse(text) : null)

const EventRow = memo(function EventRow({ event }: { event: StoryEvent }) {
  return (
    <tr data-type={event.type}>
      <td className="nowrap">
        <Ago ms={timeOf(event.lastTimestamp)} />
        {(event.count ?? 1) > 1 && event.firstTimestamp !== event.lastTimestamp && (
          <div className="small quiet">
            {t('first')} <Ago ms={timeOf(event.firstTimestamp)} />
          </div>
        )}
      </td>
      <td className="nowrap">
        {event.type === 'Warning' && <span aria-label={t('Warning')}>⚠ </span>}
        <Said>{event.reason}</Said>
        {(event.count ?? 1) > 1 && <span className="quiet"> ×{event.count}</span>}
      </td>
      <td className="nowrap">{event.taskroleName ? `${event.taskroleName}[${event.taskIndex}]` : ''}</td>
      <td className="anywhere" lang="en">
        {event.message}
      </td>
    </tr>
  )
})

function Story({ name }: { name: string }) {
  const { data, isLoading } = useQuery(storyQuery(name))
  return (
    <div className="card">
      <h2>{t('Story')}</h2>
      {isLoading ? (
        <Loading />
      ) : !data?.data.length ? (
        <Empty title={t('Nothing has happened yet')} />
      ) : (
        <div className="scroll-x story" tabIndex={0} role="region" aria-label={t('Story')}>
          <table>
            <thead>
              <tr>
                <th scope="col">{t('When')}</th>
                <th scope="col">{t('What')}</th>
                <th scope="col">{t('Task')}</th>
                <th scope="col">{t('More')}</th>
              </tr>
            </thead>
            <Events events={data.data} />
          </table>
        </div>
      )}
      {(data?.totalCount ?? 0) > (data?.data.length ?? 0) && (
        <p className="small quiet">
          {t('The newest {shown} of {n} events stand here; all of them:', { shown: data!.data.length, n: data!.totalCount })} <code>{`skep events --limit ${data!.totalCount} ${shellWord(name)}`}</code>
        </p>
      )}
    </div>
  )
}

export function Overview({ name, detail, onDetails, onSsh }: { name: string; detail: JobDetail; onDetails: (place: TaskPlace) => void; onSsh?: (place: TaskPlace) => void }) {
  const status = detail.jobStatus!
  const logHref = (role: string, index: number) => `${location.pathname}?tab=logs&role=${encodeURIComponent(role)}&index=${index}`
  usePageTitle(name)
  return (
    <>
      {status.state === 'WAITING' && status.waitingReason && (
        <section className="note" data-kind="wait" aria-label={t('Why it waits')}>
          <strong>{t('Why it waits')}</strong>
          <p className="anywhere">
            <Reason text={status.waitingReason} parts={status.waitingReasonParts} />
          </p>
        </section>
      )}
      {status.state === 'FAILED' && <Failure name={name} detail={detail} logHref={logHref} />}
      {status.state === 'STOPPED' && status.appExitSpec && (
        <section className="note">
          <strong>
            <Said>{status.appExitSpec.phrase}</Said>
          </strong>
          <Advice spec={status.appExitSpec} />
        </section>
      )}
      <section className="card" aria-label={t('Facts')}>
        <Facts detail={detail} />
      </section>
      <Timeline name={name} detail={detail} />
      <Tasks name={name} detail={detail} logHref={logHref} onPick={(role, index) => navigate(logHref(role, index))} onDetails={onDetails} {...(onSsh ? { onSsh } : {})} />
      <Story name={name} />
    </>
  )
}
