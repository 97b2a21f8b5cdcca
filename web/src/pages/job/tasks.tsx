// The tasks of a job: a strip with one cell for each, and a table. Both take tens of thousands.
import { useVirtualizer } from '@tanstack/react-virtual'
import { useEffect, useMemo, useRef, useState } from 'react'
import type { JobDetail, Task } from '../../api/client'
import { t } from '../../i18n/i18n'
import { csvOf, fileSave } from '../../lib/csv'
import { Link } from '../../router'
import { Ago, Button, Duration, StateBadge, STATES, stateName } from '../../ui/ui'

interface Row extends Task {
  role: string
}

export function tasksOf(detail: JobDetail): Row[] {
  return Object.entries(detail.taskRoles ?? {}).flatMap(([role, { taskStatuses }]) => (taskStatuses ?? []).map((task) => ({ ...task, role })))
}

const CELL = 11
const GAP = 2
const VARIABLES: Record<string, string> = { WAITING: '--cell-free', RUNNING: '--running', STOPPING: '--stopping', SUCCEEDED: '--succeeded', FAILED: '--failed', STOPPED: '--stopped' }

function Strip({ rows, onPick, describe }: { rows: Row[]; onPick: (row: Row) => void; describe: (row: Row) => string }) {
  const canvas = useRef<HTMLCanvasElement>(null)
  const [width, setWidth] = useState(600)
  const [hover, setHover] = useState<Row | null>(null)
  const size = rows.length > 4000 ? 5 : CELL
  const gap = rows.length > 4000 ? 1 : GAP
  const across = Math.max(1, Math.floor(width / (size + gap)))
  const height = Math.ceil(rows.length / across) * (size + gap)

  useEffect(() => {
    const element = canvas.current!.parentElement!
    const observer = new ResizeObserver(() => setWidth(element.clientWidth))
    observer.observe(element)
    return () => observer.disconnect()
  }, [])
  useEffect(() => {
    const element = canvas.current!
    const scale = devicePixelRatio || 1
    element.width = width * scale
    element.height = height * scale
    const context = element.getContext('2d')!
    context.scale(scale, scale)
    const probe = document.createElement('span') // computed colours: a canvas knows no light-dark()
    element.parentElement!.append(probe)
    const colours = new Map<string, string>()
    for (const [state, variable] of Object.entries(VARIABLES)) {
      probe.style.color = `var(${variable})`
      colours.set(state, getComputedStyle(probe).color)
    }
    probe.remove()
    rows.forEach((row, index) => {
      context.fillStyle = colours.get(row.taskState ?? '') ?? '#888'
      context.fillRect((index % across) * (size + gap), Math.floor(index / across) * (size + gap), size, size)
    })
  })
  const rowAt = (event: React.MouseEvent) => {
    const box = canvas.current!.getBoundingClientRect()
    const column = Math.floor((event.clientX - box.left) / (size + gap))
    const line = Math.floor((event.clientY - box.top) / (size + gap))
    return column < across ? rows[line * across + column] : undefined
  }
  return (
    <div>
      <canvas
        ref={canvas}
        className="strip"
        role="img"
        aria-label={t('One cell for each task; the table below says the same')}
        style={{ width, height }}
        onMouseMove={(event) => setHover(rowAt(event) ?? null)}
        onMouseLeave={() => setHover(null)}
        onClick={(event) => {
          const row = rowAt(event)
          if (row) onPick(row)
        }}
      />
      <p className="small quiet strip-text">{hover ? describe(hover) : ' '}</p>
    </div>
  )
}

const portsOf = (row: Row) =>
  Object.entries(row.containerPorts ?? {})
    .map(([label, ports]) => `${label} ${ports}`)
    .join('; ')

function csvRows(rows: Row[]) {
  const head = ['Role', 'Task Index', 'State', 'Retries', 'IP', 'Ports', 'Exit Type', 'Exit Code', 'Started', 'Ended', 'Node', 'Container ID']
  const time = (ms: number | null | undefined) => (ms ? new Date(ms).toISOString() : '')
  return csvOf([
    head,
    ...rows.map((row) => [
      row.role,
      row.taskIndex,
      row.taskState,
      row.retries,
      row.containerIp,
      portsOf(row),
      row.containerExitSpec?.type,
      row.containerExitCode,
      time(row.launchedTime),
      time(row.completedTime),
      row.containerNodeName,
      row.containerId,
    ]),
  ])
}

const ROW_PX = 31
const TEMPLATE = 'minmax(110px, 1fr) 110px minmax(90px, 1fr) 84px 110px 104px 92px minmax(120px, 1.4fr)'

