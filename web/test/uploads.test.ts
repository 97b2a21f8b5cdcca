import './browser'
import { beforeEach, describe, expect, it } from 'vitest'
import { ApiError } from '../src/api/client'
import type { StorageFile } from '../src/lib/files'
import { AT_ONCE, retryMs, Uploads, type Begun, type Source, type UploadCalls } from '../src/lib/uploads'

const PART = 4

/** As skepd takes uploads: its rules, without its disk. What a test lets go wrong stands in `faults`, by the call. */
class Server implements UploadCalls {
  files = new Map<string, string>()
  open = new Map<string, { path: string; size: number; text: string; isReplacing: boolean }>()
  faults: Record<string, (() => void)[]> = {}
  lost: Record<string, number> = {} // answers that do not arrive: what was asked for is done
  said: string[] = []
  most = 0
  private next = 1

  private async do<T>(name: string, done: () => T): Promise<T> {
    this.said.push(name)
    await Promise.resolve()
    this.faults[name]?.shift()?.()
    const answer = done()
    if ((this.lost[name] ?? 0) > 0) {
      this.lost[name]!--
      throw new ApiError(0, 'NoServer', 'the server does not answer')
    }
    return answer
  }
  private one(id: string) {
    const found = this.open.get(id)
    if (!found) throw new ApiError(404, 'NoUploadError', 'there is no such upload')
    return found
  }
  private told = (id: string): Begun => ({ id, received: this.one(id).text.length, partBytes: PART })
  begin = (_: string, path: string, size: number, isReplacing: boolean) =>
    this.do('begin', () => {
      if (this.files.has(path) && !isReplacing) throw new ApiError(409, 'ConflictError', `${path} is there already`)
      const id = String(this.next++)
      this.open.set(id, { path, size, text: '', isReplacing })
      this.most = Math.max(this.most, this.open.size)
      return this.told(id)
    })
  progress = (_: string, id: string) => this.do('progress', () => this.told(id))
  part = (_: string, id: string, offset: number, bytes: ArrayBuffer) =>
    this.do('part', () => {
      const one = this.one(id)
      if (offset !== one.text.length) throw new ApiError(409, 'ConflictError', 'the next part begins elsewhere')
      one.text += new TextDecoder().decode(bytes)
      return this.told(id)
    })
  place = (_: string, id: string) =>
    this.do('place', () => {
      const { path, text, size, isReplacing } = this.one(id)
      expect(text.length).toBe(size)
      this.open.delete(id)
      if (this.files.has(path) && !isReplacing) throw new ApiError(409, 'ConflictError', `${path} is there already`)
      this.files.set(path, text)
    })
  end = (_: string, id: string) => this.do('end', () => void this.open.delete(id))
  find = async (_: string, path: string): Promise<StorageFile | null> => {
    const text = this.files.get(path)
    return text === undefined ? null : { name: path, kind: 'file', size: text.length, changedTime: 7 }
  }
}

const fails = (status: number, code = 'BusyError', retryS = 0) => () => {
  throw new ApiError(status, code, `status ${status}`, [], retryS)
}
const source = (text: string): Source => {
  const blob = new Blob([text])
  return { name: 'x', size: blob.size, slice: (from, to) => blob.slice(from, to) }
}

let server: Server
let uploads: Uploads
let waits: number[]
/** Until none goes on. */
const settled = async (of = uploads) => {
  if (!of.isLive()) return
  await new Promise<void>((resolve) => {
    const stop = of.watch(() => {
      if (of.isLive()) return
      stop()
      resolve()
    })
  })
}
const kinds = () => uploads.list().map(({ state }) => state.kind)
const add = (...texts: string[]) => uploads.add('home', texts.map((text, index) => ({ path: `f${index}`, source: source(text) })))

beforeEach(() => {
  server = new Server()
  waits = []
  uploads = new Uploads(server, async (ms) => void waits.push(ms))
})

