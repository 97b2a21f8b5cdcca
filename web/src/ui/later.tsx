// Parts of the portal that are loaded when they are shown first. This is not React.lazy: React keeps a fallback on the screen for
// 300 ms at least, and a page that was there after 20 ms would open so much later.
import { useSyncExternalStore, type ComponentType, type ReactNode } from 'react'
import { Loading } from './ui'

interface Later<P> {
  (props: P): ReactNode
  /** Load it now, because it will be shown soon. */
  load: () => void
}

export function later<P extends object>(read: () => Promise<{ default: ComponentType<P> }>, fallback: ReactNode = <Loading />): Later<P> {
  let Part: ComponentType<P> | null = null
  let failure: unknown = null
  let isBegun = false
  const watchers = new Set<() => void>()
  const load = () => {
    if (isBegun) return
    isBegun = true
    const done = () => watchers.forEach((notify) => notify())
    read()
      .then(
        (module) => void (Part = module.default),
        (error: unknown) => void (failure = error ?? new Error('the part could not be loaded')),
      )
      .finally(done)
  }
  const watch = (notify: () => void) => {
    watchers.add(notify)
    return () => void watchers.delete(notify)
  }
  const state = () => failure ?? Part
  const show = (props: P) => {
    load()
    useSyncExternalStore(watch, state)
    if (failure) throw failure // the page's Boundary says so
    return Part ? <Part {...props} /> : fallback
  }
  return Object.assign(show, { load })
}
