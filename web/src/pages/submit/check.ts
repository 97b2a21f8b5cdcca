// What the server finds wrong in a job file while it is being written: it is asked when one stops typing, and seldom.
import { useEffect, useRef, useState } from 'react'
import { ApiError, call, type Problem, type Schema } from '../../api/client'

const STILL_MS = 1000 // after the last key
const BUSY_S = 5 // when the server does not say for how long it wants to be left alone

export interface Found {
  text: string // the file in which they are
  problems: Problem[]
}

/** What a refusal says of the file; null: it says nothing of it. */
export function problemsOf(failure: unknown): Problem[] | null {
  if (!(failure instanceof ApiError)) return null
  if (failure.problems.length) return failure.problems
  // its virtual cluster, a storage, a job of which it takes secrets
  return [400, 403, 404].includes(failure.status) ? [{ message: failure.message }] : null
}

/** Of `text`, which can be read as YAML; null: nothing is to be asked now. `path` of the request that checks it. */
export function useCheck(text: string | null, path: string): Found | null {
  const [found, setFound] = useState<Found | null>(null)
  const notBefore = useRef(0) // the server wants no request earlier
  useEffect(() => {
    if (text === null) return
    const stop = new AbortController()
    let timer: ReturnType<typeof setTimeout>
    const ask = async () => {
      try {
        await call<Schema['FileCheck']>('POST', path, { text: { type: 'text/yaml', body: text }, signal: stop.signal })
        setFound({ text, problems: [] })
      } catch (failure) {
        if (stop.signal.aborted) return
        const problems = problemsOf(failure)
        if (problems) setFound({ text, problems })
        else if (failure instanceof ApiError && failure.status === 429) {
          notBefore.current = Date.now() + 1000 * (failure.retryS || BUSY_S)
          wait()
        } // else the server is not there: who submits is told
      }
    }
    const wait = () => {
      timer = setTimeout(() => void ask(), Math.max(STILL_MS, notBefore.current - Date.now()))
    }
    wait()
    return () => {
      clearTimeout(timer)
      stop.abort()
    }
  }, [text, path])
  return found
}
