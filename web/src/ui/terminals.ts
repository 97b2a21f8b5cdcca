// The terminals of this tab of the browser. They go on while one looks at other pages; the server keeps them for a minute
// while the page is loaded again.
import { useSyncExternalStore } from 'react'
import { sessionGet, sessionWatch } from '../api/client'
import type { ExecTarget } from '../lib/exec-session'
import { TaskTerminal } from './terminal'

export interface Remembered extends ExecTarget {
  user: string
  id: string
}

const KEY = 'skep.terminals'
const watchers = new Set<() => void>()
let terminals: TaskTerminal[] = []

function changed() {
  const user = sessionGet()?.user ?? ''
  const live = terminals.filter(({ session }) => session.id && session.state.kind !== 'ended')
  const remembered: Remembered[] = live.map(({ session }) => ({ ...session.target, user, id: session.id }))
  sessionStorage.setItem(KEY, JSON.stringify(remembered))
  terminals = [...terminals]
  for (const notify of watchers) notify()
}

const starting = new Set<TaskTerminal>()

/** It is shown when its program has been started. */
export async function terminalOpen(target: ExecTarget, words: string[]): Promise<TaskTerminal> {
  const terminal = new TaskTerminal(target, changed)
  starting.add(terminal)
  try {
    await terminal.session.start(words)
  } catch (error) {
    starting.delete(terminal)
    terminal.dispose()
    throw error
  }
  if (starting.delete(terminal)) terminals = [...terminals, terminal] // else somebody has signed out
  changed()
  return terminal
}

/** Take it off the page. A program that still runs there is ended by who calls. */
export function terminalRemove(terminal: TaskTerminal) {
  terminal.dispose()
  terminals = terminals.filter((one) => one !== terminal)
  changed()
}

function remember() {
  const user = sessionGet()?.user
  const remembered = JSON.parse(sessionStorage.getItem(KEY) ?? '[]') as Remembered[]
  for (const { user: whose, id, ...target } of remembered) {
    if (whose !== user) continue
    const terminal = new TaskTerminal(target, changed)
    terminals = [...terminals, terminal]
    terminal.session.resume(id)
  }
}

// who has signed out leaves no terminal to the next one
sessionWatch(() => {
  if (sessionGet()) return
  for (const terminal of [...terminals, ...starting]) terminal.dispose()
  starting.clear()
  terminals = []
  changed()
})
remember()

export const useTerminals = () =>
  useSyncExternalStore(
    (notify) => {
      watchers.add(notify)
      return () => void watchers.delete(notify)
    },
    () => terminals,
  )
