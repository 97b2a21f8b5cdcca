// What the server says of jobs that wait and of exits: all of it has words in each other language of the portal.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { exits, reasons } from '../src/i18n/zh'
import { reasonPieces } from '../src/lib/reasons'

const server = (path: string) => readFileSync(join(__dirname, '../../src', path), 'utf8')

/** Of the server's table of reasons: each code with the names of its values. */
const codes = () => [...server('model/reason.c').matchAll(/^ {4}\{"(\w+)",\s+(?:"[^"]*"|\w|\s)+,\s*"([^"]*)",/gm)].map(([, code, values]) => ({ code: code!, values: values!.split(' ').filter((value) => value && !value.endsWith(':plural')).map((value) => value.split(':')[0]!) }))

const table = () => (parse(server('exits/specs.yaml')) as { spec: { reason?: string; solution?: string[] }[] }).spec

describe('reasons of waiting', () => {
  const known = codes()
  it('are all that the server has formats for', () => {
    const formats = [...server('model/reason.h').matchAll(/^#define (REASON_\w+)/gm)].map(([, name]) => name!)
    const used = new Set(server('model/reason.c').match(/\bREASON_[A-Z_]+\b/g))
    expect(formats.filter((name) => !used.has(name))).toEqual([])
    expect(known.length).toBe([...server('model/reason.c').matchAll(/^ {4}\{"/gm)].length)
    expect(known.length).toBeGreaterThan(60)
    expect(new Set(known.map(({ code }) => code)).size).toBe(known.length)
  })
  it('have words for each code, and for no other', () => {
    expect(Object.keys(reasons).sort()).toEqual(known.map(({ code }) => code).sort())
  })
  it('say each value once', () => {
    for (const { code, values } of known) expect([...reasons[code]!.matchAll(/\{(\w+)\}/g)].map(([, name]) => name!).sort(), code).toEqual([...values].sort())
  })
  it('are said part by part', () => {
    const said = (parts: Parameters<typeof reasonPieces>[0]) => reasonPieces(parts, (code) => reasons[code] ?? null)
    expect(said([{ code: 'preempts', values: {} }, { code: 'notEnded', values: {} }, { code: 'holderCount', values: { job: 'ann~a', n: 4 } }])).toEqual([{ words: '正在抢占优先级较低的其他作业' }, { words: '；尚未结束：' }, { value: 'ann~a' }, { words: '（' }, { value: 4 }, { words: '）' }])
  })
  it('stay the server’s text when a part is not known, or none was given', () => {
    const said = (parts: Parameters<typeof reasonPieces>[0]) => reasonPieces(parts, (code) => reasons[code] ?? null)
    expect(said([{ code: 'preempts', values: {} }, { code: 'ofLater', values: {} }])).toBeNull()
    expect(said(null)).toBeNull()
    expect(said(undefined)).toBeNull()
    expect(said([])).toBeNull()
  })
})

describe('the exit table', () => {
  const texts = new Set(table().flatMap(({ reason, solution }) => [...(reason ? [reason] : []), ...(solution ?? [])]))
  it('has words for each reason and each advice, and for no other', () => {
    expect(texts.size).toBeGreaterThan(200)
    expect([...texts].filter((text) => !exits[text])).toEqual([])
    expect(Object.keys(exits).filter((text) => !texts.has(text))).toEqual([])
  })
})
