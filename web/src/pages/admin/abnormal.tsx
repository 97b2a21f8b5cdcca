// Jobs that wait for long, run for long, leave their GPUs idle, or are tried again and again.
import { useQueries, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { jobStop } from '../../api/actions'
import { enc, nameOf, type JobSummary } from '../../api/client'
import { jobPageQuery, useOverTimeQuery } from '../../api/queries'
import { t } from '../../i18n/i18n'
import { gpuShare, LIMITS, signsOf, type Sign } from '../../lib/abnormal'
import { duration } from '../../lib/format'
import { jobPath, Link } from '../../router'
import { Awaited, useAwaited } from '../../ui/in-order'
import { Button, Confirm, Empty, ErrorNote, Loading, StateBadge, TableCard, useNow, useToast } from '../../ui/ui'

/** So many of each kind are looked at, the most telling first; of GPU jobs the largest. */
const LOOKED_AT = 30

const CANDIDATES = [
  'state=WAITING&order=submissionTime,ASC',
  'state=RUNNING&order=submissionTime,ASC',
  'state=RUNNING&order=totalGpuNumber,DESC',
  'state=WAITING,RUNNING,STOPPING&order=retries,DESC',
]

interface Abnormal {
  job: JobSummary
  signs: Sign[]
}

/** `isWhole`: also how busy the GPUs of all that are looked at are is known. */
function useAbnormal(): { jobs: Abnormal[] | null; error: unknown; isWhole: boolean } {
  const now = useNow()
  const pages = useQueries({ queries: CANDIDATES.map((filter) => ({ ...jobPageQuery(filter, 0, LOOKED_AT), staleTime: 30_000, refetchInterval: 60_000 })) })
  const withGpus = (pages[2]!.data?.data ?? []).filter((job) => job.totalGpuNumber)
  const uses = useQueries({
    queries: withGpus.map((job) => ({ ...useOverTimeQuery(`/api/v2/jobs/${enc(nameOf(job))}/use`, 'recent', false), staleTime: 60_000, refetchInterval: 60_000 })),
  })
  const error = pages.find((page) => page.error)?.error ?? null
  if (error || pages.some((page) => !page.data)) return { jobs: null, error, isWhole: false }
  const shares = new Map(withGpus.map((job, index) => [nameOf(job), uses[index]!.data ? gpuShare(uses[index]!.data) : null]))
  const jobs = new Map(pages.flatMap((page) => page.data!.data).map((job) => [nameOf(job), job]))
  return {
    jobs: [...jobs.values()].map((job) => ({ job, signs: signsOf(job, now, shares.get(nameOf(job)) ?? null) })).filter(({ signs }) => signs.length > 0),
    error: null,
    isWhole: uses.every((use) => !use.isLoading),
  }
}

function signText(sign: Sign): string {
  switch (sign.kind) {
    case 'waits':
      return t('waits for {time}', { time: duration(sign.ms) })
    case 'runs':
      return t('runs for {time}', { time: duration(sign.ms) })
    case 'idle':
      return t('its GPUs are {percent} % busy', { percent: sign.percent })
    case 'retries':
      return t('{n} retry|{n} retries', { n: sign.count })
  }
}

const Signs = ({ signs }: { signs: Sign[] }) => <span className="abnormal">{signs.map(signText).join(' · ')}</span>

function StopDialog({ name, onClose }: { name: string; onClose: () => void }) {
  const toast = useToast()
  const queries = useQueryClient()
  const stop = async () => {
    await jobStop(name)
    await queries.invalidateQueries({ queryKey: ['jobs'] })
    toast(t('{name} is being stopped.', { name }))
  }
  return (
    <Confirm title={t('Stop this job?')} action={t('Stop')} danger onClose={onClose} onConfirm={stop}>
      <p className="anywhere mono">{name}</p>
    </Confirm>
  )
}

export default function AbnormalJobs() {
  const { jobs, error } = useAbnormal()
  const [stopping, setStopping] = useState<string | null>(null)
  const day = 24 * 3600_000
  return (
    <div className="stack">
      <p className="quiet">
        {t('Jobs that wait for more than {wait} h, run for more than {run} days, keep less than {share} % of their GPUs busy for 10 minutes, or have been tried again {retries} times. The {n} most telling of each kind are looked at.', {
          wait: LIMITS.waitMs / 3600_000,
          run: LIMITS.runMs / day,
          share: 100 * LIMITS.gpuShare,
          retries: LIMITS.retries,
          n: LOOKED_AT,
        })}
      </p>
      {error ? (
        <ErrorNote error={error} />
      ) : !jobs ? (
        <Loading />
      ) : !jobs.length ? (
        <div className="card">
          <Empty title={t('Nothing is abnormal')}>
            <p>{t('All jobs do what they should.')}</p>
          </Empty>
        </div>
      ) : (
        <TableCard label={t('Abnormal jobs')} heads={[t('Job'), t('Virtual cluster'), { number: t('GPUs') }, t('State'), t('Why'), { hidden: t('Actions') }]}>
          {jobs.map(({ job, signs }) => (
            <tr key={nameOf(job)}>
              <th scope="row" className="anywhere">
                <Link href={jobPath(job.username!, job.name!)}>{nameOf(job)}</Link>
              </th>
              <td>{job.virtualCluster}</td>
              <td className="number">{job.totalGpuNumber}</td>
              <td>
                <StateBadge state={job.state} />
              </td>
              <td>
                <Signs signs={signs} />
              </td>
              <td>
                <Button small kind="danger" aria-label={t('Stop {name}', { name: nameOf(job) })} disabled={job.executionType === 'STOP'} onClick={() => setStopping(nameOf(job))}>
                  {t('Stop')}
                </Button>
              </td>
            </tr>
          ))}
        </TableCard>
      )}
      {stopping && <StopDialog name={stopping} onClose={() => setStopping(null)} />}
    </div>
  )
}

const CARD_MAX = 6

/** On the home page of administrators; nothing while all is well. */
export function AbnormalCard() {
  const { jobs, error, isWhole } = useAbnormal()
  const isAwaited = useAwaited(isWhole || !!error)
  if (!jobs?.length) return isAwaited ? <Awaited /> : null
  return (
    <section className="card" aria-label={t('Abnormal jobs')} data-awaited={isAwaited}>
      <div className="card-head">
        <h2>{t('Abnormal jobs')}</h2>
        <span className="quiet">{jobs.length}</span>
        <Link className="push small" href="/admin?tab=abnormal">
          {t('All of them')}
        </Link>
      </div>
      <ul className="home-jobs">
        {jobs.slice(0, CARD_MAX).map(({ job, signs }) => (
          <li key={nameOf(job)}>
            <Link className="home-name anywhere" href={jobPath(job.username!, job.name!)}>
              {nameOf(job)}
            </Link>
            <p className="small">
              <Signs signs={signs} />
            </p>
          </li>
        ))}
      </ul>
    </section>
  )
}
