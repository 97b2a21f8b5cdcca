// The columns of the list of jobs: which there are, which are shown, and how wide each is.

export const COLUMN_IDS = ['state', 'user', 'vc', 'gpus', 'tasks', 'submitted', 'duration', 'retries', 'priority', 'completed', 'exit', 'tags', 'actions'] as const
export type ColumnId = (typeof COLUMN_IDS)[number]
/** The name is always shown. */
export type WideId = ColumnId | 'name'
export type Widths = Partial<Record<WideId, number>> // pixels, of those that somebody has made wider or narrower

export const COLUMNS_DEFAULT: ColumnId[] = ['state', 'user', 'vc', 'gpus', 'tasks', 'submitted', 'duration', 'retries', 'actions']
/** Those that there were when choices were stored without saying so. */
const COLUMNS_BEFORE: readonly ColumnId[] = COLUMN_IDS.filter((id) => id !== 'actions')

export const WIDTH_MIN = 48
export const WIDTH_MAX = 1200
/** By which one press of a key or a button makes a column wider. */
export const WIDTH_STEP = 16

export const widthClamp = (px: number) => Math.round(Math.min(WIDTH_MAX, Math.max(WIDTH_MIN, px)))

interface Track {
  min: number // pixels
  share?: number // of the room that is left
}

const SELECT: Track = { min: 34 }
const TRACKS: Record<WideId, Track> = {
  name: { min: 160, share: 1.6 },
  state: { min: 118 },
  user: { min: 70, share: 0.6 },
  vc: { min: 70, share: 0.6 },
  gpus: { min: 64 },
  tasks: { min: 68 },
  submitted: { min: 120 },
  duration: { min: 110 },
  retries: { min: 76 },
  priority: { min: 84 },
  completed: { min: 120 },
  exit: { min: 80 },
  tags: { min: 80, share: 1 },
  actions: { min: 76 },
}

/** At least so wide it is. */
export const widthOf = (id: WideId, widths: Widths) => widths[id] ?? TRACKS[id].min

export interface ColumnLayout {
  template: string // for grid-template-columns; the first track is that of the boxes that select rows
  minPx: number // a narrower window scrolls sideways
}

/** As wide as somebody has made them, the others as they are by themselves. */
export function layoutOf(shown: ColumnId[], widths: Widths): ColumnLayout {
  const tracks = [SELECT, ...(['name', ...shown] as WideId[]).map((id): Track => (widths[id] === undefined ? TRACKS[id] : { min: widths[id] }))]
  return {
    template: tracks.map(({ min, share }) => (share ? `minmax(${min}px, ${share}fr)` : `${min}px`)).join(' '),
    minPx: tracks.reduce((sum, { min }) => sum + min, 0),
  }
}

// ---- what a browser has stored ----

const isColumn = (id: unknown): id is ColumnId => (COLUMN_IDS as readonly unknown[]).includes(id)

/** A column that was not there when somebody chose is shown as it is to everybody who has not chosen. */
export function columnsRead(stored: unknown, known: unknown): ColumnId[] {
  if (!Array.isArray(stored)) return COLUMNS_DEFAULT
  const then: readonly unknown[] = Array.isArray(known) ? known : COLUMNS_BEFORE
  const chosen = stored.filter(isColumn)
  return [...chosen, ...COLUMNS_DEFAULT.filter((id) => !then.includes(id) && !chosen.includes(id))]
}

export function widthsRead(stored: unknown): Widths {
  if (typeof stored !== 'object' || stored === null) return {}
  const pairs = Object.entries(stored).filter(([id, px]) => id in TRACKS && typeof px === 'number' && Number.isFinite(px))
  return Object.fromEntries(pairs.map(([id, px]) => [id, widthClamp(px as number)]))
}
