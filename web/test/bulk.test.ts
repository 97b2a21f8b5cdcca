import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { errorOfAll } from '../src/api/actions'
import { bulkDo, bulkTry, CHUNK } from '../src/api/bulk'
import { languageSet } from '../src/i18n/i18n'

interface Asked {
  path: string
  body: { action: string; jobs: string[]; tag?: string }
}

/** A server that answers the requests in turn. */
function server(answers: ((jobs: string[]) => Response)[]) {
  const asked: Asked[] = []
  vi.stubGlobal('fetch', (path: string, { body }: { body: string }) => {
    const json = JSON.parse(body) as Asked['body']
    asked.push({ path, body: json })
    const answer = answers[asked.length - 1]
    return answer ? Promise.resolve(answer(json.jobs)) : Promise.reject(new Error('no more'))
  })
  return asked
}
const all = (word: string) => (jobs: string[]) => Response.json({ results: jobs.map((name) => ({ name, outcome: word })) })
const names = (count: number) => Array.from({ length: count }, (_, at) => `ann~${at}`)

describe('one action for many jobs', () => {
  beforeEach(() => void vi.useFakeTimers())
  afterEach(() => {
    vi.useRealTimers()
    vi.unstubAllGlobals()
  })
  it('goes on in parts, and tells how far it is', async () => {
    const asked = server([all('done'), all('done')])
    const told: number[] = []
    const outcome = await bulkDo('addTag', names(CHUNK + 1), 'archived', (count) => told.push(count))
    expect(asked.map(({ path, body }) => [path, body.action, body.tag, body.jobs.length])).toEqual([
      ['/api/v2/bulk/jobs', 'addTag', 'archived', CHUNK],
      ['/api/v2/bulk/jobs', 'addTag', 'archived', 1],
    ])
    expect([told, outcome.done.length, outcome.failed]).toEqual([[CHUNK, CHUNK + 1], CHUNK + 1, []])
  })
  it('waits as long as the server wants', async () => {
    const asked = server([() => new Response('{"code":"QuotaError","message":"later"}', { status: 429, headers: { 'Retry-After': '7' } }), all('done')])
    const outcome = bulkDo('stop', names(2))
    await vi.advanceTimersByTimeAsync(6900)
    expect(asked.length).toBe(1)
    await vi.advanceTimersByTimeAsync(200)
    expect((await outcome).done).toEqual(names(2))
  })
  it('asks for nothing more when it is stopped, and says what is left', async () => {
    const stop = new AbortController()
    const asked = server([
      (jobs) => {
        stop.abort()
        return all('done')(jobs)
      },
    ])
    const outcome = await bulkDo('delete', names(CHUNK + 2), undefined, undefined, stop.signal)
    expect(asked.length).toBe(1)
    expect(outcome).toEqual({ done: names(CHUNK), failed: [], left: [`ann~${CHUNK}`, `ann~${CHUNK + 1}`] })
  })
  it('is stopped while the server wants it to wait', async () => {
    const stop = new AbortController()
    const asked = server([() => new Response('{"code":"QuotaError","message":"later"}', { status: 429, headers: { 'Retry-After': '7' } }), all('done')])
    const outcome = bulkDo('stop', names(2), undefined, undefined, stop.signal)
    await vi.advanceTimersByTimeAsync(1000)
    stop.abort()
    expect(await outcome).toEqual({ done: [], failed: [], left: names(2) })
    expect(asked.length).toBe(1)
  })
  it('says what was refused, and what was not asked for after a failure', async () => {
    server([(jobs) => Response.json({ results: jobs.map((name, at) => (at ? { name, outcome: 'done' } : { name, outcome: 'forbidden', message: 'not yours' })) })])
    const { done, failed } = await bulkDo('delete', names(CHUNK + 2))
    expect(done.length).toBe(CHUNK - 1)
    expect(failed.map(([name, error]) => [name, error.message])).toEqual([
      ['ann~0', 'not yours'],
      [`ann~${CHUNK}`, 'the server does not answer'],
      [`ann~${CHUNK + 1}`, 'the server does not answer'],
    ])
  })
  it('is only tried before', async () => {
    const asked = server([all('selected')])
    expect((await bulkTry('stop', names(300))).done.length).toBe(300)
    expect(asked.map(({ path }) => path)).toEqual(['/api/v2/bulk/jobs?dryRun=true'])
  })
  it('is not taken for refused when nobody could be asked', async () => {
    server([])
    await expect(bulkTry('stop', names(2))).rejects.toThrow('the server does not answer')
  })
  it('says in the language of the page how many more have failed', async () => {
    vi.stubGlobal('document', { documentElement: {} })
    await languageSet('zh-CN', false)
    const { message } = errorOfAll(names(12).map((name): [string, unknown] => [name, new Error('no')]))
    expect(message).toMatch(/ann~9: no; .*2/)
    expect(message).not.toContain('more')
    await languageSet('en', false)
  })
  it('names the first of many failures', () => {
    const failed = names(12).map((name): [string, unknown] => [name, new Error('no')])
    expect(errorOfAll(failed).message).toMatch(/^ann~0: no; .*; ann~9: no; and 2 more$/)
  })
})
