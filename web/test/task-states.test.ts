import { describe, expect, it } from 'vitest'
import './browser'
import type { JobDetail } from '../src/api/client'
import { stretchesOf, TaskStates } from '../src/lib/task-states'

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
    expect(states.numbers('RUNNING')).toEqual([0, 1, 2, 5])
    expect(states.numbers()).toHaveLength(7)
    expect(states.indexes('worker', 'RUNNING')).toEqual([0, 3])
    expect(states.state(6)).toBe('STOPPED')
    expect(states.countOf('worker')).toBe(5)
    expect(states.countOf('other')).toBe(0)
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
