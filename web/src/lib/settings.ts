// What a person chose and this browser remembers.
import { useSyncExternalStore } from 'react'
import { COLUMN_IDS, COLUMNS_DEFAULT, columnsRead, widthsRead, type ColumnId, type Widths } from './columns'

export interface Settings {
  theme: 'auto' | 'light' | 'dark' | 'contrast'
  columns: ColumnId[]
  widths: Widths // of columns
  jobFilters: { user: string; query: string } | null // of the list of jobs, and who chose them
  singleKeys: boolean // WCAG 2.1.4: shortcuts of one letter can be switched off
  screenReader: boolean // terminals tell what they show
  alertsSeen: string[] // by lib/alerts.ts: alertKey
}

const KEY = 'skep.settings'
const INITIAL: Settings = {
  theme: 'auto',
  columns: COLUMNS_DEFAULT,
  widths: {},
  jobFilters: null,
  singleKeys: true,
  screenReader: false,
  alertsSeen: [],
}
const watchers = new Set<() => void>()
let settings: Settings = read()

/** Of what has been stored, maybe by an older portal; `columnsKnown` are those among which was chosen then. */
export function settingsOf(text: string): Settings {
  const { columnsKnown, ...stored } = JSON.parse(text) as Partial<Settings> & { columnsKnown?: unknown }
  return { ...INITIAL, ...stored, columns: columnsRead(stored.columns, columnsKnown), widths: widthsRead(stored.widths) }
}

export const settingsText = (settings: Settings) => JSON.stringify({ ...settings, columnsKnown: COLUMN_IDS })

function read(): Settings {
  try {
    return settingsOf(localStorage.getItem(KEY) ?? '{}')
  } catch {
    return INITIAL // somebody else's text under our key
  }
}

export function settingsApply() {
  document.documentElement.dataset['theme'] = settings.theme
}

function settingsTake(next: Settings) {
  settings = next
  settingsApply()
  for (const notify of watchers) notify()
}

/** Beside what other tabs have changed meanwhile. */
export function settingsChange(change: Partial<Settings>) {
  const next = { ...read(), ...change }
  localStorage.setItem(KEY, settingsText(next))
  settingsTake(next)
}

/** Another tab has stored something; no key: everything was removed. */
addEventListener('storage', ({ key }) => {
  if (key === KEY || key === null) settingsTake(read())
})

/** The list of jobs with the filters and the order that this person chose last; at first an ordinary user's own jobs. */
export function jobsPath({ user, admin }: { user: string; admin: boolean }): string {
  const chosen = settings.jobFilters?.user === user ? settings.jobFilters.query : admin ? '' : 'user=@me'
  return `/jobs${chosen && `?${chosen}`}`
}

export const settingsGet = () => settings
export const useSettings = () =>
  useSyncExternalStore(
    (notify) => {
      watchers.add(notify)
      return () => void watchers.delete(notify)
    },
    () => settings,
  )
