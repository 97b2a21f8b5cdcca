import { describe, expect, it } from 'vitest'
import { plainOf, spansOf } from '../src/lib/ansi'
import { characterStart, LINES_MAX, linesWith, LogBuffer, readEarlier, readLater, type LogPart } from '../src/lib/log-buffer'

describe('colours', () => {
  it('become spans', () => {
    expect(spansOf('a \x1b[1;31mred\x1b[0m b')).toEqual([
      { text: 'a ', style: '' },
      { text: 'red', style: 'b f1' },
      { text: ' b', style: '' },
    ])
    expect(spansOf('\x1b[38;5;196mx')).toEqual([{ text: 'x', style: 'f9' }])
    expect(spansOf('\x1b[48;2;0;0;255mx')).toEqual([{ text: 'x', style: 'g12' }])
  })
  it('leave no other sequence', () => {
    expect(plainOf('\x1b]0;title\x07a\x1b[2Kb\x1b[?25lc\x00d')).toBe('abcd')
  })
  it('show what a progress bar showed last', () => {
    expect(plainOf('10%\r50%\r100%')).toBe('100%')
    expect(plainOf('done\r')).toBe('done')
  })
})

const bytesOf = (text: string) => new TextEncoder().encode(text)
const byteLength = (text: string) => bytesOf(text).length

describe('the buffer', () => {
  it('puts chunks together to lines', () => {
    const log = new LogBuffer(0, true)
    log.append(bytesOf('a\nb'))
    expect([log.count, log.at(0), log.at(1)]).toEqual([2, 'a', 'b'])
    log.append(bytesOf('c\n'))
    expect([log.count, log.at(1), log.end]).toEqual([2, 'bc', 5])
  })
  it('leaves out a line that began before', () => {
    const log = new LogBuffer(10, false)
    log.append(bytesOf('rest of é\nwhole\n'))
    expect([log.count, log.at(0), log.begin]).toEqual([1, 'whole', 10 + byteLength('rest of é\n')])
  })
  it('takes earlier lines before it', () => {
    const log = new LogBuffer(100, true)
    log.append(bytesOf('z\n'))
    log.prepend(bytesOf('ut\nx\ny\n'), 93, false)
    expect([log.first, log.count]).toEqual([-2, 3])
    expect([log.at(0), log.at(1), log.at(2), log.begin]).toEqual(['x', 'y', 'z', 96])
  })
  it('counts from the first whole character, whatever the chunks', () => {
    const bytes = new TextEncoder().encode('损失 一\n损失 二\n')
    for (let cut = 1; cut < 12; cut++)
      for (const size of [1, 2, 5, bytes.length]) {
        const log = new LogBuffer(100 + cut, false)
        for (let at = cut; at < bytes.length; at += size) log.append(bytes.subarray(at, at + size))
        const first = 100 + byteLength('损失 一\n')
        expect([log.count, log.begin, log.lineOf(first), log.lineOf(first - 1)]).toEqual(cut < byteLength('损失 一\n') ? [1, first, 0, -1] : [0, 100 + bytes.length, -1, -1])
      }
    expect([0, 1, 2].map((cut) => characterStart(bytes.subarray(cut)))).toEqual([0, 2, 1])
  })
  it('lets the first lines go', () => {
    const log = new LogBuffer(0, true)
    log.append(bytesOf('1234\n'.repeat(LINES_MAX + 10)))
    log.dropFirst()
    expect([log.count, log.begin]).toEqual([LINES_MAX, 50])
    expect(log.first).toBe(10)
  })
  const SMALL = { lines: 4, bytes: 100, piece: 30 }
  it('lets the last lines go, and takes them again', () => {
    const log = new LogBuffer(10, true, 0, SMALL)
    log.append(bytesOf('a\nb\nc\nd\nés'))
    log.prepend(bytesOf('1\n2\n'), 6, true)
    expect(log.dropLast()).toBe(true)
    expect([log.count, log.at(0), log.at(3), log.first, log.begin, log.end]).toEqual([4, '1', 'b', -2, 6, 14])
    expect(log.dropLast()).toBe(false)
    expect(log.isFull).toBe(true)
    log.append(bytesOf('c\n'))
    log.dropFirst()
    expect([log.count, log.at(0), log.at(3), log.first, log.begin]).toEqual([4, '2', 'c', -1, 8])
  })
  it('counts the bytes of what is not UTF-8', () => {
    const log = new LogBuffer(0, true, 0, SMALL)
    log.append(Uint8Array.of(0xef, 0xbb, 0xbf, 0xff, 0xfe, 10, 0xc3, 10, 97))
    expect([log.count, log.lineOf(5), log.lineOf(6), log.lineOf(8)]).toEqual([3, 0, 1, 2])
    log.append(Uint8Array.of(10, 98, 10, 99, 10))
    log.dropFirst()
    expect([log.at(0), log.begin, log.end]).toEqual(['\ufffd', 6, 14])
  })
  it('holds no more bytes than it may, and a long line in pieces', () => {
    const log = new LogBuffer(0, true, 0, SMALL)
    for (let i = 0; i < 20; i++) log.append(bytesOf('0123456789'))
    log.dropFirst()
    expect([log.begin, log.end, log.at(0)]).toEqual([120, 200, '0123456789'.repeat(3)])
    expect(log.isFull).toBe(false)
  })
})

