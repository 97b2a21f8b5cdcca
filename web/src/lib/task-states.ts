// In which state each task of a job is: a letter for each, by role and index, as `tasks=states` of the job's detail has it.
import type { JobDetail, JobState } from '../api/client'

const STATES: Record<string, JobState> = { W: 'WAITING', R: 'RUNNING', E: 'STOPPING', S: 'SUCCEEDED', F: 'FAILED', X: 'STOPPED' }

export interface TaskPlace {
  role: string
  index: number
}

export class TaskStates {
  readonly count: number
  private constructor(readonly roles: { name: string; first: number; letters: string }[]) {
    const last = roles.at(-1)
    this.count = last ? last.first + last.letters.length : 0
  }

  static of(detail: JobDetail): TaskStates {
    let first = 0
    return new TaskStates(
      Object.entries(detail.taskRoles ?? {}).map(([name, { taskRoleStatus }]) => {
        const role = { name, first, letters: taskRoleStatus?.taskStates ?? '' }
        first += role.letters.length
        return role
      }),
    )
  }

  /** Tasks are numbered through all roles, in their order. */
  place(number: number): TaskPlace | undefined {
    const role = number < 0 ? undefined : this.roles.findLast(({ first, letters }) => first <= number && number < first + letters.length)
    return role && { role: role.name, index: number - role.first }
  }

  number({ role, index }: TaskPlace): number {
    const found = this.roles.find(({ name }) => name === role)
    return found && index >= 0 && index < found.letters.length ? found.first + index : -1
  }

  state(number: number): JobState | undefined {
    const place = this.place(number)
    return place && this.stateOf(place)
  }

  stateOf({ role, index }: TaskPlace): JobState | undefined {
    return STATES[this.roles.find(({ name }) => name === role)?.letters[index] ?? '']
  }

  countOf(role: string): number {
    return this.roles.find(({ name }) => name === role)?.letters.length ?? 0
  }

  /** All of them, one letter each. */
  get letters(): string {
    return this.roles.map(({ letters }) => letters).join('')
  }

  /** Of all tasks, or of those of a role. */
  counts(role = ''): Map<JobState, number> {
    const counts = new Map<JobState, number>()
    for (const { name, letters } of this.roles) {
      if (role && name !== role) continue
      for (const letter of letters) {
        const state = STATES[letter]
        if (state) counts.set(state, (counts.get(state) ?? 0) + 1)
      }
    }
    return counts
  }

  /** The numbers of the tasks in this state and of this role; without one, of all. */
  numbers(state = '', role = ''): number[] {
    const found: number[] = []
    for (const { name, first, letters } of this.roles) {
      if (role && name !== role) continue
      for (let i = 0; i < letters.length; i++) if (!state || STATES[letters[i]!] === state) found.push(first + i)
    }
    return found
  }

  /** The indexes of a role's tasks in this state. */
  indexes(role: string, state: JobState): number[] {
    const letters = this.roles.find(({ name }) => name === role)?.letters ?? ''
    return [...letters].flatMap((letter, index) => (STATES[letter] === state ? [index] : []))
  }

  /** The tasks that `main[7]`, or `7` of any role, names. */
  named(text: string): number[] {
    const match = /^(?:(.+)\[)?(\d+)\]?$/.exec(text.trim())
    if (!match) return []
    const roles = match[1] === undefined ? this.roles.map(({ name }) => name) : [match[1]]
    return roles.map((role) => this.number({ role, index: Number(match[2]) })).filter((number) => number >= 0)
  }
}

export const stateOfLetter = (letter: string): JobState | undefined => STATES[letter]

/** What to ask the server for, to have the rows of these tasks: of each role one stretch, of those in one state or of neighbours. */
export interface Stretch {
  role: string
  from: number
  count: number
}

/** `numbers` ascend. `isOfState`: they are all that there are in one state, so that the server leaves out what is between them. */
export function stretchesOf(states: TaskStates, numbers: number[], isOfState = false): Stretch[] {
  const stretches: Stretch[] = []
  for (const number of numbers) {
    const place = states.place(number)
    if (!place) continue
    const last = stretches.at(-1)
    if (last?.role === place.role && (isOfState || last.from + last.count === place.index)) last.count++
    else stretches.push({ role: place.role, from: place.index, count: 1 })
  }
  return stretches
}

/** Neighbours of one state that stand in one line are drawn at once: thousands of cells are a few rectangles. */
export function* runsOf(letters: string, across: number) {
  for (let from = 0; from < letters.length; ) {
    const column = from % across
    const last = Math.min(letters.length, from + across - column)
    let to = from + 1
    while (to < last && letters[to] === letters[from]) to++
    yield { letter: letters[from]!, column, line: (from - column) / across, count: to - from }
    from = to
  }
}
