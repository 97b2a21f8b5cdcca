import { describe, expect, it } from 'vitest'
import { prerequisitesOf } from '../src/editor/job-detail'

describe('what a job file asks for', () => {
  it('names data, code and output, and no images', () => {
    const text = `prerequisites:
  - {type: dockerimage, name: image, uri: debian}
  - {type: data, name: digits, uri: [https://a/1, https://a/2]}
  - {type: script, name: code, uri: git://b}
  - {type: output, name: models, uri: /out}
  - {type: data, name: empty}
  - nonsense
`
    expect(prerequisitesOf(text)).toEqual([
      { type: 'data', name: 'digits', uris: ['https://a/1', 'https://a/2'] },
      { type: 'script', name: 'code', uris: ['git://b'] },
      { type: 'output', name: 'models', uris: ['/out'] },
      { type: 'data', name: 'empty', uris: [] },
    ])
  })
  it('is nothing of a text without them', () => {
    expect(prerequisitesOf('name: x\n')).toEqual([])
    expect(prerequisitesOf('prerequisites: x\n')).toEqual([])
  })
})
