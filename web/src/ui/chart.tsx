// One line over time: what was used, beside what was given. Arrow keys read it point by point.
import { useState } from 'react'
import { languageGet, t } from '../i18n/i18n'
import { lines, nearest, neighbour, pointAt, type Point } from '../lib/series'

const WIDTH = 600
const HEIGHT = 90

interface ChartProps {
  title: string
  points: readonly Point[]
  beginMs: number
  stepMs: number
  mean: number
  most: number
  given?: number
  format: (value: number) => string
}

export function Chart({ title, points, beginMs, stepMs, mean, most, given, format }: ChartProps) {
  const [atMs, setAtMs] = useState<number | null>(null) // an instant: which point it is changes as time goes on
  const found = atMs === null ? -1 : pointAt(points, beginMs, stepMs, atMs)
  const at = found < 0 ? null : found
  const setAt = (index: number | null) => setAtMs(index === null ? null : beginMs + index * stepMs)
  const full = Math.max(given ?? 0, most) * 1.05
  const instant = (index: number) => new Date(beginMs + index * stepMs).toLocaleString(languageGet(), { dateStyle: 'short', timeStyle: 'medium' })
  const value = at === null ? null : (points[at] ?? null)
  const summary = given
    ? t('{mean} on average, {most} at most, of {given}', { mean: format(mean), most: format(most), given: format(given) })
    : t('{mean} on average, {most} at most', { mean: format(mean), most: format(most) })
  const said = at !== null && value !== null ? `${instant(at)}: ${format(value)}` : summary
  const x = at === null || points.length < 2 ? 0 : (at / (points.length - 1)) * WIDTH
  const givenY = given && full > 0 ? HEIGHT - (given / full) * HEIGHT : null
  return (
    <figure className="chart">
      <figcaption>
        <strong>{title}</strong>
        <span className="small quiet" aria-live="polite">
          {said}
        </span>
      </figcaption>
      <div
        className="chart-box"
        role="slider"
        tabIndex={0}
        aria-label={title}
        aria-valuemin={0}
        aria-valuemax={points.length - 1}
        aria-valuenow={at ?? points.length - 1}
        aria-valuetext={said}
        onPointerMove={(event) => {
          const box = event.currentTarget.getBoundingClientRect()
          const index = nearest(points, (event.clientX - box.left) / box.width)
          setAt(index < 0 ? null : index)
        }}
        onPointerLeave={() => setAt(null)}
        onBlur={() => setAt(null)}
        onKeyDown={(event) => {
          const now = at ?? nearest(points, 1)
          const next: Record<string, number> = {
            ArrowLeft: at === null ? now : neighbour(points, now, -1),
            ArrowRight: neighbour(points, now, 1),
            Home: nearest(points, 0),
            End: nearest(points, 1),
          }
          const to = next[event.key]
          if (to === undefined || to < 0) return
          event.preventDefault()
          setAt(to)
        }}
      >
        <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" aria-hidden="true">
          {givenY !== null && <line className="chart-given" x1={0} x2={WIDTH} y1={givenY} y2={givenY} />}
          {lines(points, full, WIDTH, HEIGHT).map((run, index) => (
            <polyline key={index} className="chart-line" points={run} />
          ))}
          {at !== null && <line className="chart-cursor" x1={x} x2={x} y1={0} y2={HEIGHT} />}
        </svg>
      </div>
      <div className="chart-ends small quiet" aria-hidden="true">
        <span>{instant(0)}</span>
        <span>{instant(Math.max(0, points.length - 1))}</span>
      </div>
    </figure>
  )
}
