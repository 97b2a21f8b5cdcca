// What one looks for first: mine that run, wait and failed, and what the cluster has left.
import { useQueries, useQuery } from '@tanstack/react-query'
import type { ReactNode } from 'react'
import { nameOf, sessionGet, type JobDetail, type JobSummary } from '../api/client'
import { cellsQuery, clustersQuery, jobPageQuery, jobQuery, nodesQuery, nodeUseQuery, pollMs, skusQuery, taskQuery, userQuery } from '../api/queries'
import { t } from '../i18n/i18n'
import { mebibytes } from '../lib/format'
import { freeNodes, usableNodes } from '../lib/free'
import { jobPath, Link } from '../router'
import '../style/home.css'
import { BusyAll, BusyLine } from './cluster/busy'
import { Closed, isClosed } from '../ui/closed'
import { Awaited, useAwaited } from '../ui/in-order'
import { later } from '../ui/later'
import { Ago, Cli, Duration, Empty, ErrorNote, LinkButton, Loading, Meter, Reason, Said, StateBadge, STATES, stateName, usePageTitle } from '../ui/ui'

const AbnormalCard = later(async () => ({ default: (await import('./admin/abnormal')).AbnormalCard }), <Awaited />)

const SHOWN = 6

const mine = (states: string, order = 'submissionTime,DESC') =>
  `username=${encodeURIComponent(sessionGet()?.user ?? '')}&state=${states}&order=${order}&tagsNotContain=archived`

/** The task that ended the job, with its last lines. */
function endingQuery(name: string, detail: JobDetail | undefined) {
  const status = detail?.jobStatus
  const role = status?.appExitTriggerTaskRoleName ?? ''
  const index = status?.appExitTriggerTaskIndex ?? -1
  return { ...taskQuery(name, status?.attemptId ?? 0, role, index), enabled: !!role && index >= 0 }
}

/** Whether an answer is awaited that the lines of these jobs show beside what the list says. */
function useDetailsMissing(jobs: JobSummary[]): boolean {
  return useQueries({ queries: jobs.map((job) => jobQuery(nameOf(job))) }).some((result) => result.isLoading)
}

function useEndingsMissing(jobs: JobSummary[]): boolean {
  const details = useQueries({ queries: jobs.map((job) => jobQuery(nameOf(job))) })
  const endings = useQueries({ queries: jobs.map((job, index) => endingQuery(nameOf(job), details[index]?.data)) })
  return [...details, ...endings].some((result) => result.isLoading)
}

const useNothingMissing = () => false

interface JobCardProps {
  title: string
  states: string
  order?: string
  empty: ReactNode
  line: (job: JobSummary) => ReactNode
  useMissing?: (jobs: JobSummary[]) => boolean
}

function JobCard({ title, states, order, empty, line, useMissing = useNothingMissing }: JobCardProps) {
  const { data, error } = useQuery(jobPageQuery(mine(states, order), 0, SHOWN))
  const isMissing = useMissing(data?.data ?? [])
  const isAwaited = useAwaited((!!data && !isMissing) || !!error)
  return (
    <section className="card" aria-label={title} data-awaited={isAwaited}>
      <div className="card-head">
        <h2>{title}</h2>
        <span className="quiet">{data?.totalCount ?? ''}</span>
        {(data?.totalCount ?? 0) > SHOWN && (
          <Link className="push small" href={`/jobs?user=@me&state=${states}`}>
            {t('All of them')}
          </Link>
        )}
      </div>
      {error ? <ErrorNote error={error} /> : !data ? <Loading /> : !data.data.length ? empty : <ul className="home-jobs">{data.data.map((job) => <li key={job.name}>{line(job)}</li>)}</ul>}
    </section>
  )
}

function Name({ job }: { job: JobSummary }) {
  return (
    <Link className="home-name anywhere" href={jobPath(job.username!, job.name!)}>
      {job.name}
    </Link>
  )
}

function Waiting({ job }: { job: JobSummary }) {
  const { data } = useQuery({ ...jobQuery(nameOf(job)), refetchInterval: pollMs })
  return (
    <>
      <div className="row">
        <Name job={job} />
        <span className="push small quiet">
          <Duration from={job.submissionTime} to={null} />
        </span>
      </div>
      <p className="small quiet anywhere home-reason">
        <Reason text={data?.jobStatus?.waitingReason} parts={data?.jobStatus?.waitingReasonParts} />
      </p>
    </>
  )
}

