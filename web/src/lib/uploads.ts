// Files on their way into storages: several at once, each in parts. A part that got no answer is sent again from where the server is,
// and a server that is busy is asked again when it says so. They go on while one looks at other pages.
import { ApiError, backoffMs } from '../api/client'
import { t } from '../i18n/i18n'
import { lastName, type StorageFile } from './files'

/** How far the server is with one. */
export interface Begun {
  id: string
  received: number
  partBytes: number
}

export interface UploadCalls {
  begin(storage: string, path: string, size: number, isReplacing: boolean): Promise<Begun>
  progress(storage: string, id: string, signal: AbortSignal): Promise<Begun>
  part(storage: string, id: string, offset: number, bytes: ArrayBuffer, signal: AbortSignal): Promise<Begun>
  place(storage: string, id: string, signal: AbortSignal): Promise<unknown>
  end(storage: string, id: string): Promise<unknown>
  /** What has this name; null: nothing. */
  find(storage: string, path: string): Promise<StorageFile | null>
}

export type UploadState =
  | { kind: 'waiting' } // others are before it
  | { kind: 'sending' }
  | { kind: 'held'; error: unknown; untilMs: number } // tries again by itself
  | { kind: 'taken'; there: StorageFile } // another file has its name: replace that one?
  | { kind: 'failed'; error: unknown }
  | { kind: 'done' }

/** What of a file the browser gives. */
export type Source = Pick<File, 'name' | 'size' | 'slice'>

export interface Upload {
  key: number
  storage: string
  path: string
  source: Source
  sent: number
  state: UploadState
}

/** Of a person the server takes eight; other tabs and `skep storage put` want some, too. */
export const AT_ONCE = 3
/** Tries of a request that gets no answer: a minute or two. */
const TRIES_MAX = 8

/** What of an upload nobody sees. */
interface Way {
  begun: Begun | null
  isKnown: boolean // begun.received is what the server has
  isPlacing: boolean // it may have its name already
  isReplacing: boolean
  stop: AbortController
}

type Step = 'begin' | 'progress' | 'part' | 'place'

/** How long to wait before that step is tried again; null: another try would not help. */
export function retryMs(error: unknown, step: Step, tries: number, random = Math.random()): number | null {
  if (!(error instanceof ApiError)) return null
  const ms = backoffMs(tries, random)
  if (error.status === 429 || error.status === 503) return Math.max(error.retryS * 1000, ms)
  const isCut = [0, 502, 504].includes(error.status)
  const isOverlapped = error.status === 409 && (step === 'progress' || step === 'part') // the request that was cut is still under way there
  return (isCut || isOverlapped || error.code === 'NoUploadError') && tries < TRIES_MAX ? ms : null
}

export function waitMs(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, ms)
    signal.addEventListener('abort', () => {
      clearTimeout(timer)
      reject(signal.reason as Error)
    })
  })
}

const isLive = ({ state: { kind } }: Upload) => kind === 'waiting' || kind === 'sending' || kind === 'held'

export class Uploads {
  private all: readonly Upload[] = []
  private ways = new Map<number, Way>()
  private next = 1
  private running = 0
  private watchers = new Set<() => void>()

  constructor(
    private calls: UploadCalls,
    private wait = waitMs,
  ) {}

  list = () => this.all
  watch = (notify: () => void) => {
    this.watchers.add(notify)
    return () => void this.watchers.delete(notify)
  }
  /** Would something be lost with the page? */
  isLive = () => this.all.some(isLive)

  add(storage: string, files: { path: string; source: Source }[]) {
    const added = files.map(({ path, source }): Upload => ({ key: this.next++, storage, path, source, sent: 0, state: { kind: 'waiting' } }))
    for (const { key } of added) this.ways.set(key, { begun: null, isKnown: false, isPlacing: false, isReplacing: false, stop: new AbortController() })
    this.all = [...this.all, ...added]
    this.changed()
    this.pump()
  }

  /** Once more, from where it was. */
  again(key: number, isReplacing = false) {
    const way = this.ways.get(key)
    if (!way) return
    if (isReplacing) way.isReplacing = true
    way.isKnown = false
    this.set(key, { state: { kind: 'waiting' } })
    this.pump()
  }

  /** Given up, or taken from the list. */
  remove(keys: number[]) {
    for (const key of keys) {
      const upload = this.all.find((one) => one.key === key)
      const way = this.ways.get(key)
      if (!upload || !way) continue
      way.stop.abort()
      if (upload.state.kind !== 'sending' && upload.state.kind !== 'held') this.end(upload.storage, way) // else its run does that
      this.ways.delete(key)
    }
    this.all = this.all.filter((one) => !keys.includes(one.key))
    this.changed()
    this.pump()
  }

