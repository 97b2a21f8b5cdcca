// What a person chose and this browser remembers.
import { useSyncExternalStore } from 'react'

export interface Settings {
  theme: 'auto' | 'light' | 'dark' | 'contrast'
  columns: string[]
  jobFilters: { user: string; query: string } | null // of the list of jobs, and who chose them
  singleKeys: boolean // WCAG 2.1.4: shortcuts of one letter can be switched off
  screenReader: boolean // terminals tell what they show
}

const KEY = 'skep.settings'
const INITIAL: Settings = {
  theme: 'auto',
  columns: ['state', 'user', 'vc', 'gpus', 'tasks', 'submitted', 'duration', 'retries', 'actions'],
  jobFilters: null,
  singleKeys: true,
  screenReader: false,
}
const watchers = new Set<() => void>()
let settings: Settings = read()

function read(): Settings {
  try {
    return { ...INITIAL, ...(JSON.parse(localStorage.getItem(KEY) ?? '{}') as Partial<Settings>) }
  } catch {
    return INITIAL // somebody else's text under our key
  }
}

export function settingsApply() {
  document.documentElement.dataset['theme'] = settings.theme
}

export function settingsChange(change: Partial<Settings>) {
  settings = { ...settings, ...change }
  localStorage.setItem(KEY, JSON.stringify(settings))
  settingsApply()
  for (const notify of watchers) notify()
}

/** The list of jobs with the filters and the order that this person chose last. */
export const jobsPath = (user: string) => `/jobs${settings.jobFilters?.user === user && settings.jobFilters.query ? `?${settings.jobFilters.query}` : ''}`

export const settingsGet = () => settings
export const useSettings = () =>
  useSyncExternalStore(
    (notify) => {
      watchers.add(notify)
      return () => void watchers.delete(notify)
    },
    () => settings,
  )
