import { afterEach, describe, expect, it, vi } from 'vitest'
import './browser'
import { jobsAll, jobsCsv } from '../src/lib/job-csv'

afterEach(() => vi.unstubAllGlobals())

describe('jobs as a file', () => {
  it('have a line each, with times that every program reads', () => {
    const job = { username: 'ann', name: 'train', state: 'FAILED', virtualCluster: 'default', totalGpuNumber: 8, totalTaskNumber: 2, submissionTime: 0, launchedTime: 1000, completedTime: null, retries: 1, appExitCode: 137, tags: ['a', 'b,c'] } as const
    const [head, line, end] = jobsCsv([{ ...job, tags: [...job.tags] }]).split('\r\n')
    expect(head?.split(',')).toHaveLength(13)
    expect(line).toBe('ann,train,FAILED,default,,8,2,,1970-01-01T00:00:01.000Z,,1,137,"a b,c"')
    expect(end).toBe('')
  })
  it('are read page by page, all that the filter finds', async () => {
    const pages = [
      { data: [{ name: 'a' }], cursor: 'x y' },
      { data: [{ name: 'b' }], cursor: null },
    ]
    const asked: string[] = []
    vi.stubGlobal('fetch', (url: string) => {
      asked.push(url)
      return Promise.resolve(new Response(JSON.stringify(pages[asked.length - 1])))
    })
    expect((await jobsAll('state=FAILED')).map(({ name }) => name)).toEqual(['a', 'b'])
    expect(asked).toEqual(['/api/v2/jobs?state=FAILED&limit=5000&cursor=', '/api/v2/jobs?state=FAILED&limit=5000&cursor=x%20y'])
  })
})
