// Points of use over time, as a chart needs them.

export type Point = number | null

/** Runs of known points, as SVG polylines in a box of width × height; a lone point is a line of a step around it. */
export function lines(points: readonly Point[], full: number, width: number, height: number): string[] {
  const step = points.length > 1 ? width / (points.length - 1) : 0
  const runs: string[] = []
  let run: string[] = []
  const end = (index: number) => {
    if (run.length === 1) {
      const y = run[0]!.split(',')[1]
      const [from, to] = step ? [Math.max(0, (index - 1.5) * step), Math.min(width, (index - 0.5) * step)] : [0, width]
      run = [`${from.toFixed(1)},${y}`, `${to.toFixed(1)},${y}`]
    }
    if (run.length) runs.push(run.join(' '))
    run = []
  }
  points.forEach((point, index) => {
    if (point === null) end(index)
    else run.push(`${(index * step).toFixed(1)},${(height - Math.min(1, full > 0 ? point / full : 0) * height).toFixed(1)}`)
  })
  end(points.length)
  return runs
}

/** The point at an index; where nothing is known, the nearest one that is. -1: there is none. */
function known(points: readonly Point[], wanted: number): number {
  for (let away = 0; away < points.length; away++)
    for (const index of [wanted - away, wanted + away]) if (points[index] !== undefined && points[index] !== null) return index
  return -1
}

/** The point under a place of 0 … 1. */
export function nearest(points: readonly Point[], place: number): number {
  return known(points, Math.round(Math.min(1, Math.max(0, place)) * (points.length - 1)))
}

/** The point of an instant, also after points have come, gone or been summed up. */
export function pointAt(points: readonly Point[], beginMs: number, stepMs: number, instantMs: number): number {
  return known(points, Math.min(points.length - 1, Math.max(0, Math.floor((instantMs - beginMs) / stepMs))))
}

/** The next known point in a direction; the same when there is none. */
export function neighbour(points: readonly Point[], from: number, direction: 1 | -1): number {
  for (let index = from + direction; index >= 0 && index < points.length; index += direction) if (points[index] !== null) return index
  return from
}
