import { describe, expect, it } from 'vitest'
import { blocksOf, headingLevels, inlinesOf } from '../src/lib/markdown'

describe('blocks of Markdown', () => {
  it('are headings, paragraphs, lists, quotes and code', () => {
    expect(blocksOf('# Train #\n\nOne line\nand *another*.\n- a\n- b\n  goes on\n\n1. x\n2) y\n\n> said\n> so\n```sh\n# no heading\necho "*"\n```\nend')).toEqual([
      { kind: 'heading', level: 1, parts: ['Train'] },
      { kind: 'paragraph', parts: ['One line\nand ', { kind: 'em', parts: ['another'] }, '.'] },
      { kind: 'list', isOrdered: false, items: [['a'], ['b goes on']] },
      { kind: 'list', isOrdered: true, items: [['x'], ['y']] },
      { kind: 'quote', parts: ['said\nso'] },
      { kind: 'code', text: '# no heading\necho "*"' },
      { kind: 'paragraph', parts: ['end'] },
    ])
  })
  it('have headings below that of the page, without a gap', () => {
    expect(headingLevels(blocksOf('## a\n#### b\n# c\n### d\n'), 1)).toEqual([2, 3, 2, 3])
    expect(headingLevels(blocksOf('### a\ntext\n'), 1)).toEqual([2, 2])
    expect(headingLevels([], 1)).toEqual([])
  })
  it('end with the text, closed or not', () => {
    expect(blocksOf('```\nopen')).toEqual([{ kind: 'code', text: 'open' }])
    expect(blocksOf('')).toEqual([])
    expect(blocksOf('a\r\n\r\nb')).toHaveLength(2)
  })
  it.each(['*'.repeat(16384), '['.repeat(16384), '_a'.repeat(8192), '`'.repeat(16383), '> '.repeat(8192), '- '.repeat(8192), `${'#'.repeat(7)} a`, 'http://'.repeat(2340)])('are found in any text: %.4s', (odd) => {
    expect(blocksOf(odd).length).toBeGreaterThan(0)
  })
})

describe('parts of a line of Markdown', () => {
  it('are code, emphasis and links', () => {
    expect(inlinesOf('a `b*c*` **d** _e_ [f](https://g/h) https://i/j.')).toEqual([
      'a ',
      { kind: 'code', text: 'b*c*' },
      ' ',
      { kind: 'strong', parts: ['d'] },
      ' ',
      { kind: 'em', parts: ['e'] },
      ' ',
      { kind: 'link', href: 'https://g/h', parts: ['f'] },
      ' ',
      { kind: 'link', href: 'https://i/j', parts: ['https://i/j'] },
      '.',
    ])
  })
  it.each(['[a](javascript:alert`1`)', '[a](data:text/html,x)', '[a](/jobs)', '<b>a</b>', '2 * 3 * 4', 'snake_case_name'])('stay text where they would run, or are none: %s', (text) => {
    expect(JSON.stringify(inlinesOf(text))).not.toContain('"link"')
    expect(JSON.stringify(inlinesOf(text))).not.toContain('"em"')
  })
})
