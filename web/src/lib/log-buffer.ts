// The part of a log that the page holds: whole lines, and the bytes before and after them that it does not.

export const LINES_MAX = 300_000 // beyond, the first ones are let go; they can be read again

export class LogBuffer {
  lines: string[] = []
  /** Where in the log the first line begins, and where the next chunk goes on. */
  begin: number
  end: number
  private rest = '' // of a line without its newline
  private isCut: boolean // the first line began before `begin`

  /** `floor`: where the log itself begins; what came before has been removed. */
  constructor(
    begin: number,
    isWholeLine: boolean,
    public floor = 0,
  ) {
    this.begin = this.end = begin
    this.isCut = !isWholeLine
  }

  /** All that is shown: a last line without a newline counts. */
  get count() {
    return this.lines.length + (this.rest ? 1 : 0)
  }

  at(index: number): string {
    return index < this.lines.length ? this.lines[index]! : this.rest
  }

  /** The line in which the byte of this number of the log stands; -1: it is not here. */
  lineOf(offset: number): number {
    let at = this.begin
    if (offset < at) return -1
    for (let i = 0; i < this.lines.length; i++) {
      at += byteLength(this.lines[i]!) + 1
      if (offset < at) return i
    }
    return offset < this.end ? this.lines.length : -1
  }

  /** What there is of the first bytes of the log's part when the character is left out that began before it. */
  aligned(bytes: Uint8Array): Uint8Array {
    if (!this.isCut || this.begin !== this.end) return bytes
    const left = characterStart(bytes)
    this.begin = this.end += left
    return bytes.subarray(left)
  }

  append(chunk: string, byteCount: number) {
    this.end += byteCount
    const parts = (this.rest + chunk).split('\n')
    this.rest = parts.pop()!
    if (this.isCut && parts.length) {
      // what stands before the first newline is the end of a line that is not here
      this.begin += byteLength(parts.shift()!) + 1
      this.isCut = false
    }
    // never as arguments of one call: a chunk may have a hundred thousand lines
    for (const part of parts) this.lines.push(part)
    if (this.lines.length > LINES_MAX) this.drop(this.lines.length - LINES_MAX)
  }

  private drop(count: number) {
    for (const line of this.lines.splice(0, count)) this.begin += byteLength(line) + 1
  }

  /** Lines that stand before the first one; `from` is where the text begins. Returns how many came. */
  prepend(text: string, from: number, isWholeLine: boolean): number {
    let start = from
    if (!isWholeLine) {
      const newline = text.indexOf('\n')
      if (newline < 0) return 0
      start += byteLength(text.slice(0, newline + 1))
      text = text.slice(newline + 1)
    }
    const parts = text.split('\n')
    if (parts.at(-1) === '') parts.pop()
    this.lines = parts.concat(this.lines)
    this.begin = start
    return parts.length
  }
}

/** Where the first whole character of UTF-8 begins. */
export function characterStart(bytes: Uint8Array): number {
  let at = 0
  while (at < Math.min(3, bytes.length) && (bytes[at]! & 0xc0) === 0x80) at++
  return at
}

const encoder = new TextEncoder()
export const byteLength = (text: string) => encoder.encode(text).length

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
