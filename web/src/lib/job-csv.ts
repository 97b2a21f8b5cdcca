// The jobs that the filters of the list find, as a file for a spreadsheet.
import { enc, get, type JobSummary } from '../api/client'
import { pagesAll } from '../api/pages'
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
export const jobsAll = (filter: string, most?: number): Promise<JobSummary[]> =>
  pagesAll((cursor) => get(`/api/v2/jobs?${filter}${filter && '&'}limit=${PAGE}&cursor=${enc(cursor)}`), most)

/** Those in the rows from `from` to `to`, the first row being 0. The server gives only so many at once. */
export async function jobsBetween(filter: string, from: number, to: number): Promise<JobSummary[]> {
  if (to - from < PAGE) return get<JobSummary[]>(`/api/v2/jobs?${filter}${filter && '&'}offset=${from}&limit=${to - from + 1}`)
  return (await jobsAll(filter, to + 1)).slice(from, to + 1)
}
