// The columns of the list of jobs: what each shows, the row above them, and the menu that chooses them and their widths.
import { useRef, useState, type CSSProperties, type KeyboardEvent, type PointerEvent, type ReactNode, type RefObject } from 'react'
import { nameOf, sessionGet, type JobSummary } from '../../api/client'
import { t } from '../../i18n/i18n'
import { layoutOf, WIDTH_STEP, widthClamp, widthOf, type ColumnId, type ColumnLayout, type WideId, type Widths } from '../../lib/columns'
import { orderNext, type JobFilter } from '../../lib/filter'
import { isLive } from '../../lib/job-state'
import { settingsChange, settingsGet, useSettings } from '../../lib/settings'
import { Filtered } from '../../ui/choices'
import { Ago, Button, Check, Duration, Menu, StateBadge } from '../../ui/ui'

export interface Column {
  id: WideId
  title: string
  order?: string
  isNumber?: boolean
  isFiltered?: (filter: JobFilter) => boolean // does a filter choose the rows by it?
  cell: (job: JobSummary) => ReactNode
}

const mayStop = (job: JobSummary) => !!sessionGet()?.admin || job.username === sessionGet()?.user

const NAME = (): Column => ({ id: 'name', title: t('Name'), order: 'jobName', isFiltered: ({ keyword }) => !!keyword, cell: () => null })

export const columnsAll = (onStop?: (job: JobSummary) => void): (Column & { id: ColumnId })[] => [
  { id: 'state', title: t('State'), order: 'state', isFiltered: ({ states }) => states.length > 0, cell: (job) => <StateBadge state={job.state} /> },
  { id: 'user', title: t('User'), order: 'username', isFiltered: ({ users }) => users.length > 0, cell: (job) => job.username },
  { id: 'vc', title: t('Virtual cluster'), order: 'vc', isFiltered: ({ vcs }) => vcs.length > 0, cell: (job) => job.virtualCluster },
  { id: 'gpus', title: t('GPUs'), order: 'totalGpuNumber', isNumber: true, cell: (job) => job.totalGpuNumber },
  { id: 'tasks', title: t('Tasks'), order: 'totalTaskNumber', isNumber: true, cell: (job) => job.totalTaskNumber },
  { id: 'submitted', title: t('Submitted'), order: 'submissionTime', cell: (job) => <Ago ms={job.submissionTime} /> },
  { id: 'duration', title: t('Duration'), cell: (job) => <Duration from={job.launchedTime ?? job.submissionTime} to={job.completedTime} /> },
  { id: 'retries', title: t('Retries'), order: 'retries', isNumber: true, cell: (job) => job.retries },
  { id: 'priority', title: t('Priority'), order: 'jobPriority', isFiltered: ({ priorities }) => priorities.length > 0, cell: (job) => job.jobPriority ?? '–' },
  { id: 'completed', title: t('Ended'), order: 'completionTime', cell: (job) => <Ago ms={job.completedTime} /> },
  { id: 'exit', title: t('Exit code'), isNumber: true, cell: (job) => job.appExitCode ?? '–' },
  { id: 'tags', title: t('Tags'), isFiltered: ({ tags, isArchived }) => tags.length > 0 || isArchived, cell: (job) => job.tags?.join(', ') },
  {
    id: 'actions',
    title: t('Actions'),
    // by keyboard: Space selects the row, and Stop stands above the list
    cell: (job) =>
      isLive(job.state) &&
      mayStop(job) && (
        <Button small tabIndex={-1} aria-label={t('Stop {name}', { name: nameOf(job) })} disabled={job.state === 'STOPPING' || job.executionType === 'STOP'} onClick={() => onStop?.(job)}>
          {t('Stop')}
        </Button>
      ),
  },
]

// ---- widths ----

/** The rows take their columns from the box around them: while one is made wider, no row is drawn anew. */
export const layoutStyle = ({ template, minPx }: ColumnLayout) => ({ '--columns': template, '--columns-min': `${minPx}px` }) as CSSProperties

function layoutShow(box: HTMLElement | null, widths: Widths) {
  for (const [name, value] of Object.entries(layoutStyle(layoutOf(settingsGet().columns, widths)))) box?.style.setProperty(name, String(value))
}

type Box = RefObject<HTMLDivElement | null>

const headOf = (box: Box, id: string) => box.current?.querySelector(`[data-column="${id}"]`) ?? null

/** As wide as it is on the screen, where it is on it. */
const widthNow = (box: Box, id: WideId) => headOf(box, id)?.getBoundingClientRect().width ?? widthOf(id, settingsGet().widths)

function widthStep(box: Box, id: WideId, steps: number): number {
  const px = widthClamp(widthNow(box, id) + steps * WIDTH_STEP)
  settingsChange({ widths: { ...settingsGet().widths, [id]: px } })
  return px
}

function widthForget(id: WideId) {
  const { [id]: _, ...widths } = settingsGet().widths
  settingsChange({ widths })
}

