// The part of a log that the page holds: whole lines, and where their bytes stand in the log.

export const LINES_MAX = 300_000 // beyond, those that are farthest from what one reads are let go; they can be read again
export const BYTES_MAX = 64 * 1024 * 1024
export const PIECE_BYTES = 1024 * 1024 // a longer line is held in pieces, each as a line of its own

interface Limits {
  lines: number
  bytes: number
  piece: number
}

export class LogBuffer {
  private lines: string[] = []
  private sizes: number[] = [] // of the lines in bytes, with their newlines
  /** The number of the first line. Numbers stay when lines come before it or are let go: those that came before have negative ones. */
  first = 0
  /** Where in the log the first line begins, and where the next chunk goes on. */
  begin: number
  end: number
  private rest = '' // of a line without its newline
  private restSize = 0
  private isCut: boolean // the first line began before `begin`
  private decoder = new TextDecoder('utf-8', { ignoreBOM: true })

  /** `floor`: where the log itself begins; what came before has been removed. */
  constructor(
    begin: number,
    isWholeLine: boolean,
    public floor = 0,
    private readonly limits: Limits = { lines: LINES_MAX, bytes: BYTES_MAX, piece: PIECE_BYTES },
  ) {
    this.begin = this.end = begin
    this.isCut = !isWholeLine
  }

  /** All that is shown: a last line without a newline counts. */
  get count() {
    return this.lines.length + (this.rest ? 1 : 0)
  }

  /** No more comes in unless something is let go. */
  get isFull() {
    return this.lines.length >= this.limits.lines || this.end - this.begin >= this.limits.bytes
  }

  /** No more lines come in at once: those beside which they come are let go only after others. */
  get linesAtOnce() {
    return Math.ceil(this.limits.lines / 3)
  }

  at(index: number): string {
    return index < this.lines.length ? this.lines[index]! : this.rest
  }

  /** The line in which the byte of this number of the log stands; -1: it is not here. */
  lineOf(offset: number): number {
    let at = this.begin
    if (offset < at) return -1
    for (let i = 0; i < this.lines.length; i++) {
      at += this.sizes[i]!
      if (offset < at) return i
    }
    return offset < this.end ? this.lines.length : -1
  }

  /** What follows on the last byte. More than the limits may be held then: dropFirst or dropLast lets go of it. */
  append(bytes: Uint8Array) {
    let chunk = bytes
    if (this.isCut && this.begin === this.end) {
      // the character that began before
      const left = characterStart(bytes)
      this.begin = this.end += left
      chunk = bytes.subarray(left)
    }
    this.end += chunk.length
    const parts = (this.rest + this.decoder.decode(chunk, { stream: true })).split('\n')
    this.rest = parts.pop()!
    let from = 0
    for (const part of parts) {
      const to = chunk.indexOf(10, from) + 1
      const size = this.restSize + to - from
      if (this.isCut) this.begin += size // it is the end of a line that is not here
      else this.push(part, size)
      this.isCut = false
      this.restSize = 0
      from = to
    }
    this.restSize += chunk.length - from
    if (this.restSize < this.limits.piece) return
    this.push(this.rest, this.restSize)
    this.isCut = false
    this.rest = ''
    this.restSize = 0
  }

  private push(line: string, size: number) {
    this.lines.push(line)
    this.sizes.push(size)
  }

  /** Bytes that stand right before the first line; `from` is where they begin. Without a whole line among them, they are a piece of one. Of very many lines the last ones are taken. */
  prepend(bytes: Uint8Array, from: number, isWholeLine: boolean) {
    const left = Math.max(isWholeLine ? 0 : bytes.indexOf(10) + 1, lastLines(bytes, this.linesAtOnce))
    const whole = bytes.subarray(left)
    if (!whole.length) return
    const parts = new TextDecoder('utf-8', { ignoreBOM: true }).decode(whole).split('\n')
    const sizes: number[] = []
    for (let at = 0; at < whole.length; ) {
      const to = whole.indexOf(10, at) + 1 || whole.length
      sizes.push(to - at)
      at = to
    }
    parts.length = sizes.length // nothing stands behind a last newline
    this.lines = parts.concat(this.lines)
    this.sizes = sizes.concat(this.sizes)
    this.first -= sizes.length
    this.begin = from + left
    this.isCut = false
  }

