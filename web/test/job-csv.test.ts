import { afterEach, describe, expect, it, vi } from 'vitest'
import './browser'
import { jobsAll, jobsBetween, jobsCsv } from '../src/lib/job-csv'

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

describe('jobs of a range of rows', () => {
  const server = (pages: unknown[]) => {
    const asked: string[] = []
    vi.stubGlobal('fetch', (url: string) => {
      asked.push(url)
      return Promise.resolve(new Response(JSON.stringify(pages[asked.length - 1])))
    })
    return asked
  }
  it('are asked for at once while they are few', async () => {
    const asked = server([[{ name: 'a' }]])
    expect(await jobsBetween('', 7, 5006)).toEqual([{ name: 'a' }])
    expect(asked).toEqual(['/api/v2/jobs?offset=7&limit=5000'])
  })
  it('are read page by page where they are more than the server gives at once, and no further than to the last', async () => {
    const page = (first: number) => ({ data: Array.from({ length: 5000 }, (_, i) => ({ name: String(first + i) })), cursor: `${first + 5000}` })
    const asked = server([page(0), page(5000)])
    const found = await jobsBetween('state=FAILED', 3, 5003)
    expect([found.length, found[0]?.name, found.at(-1)?.name]).toEqual([5001, '3', '5003'])
    expect(asked).toEqual(['/api/v2/jobs?state=FAILED&limit=5000&cursor=', '/api/v2/jobs?state=FAILED&limit=5000&cursor=5000'])
  })
})
