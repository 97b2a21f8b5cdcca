// A program that was started in a running task, and the WebSocket that leads to it. The program outlives a connection for a
// minute: when one breaks, another is made, and the server repeats what was missed (docs/user/api.md, "A terminal in a
// running task").
import { ApiError, backoffMs, call, enc, type Schema } from '../api/client'

export type ExecState =
  | { kind: 'opening' | 'open' | 'lost' }
  | { kind: 'taken' } // another window is connected to it now
  | { kind: 'ended'; text: string; exitCode?: number }

export interface ExecTarget {
  job: string // USER~JOB
  role: string
  index: number
}

export interface ExecListener {
  /** `isAnswered`: another terminal has drawn it before, so that what it asks the terminal has been answered. */
  onOutput: (bytes: Uint8Array, isAnswered: boolean) => void
  /** So many bytes of output are lost: the server keeps the last 64 KiB for who is away. */
  onGap: (bytes: number) => void
  onState: () => void
}

type Reply = Schema['ExecSession']
type Control = { type: 'attached'; terminal: boolean; from: number; seen?: number } | { type: 'end'; reason: string; message: string; code?: number }

const PROTOCOL = 'skep.exec.v1'
const CHANNEL_INPUT = 0
const INPUT_MAX = 32 << 10 // of a message; the server takes 64 KiB
const CLOSE_REPLACED = 4001

const pathOf = (id: string) => `/api/v2/exec/${enc(id)}`

/** What is typed, as messages of the protocol. */
export function inputMessages(bytes: Uint8Array): Uint8Array<ArrayBuffer>[] {
  const messages: Uint8Array<ArrayBuffer>[] = []
  for (let at = 0; at < bytes.length; at += INPUT_MAX) {
    const part = bytes.subarray(at, at + INPUT_MAX)
    const message = new Uint8Array(part.length + 1)
    message[0] = CHANNEL_INPUT
    message.set(part, 1)
    messages.push(message)
  }
  return messages
}

export class ExecSession {
  state: ExecState = { kind: 'opening' }
  id = ''
  private listener: ExecListener | null = null
  private socket: WebSocket | null = null
  private received = 0
  private answered = 0 // output before this byte is answered; what only this terminal was sent is not
  private isAlone = true // nobody else has been connected since this terminal was
  private size = { rows: 24, columns: 80 }
  private tries = 0
  private timer: ReturnType<typeof setTimeout> | undefined

  constructor(readonly target: ExecTarget) {}

  listen(listener: ExecListener) {
    this.listener = listener
  }

  /** Start the program; without words, the shell of the image. */
  async start(words: string[]) {
    const { job, role, index } = this.target
    const { id, uri } = await call<Reply>('POST', `/api/v2/jobs/${enc(job)}/exec`, { json: { role, index, ...(words.length ? { command: words } : {}), ...this.size } })
    this.id = id
    if (this.listener) this.connect(uri) // who has left in between starts no connection
  }

  /** Connect to a program that this browser started before the page was loaded again. */
  resume(id: string) {
    this.id = id
    this.isAlone = false
    void this.reconnect()
  }

  /** Take it back from the other window. */
  take() {
    this.tries = 0
    this.isAlone = false
    this.become({ kind: 'lost' }) // it cannot be taken twice
    void this.reconnect()
  }

  input(bytes: Uint8Array) {
    if (this.state.kind !== 'open') return // nothing can be typed then: the terminal is switched off
    for (const message of inputMessages(bytes)) this.socket?.send(message)
  }

  resize(rows: number, columns: number) {
    this.size = { rows, columns }
    if (this.state.kind === 'open') this.sizeSend()
  }

  async end() {
    if (this.state.kind === 'ended') return
    try {
      await call('DELETE', pathOf(this.id))
    } catch (error) {
      // it has ended already, and another window was told
      if (!(error instanceof ApiError && error.status === 404)) throw error
    }
    this.ended('')
  }

  /** Leave it alone: the server ends it in a minute. */
  leave() {
    clearTimeout(this.timer)
    this.socket?.close()
    this.socket = null
    this.listener = null
  }

  private sizeSend() {
    this.socket?.send(JSON.stringify({ type: 'resize', ...this.size }))
  }

  private become(state: ExecState) {
    this.state = state
    this.listener?.onState()
  }

  private ended(text: string, exitCode?: number) {
    clearTimeout(this.timer)
    this.become({ kind: 'ended', text, ...(exitCode === undefined ? {} : { exitCode }) })
    this.socket?.close()
    this.socket = null
  }

  private connect(uri: string) {
    const url = new URL(uri, location.origin)
    url.protocol = url.protocol === 'https:' ? 'wss:' : 'ws:'
    if (this.received) url.searchParams.set('from', String(this.received))
    this.socket?.close()
    const socket = new WebSocket(url, PROTOCOL)
    socket.binaryType = 'arraybuffer'
    socket.onmessage = (event: MessageEvent<ArrayBuffer | string>) => {
      if (socket !== this.socket) return // another connection repeats what this one brings
      if (typeof event.data === 'string') this.controlTake(JSON.parse(event.data) as Control)
      else this.outputTake(new Uint8Array(event.data))
    }
    socket.onclose = (event) => {
      if (socket !== this.socket) return
      this.socket = null
      if (event.code === CLOSE_REPLACED) this.become({ kind: 'taken' })
      else if (this.state.kind !== 'ended') this.lost()
    }
    this.socket = socket
  }

  private controlTake(message: Control) {
    if (message.type === 'attached') {
      if (message.from > this.received) this.listener?.onGap(message.from - this.received)
      this.received = message.from
      // what was on its way to this terminal when its connection broke is still to be answered
      if (!this.isAlone) this.answered = message.seen ?? 0
      this.isAlone = true
      this.tries = 0
      this.become({ kind: 'open' })
      this.sizeSend()
    } else if (message.type === 'end') this.ended(message.message, message.reason === 'exited' ? message.code : undefined)
  }

  private outputTake(message: Uint8Array) {
    const bytes = message.subarray(1)
    const answered = Math.min(bytes.length, Math.max(0, this.answered - this.received))
    this.received += bytes.length
    if (answered) this.listener?.onOutput(bytes.subarray(0, answered), true)
    if (answered < bytes.length) this.listener?.onOutput(bytes.subarray(answered), false)
  }

  private lost() {
    this.become({ kind: 'lost' })
    this.timer = setTimeout(() => void this.reconnect(), backoffMs(Math.min(this.tries++, 4)))
  }

  private async reconnect() {
    try {
      const { uri } = await call<Reply>('POST', `${pathOf(this.id)}/link`)
      if (this.listener && this.state.kind !== 'ended') this.connect(uri)
    } catch (error) {
      if (!this.listener) return
      const isThere = error instanceof ApiError && error.status !== 0 && error.status !== 429 && error.status < 500
      if (isThere) this.ended(error.message)
      else this.lost()
    }
  }
}