  /** Is it more than the limits allow, with this many lines? */
  private isOver(lines: number) {
    return lines > this.limits.lines || (lines > 0 && this.end - this.begin > this.limits.bytes)
  }

  /** Lets go of the first lines, until the limits are kept. */
  dropFirst() {
    let count = 0
    while (this.isOver(this.lines.length - count)) this.begin += this.sizes[count++]!
    this.lines.splice(0, count)
    this.sizes.splice(0, count)
    this.first += count
  }

  /** The same with the last ones. True: some were, and what comes from then on must begin at `end` anew. */
  dropLast(): boolean {
    if (!this.isOver(this.lines.length)) return false
    this.end -= this.restSize
    this.rest = ''
    this.restSize = 0
    this.decoder = new TextDecoder('utf-8', { ignoreBOM: true })
    let left = this.lines.length
    while (this.isOver(left)) this.end -= this.sizes[--left]!
    this.lines.length = this.sizes.length = left
    return true
  }
}

/** Where the first whole character of UTF-8 begins. */
export function characterStart(bytes: Uint8Array): number {
  let at = 0
  while (at < Math.min(3, bytes.length) && (bytes[at]! & 0xc0) === 0x80) at++
  return at
}

/** Where the first of the last `count` lines begins. */
function lastLines(bytes: Uint8Array, count: number): number {
  let at = bytes.length
  for (; count > 0 && at > 0; count--) at = at < 2 ? 0 : bytes.lastIndexOf(10, at - 2) + 1
  return at
}

/** Where the first `count` lines end. */
function firstLines(bytes: Uint8Array, count: number): number {
  let at = 0
  for (; count > 0 && at < bytes.length; count--) at = bytes.indexOf(10, at) + 1 || bytes.length
  return at
}

// ---- parts of a log ----

export interface LogPart {
  bytes: Uint8Array
  start: number // of these bytes in the log
  floor: number // where the log begins: what came before has been removed
  end: number // of the log, when it was asked
}

/** At most `length` bytes of the log from the byte `from` on. */
export type ReadPart = (from: number, length: number) => Promise<LogPart>

/** Reads what stands before the lines of the buffer. True: the last ones were too many then and have been let go. `hold` is called before anything changes. */
export async function readEarlier(buffer: LogBuffer, read: ReadPart, length: number, hold: () => void): Promise<boolean> {
  for (let wanted = length; ; wanted *= 2) {
    const begin = buffer.begin
    const from = Math.max(buffer.floor, begin - wanted)
    const part = await read(from, begin - from)
    if (buffer.begin !== begin) return false // it has moved on meanwhile
    // more of the log may have been removed meanwhile
    buffer.floor = Math.max(buffer.floor, part.floor)
    const bytes = part.bytes.subarray(0, Math.max(0, begin - part.start))
    const isBegin = part.start === buffer.floor
    const newline = bytes.indexOf(10)
    // a line that begins before these bytes and fills them: more of it is read, and in the end a piece of it is shown
    if (!isBegin && bytes.length && (newline < 0 || newline + 1 === bytes.length) && wanted < 4 * length) continue
    hold()
    buffer.prepend(bytes, part.start, isBegin || newline < 0 || newline + 1 === bytes.length)
    return buffer.dropLast()
  }
}

/** Reads what follows on the buffer, and lets go of the first lines when they are too many. Returns where the log ends; null: what followed has been removed. */
export async function readLater(buffer: LogBuffer, read: ReadPart, length: number, hold: () => void): Promise<number | null> {
  const end = buffer.end
  const part = await read(end, length)
  if (buffer.end !== end) return part.end
  buffer.floor = Math.max(buffer.floor, part.floor)
  if (part.start !== end) return null
  hold()
  buffer.append(part.bytes.subarray(0, firstLines(part.bytes, buffer.linesAtOnce)))
  buffer.dropFirst()
  return part.end
}

/** The numbers of the lines that hold the text; the case counts only when the text has capitals. */
export function linesWith(count: number, at: (index: number) => string, text: string, limit = 100_000): number[] {
  const found: number[] = []
  if (!text) return found
  const isExact = text !== text.toLowerCase()
  for (let i = 0; i < count && found.length < limit; i++) {
    const line = at(i)
    if ((isExact ? line : line.toLowerCase()).includes(text)) found.push(i)
  }
  return found
}
