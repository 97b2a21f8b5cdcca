// The jobs that the filters of the list find, as a file for a spreadsheet.
import { get, type JobSummary } from '../api/client'
import { csvOf } from './csv'

const PAGE = 5000

const HEAD = ['User', 'Name', 'State', 'Virtual Cluster', 'Priority', 'GPUs', 'Tasks', 'Submitted', 'Started', 'Ended', 'Retries', 'Exit Code', 'Tags']

export function jobsCsv(jobs: JobSummary[]): string {
  const time = (ms: number | null | undefined) => (ms ? new Date(ms).toISOString() : '')
  return csvOf([
    HEAD,
    ...jobs.map((job) => [
      job.username,
      job.name,
      job.state,
      job.virtualCluster,
      job.jobPriority,
      job.totalGpuNumber,
      job.totalTaskNumber,
      time(job.submissionTime),
      time(job.launchedTime),
      time(job.completedTime),
      job.retries,
      job.appExitCode,
      job.tags?.join(' '),
    ]),
  ])
}

/** `filter` as jobPageQuery takes it. */
export async function jobsAll(filter: string): Promise<JobSummary[]> {
  const jobs: JobSummary[] = []
  for (let cursor: string | null = ''; cursor !== null; ) {
    const page: { data: JobSummary[]; cursor: string | null } = await get(`/api/v2/jobs?${filter}${filter && '&'}limit=${PAGE}&cursor=${encodeURIComponent(cursor)}`)
    jobs.push(...page.data)
    cursor = page.cursor
  }
  return jobs
}
