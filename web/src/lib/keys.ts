// Shortcuts. A letter does nothing while one types, and all letters can be switched off.
import { useEffect } from 'react'
import { sessionGet } from '../api/client'
import { navigate } from '../router'
import { jobsPath, settingsGet } from './settings'

export const KEYS: [string, string][] = [
  ['?', 'Show this help'],
  ['g h', 'Go home'],
  ['g j', 'Go to the jobs'],
  ['g s', 'Submit a job'],
  ['g c', 'Go to the cluster'],
  ['g p', 'Go to your profile'],
  ['/', 'Search on this page'],
  ['u', 'Undo what was done last, while it is offered'],
  ['↑ ↓', 'In a list: to the row before or after'],
  ['Home End', 'In a list: to the first or last row; in a log: to its beginning or end'],
  ['Space', 'In a list: select the row'],
  ['Shift-↑ Shift-↓', 'In the list of jobs: select the rows between'],
  ['Ctrl-A', 'In the list of jobs: select all shown'],
  ['Enter', 'In a list: open the row'],
  ['Shift-← Shift-→', 'On the title of a column: narrower or wider'],
  ['Ctrl-M', 'In a terminal: to the buttons above it'],
  ['Esc', 'Close a dialog or menu'],
]

const PLACES: Record<string, () => string> = { h: () => '/', j: () => jobsPath(sessionGet() ?? { user: '', admin: false }), s: () => '/submit', c: () => '/cluster', p: () => '/profile' }
const SEQUENCE_MS = 1500

export function isTyping(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false
  return target.isContentEditable || ['INPUT', 'TEXTAREA', 'SELECT'].includes(target.tagName) || !!target.shadowRoot
}

/** The letter of a key; of a keyboard without Latin letters, that of the key's place. */
export const letterOf = ({ key, code }: Pick<KeyboardEvent, 'key' | 'code'>) => (/^[ -~]$/.test(key) ? key : code.replace(/^Key/, '')).toLowerCase()

export function useKeys(onHelp: () => void, isOn: boolean) {
  useEffect(() => {
    if (!isOn) return
    let wentAt = -SEQUENCE_MS
    const onKey = (event: KeyboardEvent) => {
      if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return
      if (!settingsGet().singleKeys) return
      if (event.key === 'u') [...document.querySelectorAll<HTMLButtonElement>('button[data-undo]')].at(-1)?.click()
      if (document.querySelector('dialog[open]')) return
      const place = PLACES[event.key]
      if (event.timeStamp - wentAt < SEQUENCE_MS && place) {
        wentAt = -SEQUENCE_MS
        event.preventDefault()
        navigate(place())
      } else if (event.key === 'g') wentAt = event.timeStamp
      else if (event.key === '?') onHelp()
      else if (event.key === '/') {
        const field = document.querySelector<HTMLInputElement>('main input[type=search]')
        if (!field) return
        event.preventDefault()
        field.focus()
        field.select()
      }
    }
    addEventListener('keydown', onKey)
    return () => removeEventListener('keydown', onKey)
  }, [onHelp, isOn])
}
