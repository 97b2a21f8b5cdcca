import { describe, expect, it } from 'vitest'
import { isListed, taskFilterOf, taskFilterQuery, taskFilterWords } from '../src/lib/task-filter'

const of = (text: string) => taskFilterOf(new URLSearchParams(text))

describe('the filters of the table of tasks', () => {
  it('are what the address says', () => {
    expect(of('')).toEqual({ state: '', exitTypes: [], exitCodes: [], nodes: [], order: '' })
    expect(of('state=FAILED&exitType=USER_FAILURE,PLATFORM_FAILURE&exitCode=1,-7200&node=n1&order=exitType,DESC')).toEqual({
      state: 'FAILED',
      exitTypes: ['USER_FAILURE', 'PLATFORM_FAILURE'],
      exitCodes: ['1', '-7200'],
      nodes: ['n1'],
      order: 'exitType,DESC',
    })
  })
  it('leave out what the server would refuse', () => {
    expect(of('exitCode=x,1,1.5,9999999999&order=node,UP')).toEqual({ state: '', exitTypes: [], exitCodes: ['1'], nodes: [], order: '' })
  })
  it('need the server, but for the state', () => {
    expect(isListed(of('state=FAILED'))).toBe(false)
    for (const text of ['exitType=A', 'exitCode=0', 'node=n1', 'order=state,ASC']) expect(isListed(of(text))).toBe(true)
  })
  it('are what the API takes', () => {
    expect(taskFilterQuery(taskFilterWords(of('exitCode=1,2&order=state,ASC'), 'main', ''))).toBe('role=main&exitCode=1%2C2&order=state%2CASC')
    expect(taskFilterQuery({ role: '', from: 0, limit: undefined })).toBe('from=0')
  })
})