describe('a log that is longer than the buffer', () => {
  const LIMITS = { lines: 3000, bytes: 1024 * 1024, piece: 4096 }
  const text = bytesOf(Array.from({ length: 20_000 }, (_, i) => `line ${i} é\n`).join(''))
  const read = (floor = 0) => (from: number, length: number): Promise<LogPart> => {
    const start = Math.max(from, floor)
    return Promise.resolve({ bytes: text.slice(start, start + length), start, floor: start > from ? start : 0, end: text.length })
  }
  const held = (log: LogBuffer) => Array.from({ length: log.count }, (_, i) => log.at(i))

  it('is read from its start to its end and back, without a line that is missing', async () => {
    const log = new LogBuffer(0, true, 0, LIMITS)
    const seen = new Set<string>()
    let most = 0
    const look = () => {
      for (const line of held(log).filter((line) => line.endsWith('é'))) seen.add(line)
      most = Math.max(most, log.count)
    }
    while (log.end < text.length) {
      expect(await readLater(log, read(), 10_000, look)).toBe(text.length)
      look()
    }
    expect([seen.size, log.at(log.count - 1), log.first]).toEqual([20_000, 'line 19999 é', 17_000])
    seen.clear()
    look()
    while (log.begin > log.floor) {
      await readEarlier(log, read(), 10_000, () => undefined)
      look()
    }
    expect([seen.size, log.at(0), log.first, log.begin]).toEqual([20_000, 'line 0 é', 0, 0])
    expect(most).toBeLessThanOrEqual(LIMITS.lines + 1) // and the line that has not ended
    const line = Math.floor(log.count / 2)
    expect(log.at(line)).toBe(`line ${line} é`)
    expect(log.at(log.lineOf(log.end - 1))).toBe(`line ${log.count - 1} é`)
  })
  it('never lets go of the lines to which others come', async () => {
    const end = new LogBuffer(text.length - 1200, false, 0, LIMITS)
    end.append(text.slice(-1200))
    const first = end.at(0)
    expect(await readEarlier(end, read(), 1024 * 1024, () => undefined)).toBe(false)
    expect([end.first, end.at(-end.first)]).toEqual([-1000, first])
    const begin = new LogBuffer(0, true, 0, LIMITS)
    await readLater(begin, read(), 1024 * 1024, () => undefined)
    expect([begin.count, begin.first, begin.at(999)]).toEqual([1000, 0, 'line 999 é'])
    await readLater(begin, read(), 1024 * 1024, () => undefined)
    expect([begin.count, begin.first, begin.at(1000)]).toEqual([2000, 0, 'line 1000 é'])
  })
  it('says what has been removed meanwhile', async () => {
    const log = new LogBuffer(0, true, 0, LIMITS)
    await readLater(log, read(), 1000, () => undefined)
    const end = log.end
    expect(await readLater(log, read(5000), 1000, () => expect.fail('nothing may change'))).toBe(null)
    expect([log.end, log.floor]).toEqual([end, 5000])
  })
  it('shows a piece of a line that is longer than what is read at once', async () => {
    const bytes = bytesOf(`first\n${'x'.repeat(1000)}\nlast\n`)
    const part = (from: number, length: number): Promise<LogPart> => Promise.resolve({ bytes: bytes.slice(from, from + length), start: from, floor: 0, end: bytes.length })
    const log = new LogBuffer(bytes.length - 5, true, 0, LIMITS)
    log.append(bytesOf('last\n'))
    for (let i = 0; i < 20 && log.begin > 0; i++) await readEarlier(log, part, 50, () => undefined)
    expect([log.begin, log.at(0), log.at(log.count - 1)]).toEqual([0, 'first', 'last'])
    expect(held(log).slice(1, -1).join('')).toBe('x'.repeat(1000))
  })
})

describe('search', () => {
  const lines = ['Error: A', 'error: b', 'fine']
  const at = (index: number) => lines[index]!
  it('minds the case when there are capitals', () => {
    expect(linesWith(3, at, 'error')).toEqual([0, 1])
    expect(linesWith(3, at, 'Error')).toEqual([0])
    expect(linesWith(3, at, '')).toEqual([])
  })
})

describe('a place of the log', () => {
  it('is the line in which its byte stands', () => {
    const buffer = new LogBuffer(100, true)
    buffer.append(bytesOf('ab\nécd\nrest'))
    expect([99, 100, 102, 103, 107, 108, 111, 112].map((at) => buffer.lineOf(at))).toEqual([-1, 0, 0, 1, 1, 2, 2, -1])
  })
})