/** The edge of a column, for a pointer. Shift and an arrow on the title, and the menu of columns, do the same. */
function Edge({ id, box }: { id: WideId; box: Box }) {
  const drag = useRef<{ startX: number; startPx: number; before: Widths; widths: Widths | null } | null>(null)
  const start = (event: PointerEvent<HTMLSpanElement>) => {
    if (event.button) return
    event.preventDefault() // no text is selected
    // those before it keep the width that they have, so that the edge stays below the pointer
    const before = (['name', ...settingsGet().columns] as WideId[]).filter((one) => {
      const [own, other] = [headOf(box, id), headOf(box, one)]
      return own && other && other.compareDocumentPosition(own) & Node.DOCUMENT_POSITION_FOLLOWING
    })
    const kept = Object.fromEntries(before.map((one) => [one, Math.round(widthNow(box, one))]))
    drag.current = { startX: event.clientX, startPx: widthNow(box, id), before: { ...settingsGet().widths, ...kept }, widths: null }
    event.currentTarget.setPointerCapture(event.pointerId)
  }
  const move = (event: PointerEvent) => {
    const now = drag.current
    if (!now) return
    now.widths = { ...now.before, [id]: widthClamp(now.startPx + event.clientX - now.startX) }
    layoutShow(box.current, now.widths)
  }
  const end = () => {
    const now = drag.current
    drag.current = null
    if (now?.widths) settingsChange({ widths: now.widths })
  }
  const cancel = () => {
    drag.current = null
    layoutShow(box.current, settingsGet().widths)
  }
  return <span className="column-edge" aria-hidden="true" title={t('Drag to make the column wider or narrower; a double click sets it back')} onPointerDown={start} onPointerMove={move} onPointerUp={end} onPointerCancel={cancel} onDoubleClick={() => widthForget(id)} />
}

// ---- the row above ----

interface HeadProps {
  columns: Column[]
  filter: JobFilter
  change: (changes: Record<string, string | null>) => void
  box: Box
  isNarrow: boolean // there the widths are not for choice
}

function HeadCell({ column, filter, change, box, isNarrow }: Omit<HeadProps, 'columns'> & { column: Column }) {
  const [field, direction] = filter.order.split(',')
  const { id, order, title } = column
  const sort = order && field === order ? (direction === 'ASC' ? 'ascending' : 'descending') : undefined
  const onKey = (event: KeyboardEvent) => {
    const steps = { ArrowLeft: -1, ArrowRight: 1 }[event.key]
    if (isNarrow || !event.shiftKey || !steps) return
    event.preventDefault()
    widthStep(box, id, steps)
  }
  const mark = column.isFiltered?.(filter) && <Filtered />
  return (
    <div role="columnheader" data-column={id} aria-sort={sort} className={column.isNumber ? 'number' : undefined}>
      {order ? (
        <button type="button" aria-keyshortcuts={isNarrow ? undefined : 'Shift+ArrowLeft Shift+ArrowRight'} onKeyDown={onKey} onClick={() => change({ order: orderNext(filter.order, order) })}>
          {title} {mark} {sort === 'ascending' ? '▲' : sort === 'descending' ? '▼' : ''}
        </button>
      ) : (
        <>
          {title} {mark}
        </>
      )}
      {!isNarrow && <Edge id={id} box={box} />}
    </div>
  )
}

interface SelectProps {
  isAll: boolean // of the rows that the page holds
  isSome: boolean
  onAll: () => void
}

export function Head({ columns, isAll, isSome, onAll, ...rest }: HeadProps & SelectProps) {
  return (
    <div className="grid-head" role="row" aria-rowindex={1}>
      <div role="columnheader">
        <input
          type="checkbox"
          aria-label={t('Select all shown')}
          checked={isAll}
          ref={(field) => {
            if (field) field.indeterminate = isSome && !isAll
          }}
          onChange={onAll}
        />
        <span className="hidden-text">{t('Selected')}</span>
      </div>
      {[NAME(), ...columns].map((column) => (
        <HeadCell key={column.id} column={column} {...rest} />
      ))}
    </div>
  )
}

// ---- the menu ----

export function ColumnMenu({ box }: { box: Box }) {
  const { columns, widths } = useSettings()
  const [said, say] = useState('')
  const step = (id: WideId, title: string, steps: number) => say(t('{column}: {n} pixel wide|{column}: {n} pixels wide', { column: title, n: widthStep(box, id, steps) }))
  return (
    <Menu label={t('Columns')}>
      {() => (
        <>
          {[NAME(), ...columnsAll()].map(({ id, title }) => {
            const isShown = id === 'name' || columns.includes(id)
            return (
              <div key={id} className="row row-line column-choice">
                <Check
                  checked={isShown}
                  disabled={id === 'name'} // it is always there
                  onChange={() => id !== 'name' && settingsChange({ columns: isShown ? columns.filter((one) => one !== id) : [...columns, id] })}
                >
                  {title}
                </Check>
                {isShown && (
                  <span className="push row row-line">
                    <Button small aria-label={t('{column}: narrower', { column: title })} onClick={() => step(id, title, -1)}>
                      −
                    </Button>
                    <Button small aria-label={t('{column}: wider', { column: title })} onClick={() => step(id, title, 1)}>
                      +
                    </Button>
                  </span>
                )}
              </div>
            )
          })}
          <Button
            disabled={!Object.keys(widths).length}
            onClick={() => {
              settingsChange({ widths: {} })
              say(t('All columns have the width that they had at first.'))
            }}
          >
            {t('Set all widths back')}
          </Button>
          <span className="hidden-text" role="status">
            {said}
          </span>
        </>
      )}
    </Menu>
  )
}
