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

describe('output that another terminal has drawn', () => {
  afterEach(() => vi.unstubAllGlobals())

  class Socket {
    static opened: (socket: Socket) => void
    onmessage!: (event: { data: unknown }) => void
    onclose!: (event: { code: number }) => void
    constructor() {
      Socket.opened(this)
    }
    send() {}
    close() {}
    attached(from: number, seen: number) {
      this.onmessage({ data: JSON.stringify({ type: 'attached', terminal: true, from, seen }) })
    }
    output(text: string) {
      this.onmessage({ data: new TextEncoder().encode(`\x01${text}`).buffer })
    }
  }
  /** A session, and what it was told to draw; an answered part stands in brackets. */
  function drawing() {
    vi.stubGlobal('fetch', async () => Response.json({ id: 'x1', uri: '/api/v2/exec/x1' }))
    vi.stubGlobal('WebSocket', Socket)
    vi.stubGlobal('location', { origin: 'http://127.0.0.1:9186' })
    const session = new ExecSession({ job: 'ann~train', role: 'main', index: 0 })
    const drawn: string[] = []
    session.listen({
      onOutput: (bytes, isAnswered) => drawn.push(isAnswered ? `[${new TextDecoder().decode(bytes)}]` : new TextDecoder().decode(bytes)),
      onGap: () => undefined,
      onState: () => undefined,
    })
    return { session, drawn }
  }
  const socketAfter = (act: () => void) =>
    new Promise<Socket>((resolve) => {
      Socket.opened = resolve
      act()
    })

  it('is answered up to where that one had it, when the page is loaded again', async () => {
    const { session, drawn } = drawing()
    const socket = await socketAfter(() => session.resume('x1'))
    socket.attached(10, 14)
    socket.output('ab')
    socket.output('cdef')
    socket.output('g')
    expect(drawn).toEqual(['[ab]', '[cd]', 'ef', 'g'])
  })
  it('is not answered when the connection of this one broke before it came', async () => {
    const { session, drawn } = drawing()
    const first = await socketAfter(() => void session.start([]))
    first.attached(0, 0)
    first.output('ab')
    const second = await socketAfter(() => first.onclose({ code: 1006 }))
    second.attached(2, 6)
    second.output('cdef')
    expect(drawn).toEqual(['ab', 'cdef'])
  })
  it('is answered when it is taken back from that one', async () => {
    const { session, drawn } = drawing()
    const first = await socketAfter(() => void session.start([]))
    first.attached(0, 0)
    first.output('ab')
    first.onclose({ code: 4001 })
    const second = await socketAfter(() => session.take())
    second.attached(2, 4)
    second.output('cdef')
    expect(drawn).toEqual(['ab', '[cd]', 'ef'])
  })
})