function Failed({ job }: { job: JobSummary }) {
  const { data: detail } = useQuery(jobQuery(nameOf(job)))
  const status = detail?.jobStatus
  const { data: task } = useQuery(endingQuery(nameOf(job), detail))
  const attempt = task?.attempts?.[0]
  const lines = (attempt?.matchedRule?.text ?? attempt?.containerLogTail ?? '').trimEnd().split('\n').slice(-3).join('\n')
  return (
    <>
      <div className="row">
        <Name job={job} />
        <span className="push small quiet">
          <Ago ms={job.completedTime} />
        </span>
      </div>
      <p className="small anywhere">
        {!status ? (
          '…'
        ) : (
          <>
            {status.appExitSpec?.phrase ? <Said>{status.appExitSpec.phrase}</Said> : t('Failed')} · {t('exit code {code}', { code: String(status.appOriginalExitCode ?? job.appExitCode ?? '?') })}
          </>
        )}
      </p>
      {lines && <pre className="home-lines small">{lines}</pre>}
    </>
  )
}

/** Of the jobs of `user`, or of everybody. */
function Counts({ user }: { user: string | null }) {
  const whose = user === null ? '' : `username=${encodeURIComponent(user)}&`
  const results = useQueries({ queries: STATES.map((state) => jobPageQuery(`${whose}state=${state}&tagsNotContain=archived`, 0, 1)) })
  const isAwaited = useAwaited(results.every((result) => !result.isLoading))
  const isInHead = user !== null // there it has its size from the beginning
  return (
    <ul className="row home-counts" data-awaited={isInHead ? undefined : isAwaited} aria-label={user === null ? t('Jobs of all users by state') : t('My jobs by state')}>
      {STATES.map((state, index) => {
        const count = results[index]!.data?.totalCount
        return state === 'STOPPING' && !count ? null : (
          <li key={state}>
            <Link className="button" href={`/jobs?${user === null ? '' : 'user=@me&'}state=${state}`} aria-label={`${stateName(state)}: ${count ?? ''}`}>
              <StateBadge state={state} /> <strong>{count ?? '–'}</strong>
            </Link>
          </li>
        )
      })}
    </ul>
  )
}

function Clusters() {
  const { data, error } = useQuery(clustersQuery)
  const busy = useQueries({ queries: [nodesQuery, cellsQuery, skusQuery('')] })
  const isAwaited = useAwaited((!!data && busy.every((result) => !result.isLoading)) || !!error)
  if (error) return <ErrorNote error={error} />
  return (
    <section className="card" aria-label={t('Virtual clusters')} data-awaited={isAwaited}>
      <div className="card-head">
        <h2>{t('Virtual clusters')}</h2>
        <span className="quiet">{data ? Object.keys(data).length : ''}</span>
        <Link className="push small" href="/cluster">
          {t('Cluster')}
        </Link>
      </div>
      {!data ? (
        <Loading />
      ) : (
        Object.entries(data).map(([name, vc]) => {
          const total = vc.resourcesTotal ?? {}
          const good = vc.resourcesGuaranteed ?? {}
          const used = vc.resourcesUsed ?? {}
          return (
            <div key={name} className="stack home-vc">
              <h3>
                <Link href={`/jobs?vc=${encodeURIComponent(name)}`}>{name}</Link> {vc.dedicated && <span className="tag">{t('dedicated')}</span>}
              </h3>
              {isClosed(vc) && (
                <p className="note small" data-kind="wait">
                  <Closed cluster={vc} />
                </p>
              )}
              <Meter label={t('GPUs')} used={used.gpu ?? 0} bad={(total.gpu ?? 0) - (good.gpu ?? 0)} total={total.gpu ?? 0} />
              <BusyLine vc={name} />
              <Meter label={t('CPUs')} used={used.cpu ?? 0} total={total.cpu ?? 0} />
              <Meter label={t('Memory')} used={used.memory ?? 0} total={total.memory ?? 0} text={`${mebibytes(used.memory ?? 0)} / ${mebibytes(total.memory ?? 0)}`} />
            </div>
          )
        })
      )}
    </section>
  )
}

