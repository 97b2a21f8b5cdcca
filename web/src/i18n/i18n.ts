// Words of the portal. English stands in the code, other languages in catalogues by the English text
// (a test finds texts that a catalogue lacks). "{n} job|{n} jobs" has a form for one and a form for more.
import { useSyncExternalStore } from 'react'

export type Language = 'en' | 'zh-CN'
type Catalogue = Record<string, string>

export const LANGUAGES: { code: Language; name: string }[] = [
  { code: 'en', name: 'English' },
  { code: 'zh-CN', name: '简体中文' },
]

const KEY = 'skep.language'
const watchers = new Set<() => void>()
let language: Language = 'en'
let catalogue: Catalogue | null = null
let server: { reasons: Catalogue; exits: Catalogue } | null = null // what the server says in English

export const languageGet = () => language

export function languagePreferred(): Language {
  const stored = localStorage.getItem(KEY)
  if (stored === 'en' || stored === 'zh-CN') return stored
  return languageOf(navigator.languages)
}

/** The first of those that somebody reads, in their order, which the portal has; else English. */
export function languageOf(names: readonly string[]): Language {
  const first = names.map((name) => name.toLowerCase().split('-')[0]).find((name) => name === 'en' || name === 'zh')
  return first === 'zh' ? 'zh-CN' : 'en'
}

export async function languageSet(next: Language, remember = true) {
  const words = next === 'zh-CN' ? await import('./zh') : null
  catalogue = words?.default ?? null
  server = words
  language = next
  document.documentElement.lang = next
  if (remember) localStorage.setItem(KEY, next)
  for (const notify of watchers) notify()
}

export const useLanguage = () =>
  useSyncExternalStore(
    (notify) => {
      watchers.add(notify)
      return () => void watchers.delete(notify)
    },
    () => language,
  )

export type Values = Record<string, string | number>

export function fill(text: string, values: Values = {}): string {
  const forms = text.split('|')
  const count = values['n']
  const form = forms.length > 1 && typeof count === 'number' && count !== 1 ? forms[1]! : forms[0]!
  return form.replace(/\{(\w+)\}/g, (whole, name: string) => {
    const value = values[name]
    return value === undefined ? whole : typeof value === 'number' ? value.toLocaleString(language) : value
  })
}

/** What the part of a reason with this code says in the language of the reader; null: the server's text is all there is. */
export const reasonWords = (code: string) => server?.reasons[code] ?? null
/** A text of the exit table, likewise. */
export const exitWords = (text: string) => server?.exits[text] ?? null

export function t(text: string, values?: Values): string {
  return fill(catalogue?.[text] ?? text, values)
}
