import { afterEach, describe, expect, it, vi } from 'vitest'
import './browser'
import { ExecSession, inputMessages } from '../src/lib/exec-session'

describe('what is typed', () => {
  it('is sent behind the number of its channel', () => {
    expect(inputMessages(new Uint8Array([108, 115]))).toEqual([new Uint8Array([0, 108, 115])])
    expect(inputMessages(new Uint8Array())).toEqual([])
  })
  it('never fills more than the server takes in one message', () => {
    const pasted = Uint8Array.from({ length: 100_000 }, (_, at) => at % 251)
    const messages = inputMessages(pasted)
    expect(messages.every((message) => message[0] === 0 && message.length <= 64 << 10)).toBe(true)
    expect(messages.flatMap((message) => [...message.subarray(1)])).toEqual([...pasted])
  })
})

describe('the end of a program', () => {
  afterEach(() => vi.unstubAllGlobals())
  const target = { job: 'ann~train', role: 'main', index: 0 }
  /** A session whose program another window started. */
  function sessionMake(reply: () => Response) {
    const asked: string[] = []
    vi.stubGlobal('fetch', async (path: string, { method }: RequestInit) => {
      asked.push(`${method} ${path}`)
      return reply()
    })
    const session = new ExecSession(target)
    const states: string[] = []
    session.listen({ onOutput: () => undefined, onGap: () => undefined, onState: () => states.push(session.state.kind) })
    session.id = 'x1'
    return { session, asked, states }
  }
  const refusal = (status: number) => Response.json({ code: 'Wrong', message: 'why not' }, { status })

  it('is asked of the server', async () => {
    const { session, asked, states } = sessionMake(() => new Response(null, { status: 204 }))
    await session.end()
    await session.end()
    expect(asked).toEqual(['DELETE /api/v2/exec/x1'])
    expect(states).toEqual(['ended'])
  })
  it('has come when another window ended it', async () => {
    const { session, states } = sessionMake(() => refusal(404))
    await session.end()
    expect(states).toEqual(['ended'])
  })
  it('has not come when the server refuses', async () => {
    const { session, states } = sessionMake(() => refusal(403))
    await expect(session.end()).rejects.toThrow('why not')
    expect(states).toEqual([])
    expect(session.state.kind).toBe('opening')
  })
  it('is told by a server that no longer knows the program', async () => {
    const { session } = sessionMake(() => refusal(404))
    const ended = new Promise<void>((resolve) => session.listen({ onOutput: () => undefined, onGap: () => undefined, onState: resolve }))
    session.resume('x1')
    await ended
    expect(session.state).toEqual({ kind: 'ended', text: 'why not' })
  })
  it('is not waited for by who has left while the program was started', async () => {
    const { session } = sessionMake(() => Response.json({ id: 'x2', uri: '/api/v2/exec/x2' }))
    const sockets: unknown[] = []
    vi.stubGlobal('WebSocket', class { constructor(url: unknown) { sockets.push(url) } })
    const started = session.start([])
    session.leave()
    await started
    expect(sockets).toEqual([])
  })
})