  /** Should it fail, the server gives the upload up by itself when nobody goes on with it. */
  private end(storage: string, way: Way) {
    if (way.begun) void this.calls.end(storage, way.begun.id).catch(() => undefined)
    way.begun = null
  }

  private set(key: number, changes: Partial<Upload>) {
    this.all = this.all.map((one) => (one.key === key ? { ...one, ...changes } : one))
    this.changed()
  }

  private changed() {
    for (const notify of this.watchers) notify()
  }

  private pump() {
    for (const upload of this.all) {
      if (this.running >= AT_ONCE) return
      if (upload.state.kind === 'waiting') void this.run(upload)
    }
  }

  private async run(upload: Upload) {
    const { key, storage } = upload
    const way = this.ways.get(key)!
    this.running++
    this.set(key, { state: { kind: 'sending' } })
    try {
      this.set(key, { state: await this.send(upload, way) })
    } catch (error) {
      this.set(key, { state: { kind: 'failed', error } })
    } finally {
      if (way.stop.signal.aborted) this.end(storage, way)
      this.running--
      this.pump()
    }
  }

  private async send(upload: Upload, way: Way): Promise<UploadState> {
    const { signal } = way.stop
    for (let tries = 0; ; ) {
      const step = this.stepOf(upload, way)
      try {
        await this.step(step, upload, way)
        signal.throwIfAborted()
        tries = 0
        if (step === 'place') return { kind: 'done' }
      } catch (error) {
        signal.throwIfAborted()
        const there = await this.inTheWay(error, step, upload, way)
        if (there) return { kind: 'taken', there }
        const ms = retryMs(error, step, tries++)
        if (ms === null) throw error
        this.set(upload.key, { state: { kind: 'held', error, untilMs: Date.now() + ms } })
        await this.wait(ms, signal)
        this.set(upload.key, { state: { kind: 'sending' } })
      }
    }
  }

  private stepOf({ source }: Upload, { begun, isKnown }: Way): Step {
    if (!begun) return 'begin'
    if (!isKnown) return 'progress'
    return begun.received < source.size ? 'part' : 'place'
  }

  private async step(step: Step, { key, storage, path, source }: Upload, way: Way) {
    const { signal } = way.stop
    const { id = '', received = 0, partBytes = 0 } = way.begun ?? {}
    way.isKnown = false // until the answer is there
    try {
      if (step === 'begin') way.begun = await this.calls.begin(storage, path, source.size, way.isReplacing)
      else if (step === 'progress') way.begun = await this.calls.progress(storage, id, signal)
      else if (step === 'part') way.begun = await this.calls.part(storage, id, received, await this.read(source, received, partBytes), signal)
      else {
        way.isPlacing = true
        await this.calls.place(storage, id, signal)
        way.begun = null
      }
    } catch (error) {
      if (!(error instanceof ApiError) || error.code !== 'NoUploadError') throw error
      way.begun = null // ended, or a server that has started anew: from the beginning
      if (way.isPlacing) throw new Error(t('The connection broke while the server put {name} into its folder. If it is in the list now, it is whole; if it is not, try again.', { name: lastName(path) }))
      throw error
    }
    way.isPlacing = false
    way.isKnown = true
    this.set(key, { sent: step === 'place' ? source.size : (way.begun?.received ?? 0) })
  }

  /** What has the name of this one already, where that is why the server refused it. It has given up what had come. */
  private async inTheWay(error: unknown, step: Step, { storage, path }: Upload, way: Way): Promise<StorageFile | null> {
    if (!(error instanceof ApiError) || error.status !== 409 || way.isReplacing || (step !== 'begin' && step !== 'place')) return null
    if (step === 'place') way.begun = null
    const there = await this.calls.find(storage, path)
    return there?.kind === 'folder' ? null : there
  }

  private async read(source: Source, at: number, length: number): Promise<ArrayBuffer> {
    let bytes: ArrayBuffer | null = null
    try {
      bytes = await source.slice(at, at + length).arrayBuffer()
    } catch {
      // as below: it is gone, or not what was chosen
    }
    if (bytes?.byteLength === Math.min(length, source.size - at)) return bytes
    throw new Error(t('{name} on this computer was changed, moved or removed since it was chosen, or may not be read: choose it again.', { name: source.name }))
  }
}
