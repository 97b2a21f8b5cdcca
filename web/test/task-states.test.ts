import { describe, expect, it } from 'vitest'
import './browser'
import type { JobDetail } from '../src/api/client'
import { runsOf, stretchesOf, TaskStates } from '../src/lib/task-states'

const detail = { taskRoles: { ps: { taskRoleStatus: { name: 'ps', taskStates: 'RR' } }, none: { taskRoleStatus: { name: 'none', taskStates: '' } }, worker: { taskRoleStatus: { name: 'worker', taskStates: 'RFWRX' } } } } as unknown as JobDetail
const states = TaskStates.of(detail)

describe('the states of tasks', () => {
  it('number them through all roles', () => {
    expect(states.count).toBe(7)
    expect(states.place(1)).toEqual({ role: 'ps', index: 1 })
    expect(states.place(2)).toEqual({ role: 'worker', index: 0 })
    expect(states.place(7)).toBeUndefined()
    expect(states.place(-1)).toBeUndefined()
    expect(states.number({ role: 'worker', index: 4 })).toBe(6)
    expect(states.number({ role: 'worker', index: 5 })).toBe(-1)
    expect(states.number({ role: 'other', index: 0 })).toBe(-1)
  })
  it('are counted and found', () => {
    expect([...states.counts()]).toEqual([['RUNNING', 4], ['FAILED', 1], ['WAITING', 1], ['STOPPED', 1]])
    expect([...states.counts('worker')]).toEqual([['RUNNING', 2], ['FAILED', 1], ['WAITING', 1], ['STOPPED', 1]])
    expect(states.counts('none').size).toBe(0)
    expect(states.numbers('RUNNING')).toEqual([0, 1, 2, 5])
    expect(states.numbers('RUNNING', 'worker')).toEqual([2, 5])
    expect(states.numbers('', 'worker')).toEqual([2, 3, 4, 5, 6])
    expect(states.numbers()).toHaveLength(7)
    expect(states.indexes('worker', 'RUNNING')).toEqual([0, 3])
    expect(states.state(6)).toBe('STOPPED')
    expect(states.countOf('worker')).toBe(5)
    expect(states.countOf('other')).toBe(0)
  })
  it('are drawn as few rectangles as there can be', () => {
    expect([...runsOf('RRRRRWWRR', 4)].map(({ letter, column, line, count }) => [letter, column, line, count])).toEqual([
      ['R', 0, 0, 4],
      ['R', 0, 1, 1],
      ['W', 1, 1, 2],
      ['R', 3, 1, 1],
      ['R', 0, 2, 1],
    ])
    expect([...runsOf('', 4)]).toEqual([])
    const letters = 'RWF'.repeat(3000)
    expect([...runsOf(letters, 7)].reduce((sum, { count }) => sum + count, 0)).toBe(letters.length)
    expect([...runsOf('W'.repeat(20_000), 321)]).toHaveLength(63)
  })
  it('are found by name', () => {
    expect(states.named('1')).toEqual([1, 3])
    expect(states.named('worker[1]')).toEqual([3])
    expect(states.named('worker[9]')).toEqual([])
    expect(states.named('n1')).toEqual([])
  })
  it('of a job without tasks are none', () => {
    expect(TaskStates.of({} as JobDetail).count).toBe(0)
  })
  it('say which rows to ask for', () => {
    expect(stretchesOf(states, [1, 2, 3])).toEqual([{ role: 'ps', from: 1, count: 1 }, { role: 'worker', from: 0, count: 2 }])
    expect(stretchesOf(states, states.numbers('RUNNING').slice(2), true)).toEqual([{ role: 'worker', from: 0, count: 2 }])
    expect(stretchesOf(states, [3, 5, 6])).toEqual([{ role: 'worker', from: 1, count: 1 }, { role: 'worker', from: 3, count: 2 }]) // what is between them is not asked for
    expect(stretchesOf(states, [])).toEqual([])
  })
})