describe('uploads', () => {
  it('come in parts, and each file is there when it is whole', async () => {
    add('0123456789', '', 'abcd')
    await settled()
    expect(kinds()).toEqual(['done', 'done', 'done'])
    expect([...server.files]).toEqual(expect.arrayContaining([['f0', '0123456789'], ['f1', ''], ['f2', 'abcd']]))
    expect(server.said.filter((name) => name === 'part')).toHaveLength(4)
    expect(uploads.list().map(({ sent }) => sent)).toEqual([10, 0, 4])
  })
  it('are few at once, and all come', async () => {
    add(...Array.from({ length: 9 }, (_, index) => String(index).repeat(9)))
    await settled()
    expect(server.files.size).toBe(9)
    expect(server.most).toBe(AT_ONCE)
  })
  it('wait as long as a busy server says, however often', async () => {
    server.faults = { begin: Array.from({ length: 20 }, () => fails(429, 'BusyError', 40)), part: [fails(503, 'UnavailableError', 90)], place: [fails(503, 'UnavailableError', 50)] }
    add('01234567')
    await settled()
    expect(server.files.get('f0')).toBe('01234567')
    expect(waits).toEqual([...Array.from({ length: 20 }, () => 40_000), 90_000, 50_000])
  })
  it('go on where the server is when an answer was lost', async () => {
    server.lost = { part: 1 }
    add('0123456789')
    await settled()
    expect(server.files.get('f0')).toBe('0123456789')
    expect(server.said).toEqual(['begin', 'part', 'progress', 'part', 'part', 'place'])
  })
  it('wait for a request of their own that is still under way there', async () => {
    server.lost = { part: 1 }
    server.faults = { progress: [fails(409, 'ConflictError')] }
    add('01234567')
    await settled()
    expect(server.files.get('f0')).toBe('01234567')
  })
  it('begin anew when the server has forgotten them', async () => {
    server.faults = { part: [() => undefined, () => server.open.clear()] }
    add('0123456789')
    await settled()
    expect(server.files.get('f0')).toBe('0123456789')
    expect(server.said.filter((name) => name === 'begin')).toHaveLength(2)
  })
  it('fail when nothing answers for long, and go on from there when one asks for it', async () => {
    server.faults = { part: [() => undefined, ...Array.from({ length: 9 }, () => fails(0, 'NoServer'))], progress: Array.from({ length: 8 }, () => fails(0, 'NoServer')) }
    add('0123456789')
    await settled()
    expect(kinds()).toEqual(['failed'])
    server.faults = {}
    uploads.again(1)
    await settled()
    expect(server.files.get('f0')).toBe('0123456789')
    expect(server.said.filter((name) => name === 'begin')).toHaveLength(1)
  })
  it('fail at once where another try would not help, and others go on', async () => {
    server.faults = { begin: [fails(403, 'ForbiddenUserError')] }
    add('a', 'b')
    await settled()
    expect(kinds()).toEqual(['failed', 'done'])
    expect(waits).toEqual([])
  })
  it('do not know what became of a file whose last answer was lost', async () => {
    server.lost = { place: 1 }
    add('a')
    await settled()
    const state = uploads.list()[0]!.state
    expect([state.kind, state.kind === 'failed' && (state.error as Error).message]).toEqual(['failed', expect.stringContaining('If it is in the list now, it is whole')])
  })
  it('place it again when the request, not its answer, was lost', async () => {
    server.faults = { place: [fails(0, 'NoServer')] }
    add('a')
    await settled()
    expect(server.said).toEqual(['begin', 'part', 'place', 'progress', 'place'])
  })
  it('ask before they replace a file', async () => {
    server.files.set('f0', 'older')
    add('new')
    await settled()
    expect(uploads.list()[0]!.state).toEqual({ kind: 'taken', there: { name: 'f0', kind: 'file', size: 5, changedTime: 7 } })
    expect(server.files.get('f0')).toBe('older')
    uploads.again(1, true)
    await settled()
    expect(server.files.get('f0')).toBe('new')
  })
  it('ask, too, when somebody was quicker', async () => {
    server.faults = { place: [() => server.files.set('f0', 'quicker')] }
    add('new')
    await settled()
    expect(kinds()).toEqual(['taken'])
    uploads.again(1, true)
    await settled()
    expect(server.files.get('f0')).toBe('new')
  })
  it('name the reason when the disk is full', async () => {
    server.faults = { begin: [fails(409, 'ConflictError')] }
    add('new')
    await settled()
    expect(kinds()).toEqual(['failed'])
  })
  it('that are cancelled leave nothing, and others take their place', async () => {
    add(...Array.from({ length: AT_ONCE + 1 }, () => '0123456789'))
    server.faults = { part: [() => uploads.remove([1])] }
    await settled()
    expect([...server.files.keys()].sort()).toEqual(['f1', 'f2', 'f3'])
    expect(server.said).toContain('end')
    expect(server.open.size).toBe(0)
    expect(uploads.list()).toHaveLength(AT_ONCE)
  })
  it('that have failed are given up with their row', async () => {
    server.faults = { part: [fails(403, 'ForbiddenUserError')] }
    add('0123')
    await settled()
    uploads.remove([1])
    await Promise.resolve()
    await Promise.resolve()
    expect([server.open.size, uploads.list()]).toEqual([0, []])
  })
  it('say when the file on this computer is not what it was', async () => {
    const gone: Source = { name: 'gone.bin', size: 8, slice: () => ({ arrayBuffer: () => Promise.reject(new DOMException('gone', 'NotReadableError')) }) as unknown as Blob }
    const short: Source = { name: 'short.bin', size: 8, slice: () => new Blob(['ab']) }
    uploads.add('home', [{ path: 'gone.bin', source: gone }, { path: 'short.bin', source: short }])
    await settled()
    for (const { state } of uploads.list()) expect((state as { error?: Error }).error?.message).toContain('choose it again')
  })
})

describe('another try', () => {
  const error = (status: number, retryS = 0) => new ApiError(status, 'X', '', [], retryS)
  it('waits no shorter than the server says, and longer each time', () => {
    expect(retryMs(error(429, 7), 'begin', 0, 0)).toBe(7000)
    expect(retryMs(error(429, 1), 'begin', 4, 0)).toBe(4000)
    expect(retryMs(error(503), 'place', 100, 0)).toBe(15_000)
  })
  it('is of no use after a refusal, or an error of ours', () => {
    for (const status of [400, 401, 403, 413, 500]) expect(retryMs(error(status), 'part', 0)).toBeNull()
    expect(retryMs(error(409), 'begin', 0)).toBeNull()
    expect(retryMs(new Error('x'), 'part', 0)).toBeNull()
  })
  it('ends after a minute or two without an answer', () => {
    expect(retryMs(error(0), 'part', 7, 0)).toBe(15_000)
    expect(retryMs(error(502), 'part', 8)).toBeNull()
  })
})