function FreeGpus() {
  const { data: all, error } = useQuery(nodeUseQuery)
  const { data: nodes, isLoading: areNodesMissing } = useQuery(nodesQuery)
  const { data: clusters, isLoading: areClustersMissing } = useQuery(clustersQuery)
  const { data: me, isLoading: amMissing } = useQuery(userQuery(sessionGet()?.user ?? ''))
  const isAwaited = useAwaited((!!all && !areNodesMissing && !areClustersMissing && !amMissing) || !!error)
  if (!all) return isAwaited ? <Awaited /> : null
  const data = usableNodes(all, sessionGet()?.admin ? null : (me?.virtualCluster ?? null))
  const types = new Map(nodes?.data.map((node) => [node.name, node.gpuType]))
  const free = Object.values(data).reduce((sum, node) => sum + node.gpuAvailable, 0)
  const total = Object.values(data).reduce((sum, node) => sum + node.gpuTotal, 0)
  const rows = freeNodes(data, (name) => types.get(name) ?? '')
  const most = Math.max(1, ...rows.map((row) => row.nodes))
  const isSplit = Object.keys(clusters ?? {}).length > 1 && Object.values(data).some((node) => node.virtualCluster)
  return (
    <section className="card" aria-label={t('Free GPUs')} data-awaited={isAwaited}>
      <div className="card-head">
        <h2>{t('Free GPUs')}</h2>
        <span className="quiet">{t('{free} of {total}', { free, total })}</span>
      </div>
      {total > 0 && <Meter label={t('Allocated')} used={Object.values(data).reduce((sum, node) => sum + node.gpuUsed, 0)} total={total} />}
      <BusyAll />
      {!total ? (
        <p className="quiet">{t('This cluster has no GPUs. Jobs of CPUs run all the same.')}</p>
      ) : !rows.length ? (
        <p className="quiet">{t('All GPUs are taken. A job that is submitted now waits; it says for whom.')}</p>
      ) : (
        <table className="home-free">
          <thead>
            <tr>
              <th scope="col">{t('Type')}</th>
              <th scope="col" className="number">
                {t('Free on a node')}
              </th>
              {isSplit && <th scope="col">{t('Whose')}</th>}
              <th scope="col">{t('Nodes')}</th>
            </tr>
          </thead>
          <tbody>
            {rows.map(({ type, owner, free: devices, nodes: count }) => (
              <tr key={`${type} ${owner} ${devices}`}>
                <td>{type || '–'}</td>
                <td className="number">{devices}</td>
                {isSplit && <td>{owner ? <span lang="">{t('only {vc}', { vc: owner })}</span> : t('shared')}</td>}
                <td>
                  <div className="row home-bar">
                    <span className="meter-track" aria-hidden="true">
                      <span style={{ width: `${(100 * count) / most}%` }} />
                    </span>
                    {count}
                  </div>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </section>
  )
}

export function Home() {
  usePageTitle(t('Home'))
  return (
    <div className="page in-order">
      <div className="page-head">
        <h1>{t('My work')}</h1>
        <Counts user={sessionGet()?.user ?? ''} />
        <div className="push">
          <LinkButton href="/submit" kind="main">
            {t('New job')}
          </LinkButton>
        </div>
      </div>
      <div className="grid-cards in-order">
        <JobCard
          title={t('Waiting')}
          states="WAITING"
          empty={<p className="quiet">{t('Nothing waits.')}</p>}
          useMissing={useDetailsMissing}
          line={(job) => <Waiting job={job} />}
        />
        <JobCard
          title={t('Running')}
          states="RUNNING,STOPPING"
          empty={
            <Empty title={t('Nothing runs')}>
              <p>{t('A first job takes a minute:')}</p>
              <LinkButton href="/submit">{t('Submit a job')}</LinkButton>
              <code>skep run --image skep/base -- echo hello</code>
            </Empty>
          }
          line={(job) => (
            <div className="row">
              <Name job={job} />
              <span className="small quiet">
                {job.virtualCluster} · {t('{n} GPU|{n} GPUs', { n: job.totalGpuNumber ?? 0 })}
              </span>
              <span className="push small quiet">
                <Duration from={job.launchedTime} to={null} />
              </span>
            </div>
          )}
        />
        <JobCard
          title={t('Failed')}
          states="FAILED"
          order="completionTime,DESC"
          empty={<p className="quiet">{t('Nothing failed.')}</p>}
          useMissing={useEndingsMissing}
          line={(job) => <Failed job={job} />}
        />
        {sessionGet()?.admin && (
          <section className="card" aria-label={t('Jobs of all users')}>
            <h2>{t('Jobs of all users')}</h2>
            <Counts user={null} />
          </section>
        )}
        {sessionGet()?.admin && <AbnormalCard />}
        <Clusters />
        <FreeGpus />
        <JobCard
          title={t('Succeeded')}
          states="SUCCEEDED"
          order="completionTime,DESC"
          empty={<p className="quiet">{t('Nothing has succeeded yet.')}</p>}
          line={(job) => (
            <div className="row">
              <Name job={job} />
              <span className="small quiet">
                {job.virtualCluster} · <Duration from={job.launchedTime} to={job.completedTime} />
              </span>
              <span className="push small quiet">
                <Ago ms={job.completedTime} />
              </span>
            </div>
          )}
        />
      </div>
      <Cli command="skep list --user @me" />
    </div>
  )
}
