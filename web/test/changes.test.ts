import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { streamRead, type News } from '../src/lib/changes'

/** A server that sends these lines to each connection, and then nothing more. */
function server(lines: string[]) {
  const asked: { path: string; signal: AbortSignal }[] = []
  vi.stubGlobal('fetch', (path: string, { signal }: { signal: AbortSignal }) => {
    asked.push({ path, signal })
    const body = new ReadableStream<Uint8Array>({
      start(stream) {
        for (const line of lines) stream.enqueue(new TextEncoder().encode(`${line}\n`))
        signal.addEventListener('abort', () => stream.error(signal.reason))
      },
    })
    return Promise.resolve(new Response(body))
  })
  return asked
}

describe('the stream of changes', () => {
  beforeEach(() => void vi.useFakeTimers())
  afterEach(() => {
    vi.useRealTimers()
    vi.unstubAllGlobals()
  })
  it('is begun again behind what was heard when the server is silent for too long', async () => {
    const asked = server(['{"type":"job","number":7,"id":"ann~a"}'])
    const told: News[] = []
    const stop = new AbortController()
    const end = streamRead(stop.signal, (news) => told.push(news))
    await vi.advanceTimersByTimeAsync(30_000)
    expect(asked.map(({ path, signal }) => [path, signal.aborted])).toEqual([['/api/v2/changes', false]])
    expect(told.map(({ jobs }) => jobs)).toEqual([['ann~a']])
    await vi.advanceTimersByTimeAsync(12_000)
    expect(asked.map(({ path, signal }) => [path, signal.aborted])).toEqual([
      ['/api/v2/changes', true],
      ['/api/v2/changes?since=7', false],
    ])
    stop.abort()
    await vi.advanceTimersByTimeAsync(1000)
    await end
    expect(asked.every(({ signal }) => signal.aborted)).toBe(true)
  })
})
