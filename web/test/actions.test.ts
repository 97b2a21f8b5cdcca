import { afterEach, expect, it, vi } from 'vitest'
import './browser'
import { jobHasBegun } from '../src/api/actions'

afterEach(() => vi.unstubAllGlobals())

it('whether a job has begun is asked without its tasks, of which there may be thousands', async () => {
  const asked: string[] = []
  let state = 'WAITING'
  vi.stubGlobal('fetch', (path: string) => {
    asked.push(path)
    return Promise.resolve(new Response(JSON.stringify({ jobStatus: { state } })))
  })
  expect(await jobHasBegun('alice~train')).toBe(false)
  state = 'RUNNING'
  expect(await jobHasBegun('alice~train')).toBe(true)
  expect(asked).toEqual(Array(2).fill('/api/v2/jobs/alice~train?tasks=none'))
})
