// Where bars stand on an axis of time, as CSS takes it.
export interface Axis {
  begin: number
  end: number
}

export const axisOf = (begin: number, end: number): Axis => ({ begin, end: Math.max(end, begin + 1) })

const within = ({ begin, end }: Axis, ms: number) => Math.min(Math.max(ms, begin), end)
const percent = ({ begin, end }: Axis, ms: number) => `${(100 * ms) / (end - begin)}%`

/** What is short can be seen, too, and nothing stands outside. */
export const barOf = (axis: Axis, from: number, to: number) => ({
  left: `min(${percent(axis, within(axis, from) - axis.begin)}, 100% - 3px)`,
  width: `max(3px, ${percent(axis, Math.max(0, within(axis, to) - within(axis, from)))})`,
})

/** From when until when a task ran; null: it has not been started. */
export function ranOf(task: { launchedTime?: number | null; completedTime?: number | null }, now: number): [number, number] | null {
  const from = task.launchedTime
  return from ? [from, Math.max(from, task.completedTime ?? now)] : null
}
