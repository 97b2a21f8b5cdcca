import { describe, expect, it } from 'vitest'
import { plainOf, spansOf } from '../src/lib/ansi'
import { byteLength, characterStart, LINES_MAX, linesWith, LogBuffer } from '../src/lib/log-buffer'

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

describe('the buffer', () => {
  it('puts chunks together to lines', () => {
    const log = new LogBuffer(0, true)
    log.append('a\nb', 3)
    expect([log.count, log.at(0), log.at(1)]).toEqual([2, 'a', 'b'])
    log.append('c\n', 2)
    expect([log.count, log.at(1), log.end]).toEqual([2, 'bc', 5])
  })
  it('leaves out a line that began before', () => {
    const log = new LogBuffer(10, false)
    log.append('rest of é\nwhole\n', byteLength('rest of é\nwhole\n'))
    expect([log.count, log.at(0), log.begin]).toEqual([1, 'whole', 10 + byteLength('rest of é\n')])
  })
  it('takes earlier lines before it', () => {
    const log = new LogBuffer(100, true)
    log.append('z\n', 2)
    expect(log.prepend('ut\nx\ny\n', 93, false)).toBe(2)
    expect([log.at(0), log.at(1), log.at(2), log.begin]).toEqual(['x', 'y', 'z', 96])
  })
  it('counts from the first whole character, whatever the chunks', () => {
    const bytes = new TextEncoder().encode('损失 一\n损失 二\n')
    for (let cut = 1; cut < 12; cut++)
      for (const size of [1, 2, 5, bytes.length]) {
        const log = new LogBuffer(100 + cut, false)
        const decoder = new TextDecoder()
        for (let at = cut; at < bytes.length; at += size) {
          const whole = log.aligned(bytes.subarray(at, at + size))
          log.append(decoder.decode(whole, { stream: true }), whole.length)
        }
        const first = 100 + byteLength('损失 一\n')
        expect([log.count, log.begin, log.lineOf(first), log.lineOf(first - 1)]).toEqual(cut < byteLength('损失 一\n') ? [1, first, 0, -1] : [0, 100 + bytes.length, -1, -1])
      }
    expect([0, 1, 2].map((cut) => characterStart(bytes.subarray(cut)))).toEqual([0, 2, 1])
  })
  it('lets the first lines go', () => {
    const log = new LogBuffer(0, true)
    log.append('1234\n'.repeat(LINES_MAX + 10), 5 * (LINES_MAX + 10))
    expect([log.count, log.begin]).toEqual([LINES_MAX, 50])
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
    buffer.append('ab\nécd\nrest', 12)
    expect([99, 100, 102, 103, 107, 108, 111, 112].map((at) => buffer.lineOf(at))).toEqual([-1, 0, 0, 1, 1, 2, 2, -1])
  })
})