function TaskTable({ rows, logHref }: { rows: Row[]; logHref: (role: string, index: number) => string }) {
  const box = useRef<HTMLDivElement>(null)
  const virtual = useVirtualizer({ count: rows.length, getScrollElement: () => box.current, estimateSize: () => ROW_PX, overscan: 12 })
  const titles = [t('Task'), t('State'), t('Node'), t('GPUs'), t('Started'), t('Ran'), t('Retries'), t('Exit')]
  return (
    <div className="grid task-grid" ref={box} role="table" aria-label={t('Tasks')} aria-rowcount={rows.length + 1} tabIndex={0} style={{ height: Math.min(460, (rows.length + 1) * ROW_PX + 4) }}>
      <div role="rowgroup">
        <div className="grid-head" role="row" aria-rowindex={1} style={{ gridTemplateColumns: TEMPLATE }}>
          {titles.map((title) => (
            <div key={title} role="columnheader">
              {title}
            </div>
          ))}
        </div>
      </div>
      <div className="grid-rows" role="rowgroup" style={{ height: virtual.getTotalSize() }}>
        {virtual.getVirtualItems().map((item) => {
          const row = rows[item.index]!
          const exit = row.containerExitCode
          return (
            <div key={item.key} role="row" aria-rowindex={item.index + 2} className="grid-row" style={{ gridTemplateColumns: TEMPLATE, height: ROW_PX, transform: `translateY(${item.start}px)` }}>
              <div role="cell">
                <Link href={logHref(row.role, row.taskIndex ?? 0)} title={t('Log of {task}', { task: `${row.role}[${row.taskIndex}]` })}>
                  {row.role}[{row.taskIndex}]
                </Link>
              </div>
              <div role="cell">
                <StateBadge state={row.taskState} />
              </div>
              <div role="cell" title={[row.containerIp, portsOf(row)].filter(Boolean).join(' · ')}>
                {row.containerNodeName ?? '–'}
              </div>
              <div role="cell">{row.containerGpus || '–'}</div>
              <div role="cell">
                <Ago ms={row.launchedTime} />
              </div>
              <div role="cell">
                <Duration from={row.launchedTime} to={row.completedTime} />
              </div>
              <div role="cell">{row.retries}</div>
              <div role="cell" title={row.containerExitSpec?.reason}>
                {exit === null || exit === undefined ? '–' : `${row.containerOriginalExitCode ?? exit} ${row.containerExitSpec?.phrase ?? ''}`}
              </div>
            </div>
          )
        })}
      </div>
    </div>
  )
}

export function Tasks({ name, detail, logHref, onPick }: { name: string; detail: JobDetail; logHref: (role: string, index: number) => string; onPick: (role: string, index: number) => void }) {
  const all = useMemo(() => tasksOf(detail), [detail])
  const [state, setState] = useState('')
  const [text, setText] = useState('')
  const counts = new Map<string, number>()
  for (const row of all) counts.set(row.taskState ?? '', (counts.get(row.taskState ?? '') ?? 0) + 1)
  const rows = useMemo(() => {
    const fits = (row: Row) =>
      (!state || row.taskState === state) &&
      (!text ||
        [`${row.role}[${row.taskIndex}]`, row.containerNodeName, row.containerIp, row.containerId, row.containerExitSpec?.phrase, String(row.containerExitCode ?? '')].some((part) => part?.includes(text)))
    return state || text ? all.filter(fits) : all
  }, [all, state, text])
  const describe = (row: Row) =>
    [`${row.role}[${row.taskIndex}]`, stateName(row.taskState ?? ''), row.containerNodeName, row.containerExitSpec?.phrase].filter(Boolean).join(' · ')
  return (
    <section className="card" aria-label={t('Tasks')}>
      <div className="card-head">
        <h2>{t('Tasks')}</h2>
        <div className="row" role="group" aria-label={t('State')}>
          {STATES.filter((one) => counts.get(one)).map((one) => (
            <Button key={one} small aria-pressed={state === one} onClick={() => setState(state === one ? '' : one)}>
              <StateBadge state={one} /> {counts.get(one)}
            </Button>
          ))}
        </div>
        <input type="search" className="input push" aria-label={t('Task, node, address or exit')} placeholder={t('Task, node, address or exit')} value={text} onChange={(event) => setText(event.target.value)} />
        <Button small onClick={() => fileSave(`${name}-tasks.csv`, 'text/csv', csvRows(rows))}>
          CSV
        </Button>
      </div>
      {all.length > 1 && <Strip rows={rows} describe={describe} onPick={(row) => onPick(row.role, row.taskIndex ?? 0)} />}
      <TaskTable rows={rows} logHref={logHref} />
    </section>
  )
}
