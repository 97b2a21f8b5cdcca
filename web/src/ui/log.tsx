// The log of one attempt of a task: the end first, earlier parts when one asks for them, new lines as they come.
import { useVirtualizer } from '@tanstack/react-virtual'
import { memo, useCallback, useEffect, useLayoutEffect, useMemo, useReducer, useRef, useState, type FormEvent, type ReactNode } from 'react'
import { ApiError, backoffMs, request } from '../api/client'
import { logDownload } from '../api/logs'
import { t } from '../i18n/i18n'
import { plainOf, spansOf } from '../lib/ansi'
import { bytes as bytesText } from '../lib/format'
import { characterStart, linesWith, LogBuffer } from '../lib/log-buffer'
import { Button, Check, ErrorNote, useToast } from './ui'

const FIRST_BYTES = 256 * 1024
const MORE_BYTES = 2 * 1024 * 1024
const BEFORE_BYTES = 64 * 1024 // of a place that one jumps to
const LINE_PX = 19

interface Source {
  url: string // of the log, without a query
  isLive: boolean
  at: number | null // open it there and stand still, instead of at its end
}

interface State {
  buffer: LogBuffer | null
  error: unknown
  isLastLines: boolean // the log is gone, this is what the history kept
  isConnected: boolean
}

interface Part {
  bytes: Uint8Array
  start: number // of these bytes in the log
  floor: number // where the log begins: what came before has been removed
  end: number // of the log, when it was asked
  isLastLines: boolean // the log is gone, this is what the history kept
}

/** At most `length` bytes of the log from the byte `from` on; from null: its last ones. The reply says all else that is to be known. */
async function logPart(url: string, from: number | null, length: number, signal?: AbortSignal): Promise<Part> {
  const reply = await request('GET', `${url}?${from === null ? `tail=${length}` : `offset=${from}`}`, signal ? { signal } : {})
  const number = (name: string) => Number(reply.headers.get(name) ?? 0)
  const isLastLines = reply.headers.has('X-Skep-Log')
  const removed = number('X-Skep-Removed')
  const start = from === null ? number('X-Skep-Offset') : from + removed
  const floor = removed ? start : 0
  const end = start + number('X-Skep-Length')
  const wanted = isLastLines ? Infinity : Math.min(length, Math.max(0, end - start))
  const parts: Uint8Array[] = []
  let count = 0
  const reader = reply.body!.getReader()
  while (count < wanted) {
    const { done, value } = await reader.read()
    if (done) break
    const part = value.subarray(0, wanted - count)
    parts.push(part)
    count += part.length
  }
  void reader.cancel().catch(() => undefined)
  const bytes = new Uint8Array(count)
  let at = 0
  for (const part of parts) {
    bytes.set(part, at)
    at += part.length
  }
  return { bytes, start, floor, end, isLastLines }
}

/** The byte at which begins what was written at a time; null: only the last lines are left. */
async function offsetAt(url: string, ms: number): Promise<number | null> {
  const reply = await request('GET', `${url}?since=${ms}`)
  void reply.body?.cancel()
  const offset = reply.headers.get('X-Skep-Offset')
  return offset === null ? null : Number(offset)
}

function useLog(source: Source) {
  const [state, setState] = useState<State>({ buffer: null, error: null, isLastLines: false, isConnected: false })
  const [, redraw] = useReducer((count: number) => count + 1, 0)
  const waiting = useRef(false)
  const isLive = useRef(source.isLive)
  isLive.current = source.isLive

  const draw = useCallback(() => {
    if (waiting.current) return
    waiting.current = true
    requestAnimationFrame(() => {
      waiting.current = false
      redraw()
    })
  }, [])

  useEffect(() => {
    const stop = new AbortController()
    let buffer: LogBuffer | null = null
    const decoder = new TextDecoder()

    const begin = async () => {
      const tail = source.at === null
      let part = await logPart(source.url, tail ? null : Math.max(0, source.at! - BEFORE_BYTES), tail ? FIRST_BYTES : BEFORE_BYTES + FIRST_BYTES, stop.signal)
      let isPlace = !tail
      if (isPlace && !part.isLastLines && source.at! >= part.end) {
        isPlace = false // there is no such place: the end
        part = await logPart(source.url, null, FIRST_BYTES, stop.signal)
      }
      const { bytes, start, floor, isLastLines } = part
      buffer = new LogBuffer(start, start === floor, floor)
      const whole = buffer.aligned(bytes)
      buffer.append(decoder.decode(whole, { stream: true }), whole.length)
      if (isLastLines && bytes.at(-1) !== 10) buffer.append('\n', 0)
      setState({ buffer, error: null, isLastLines, isConnected: !isLastLines && !isPlace })
      return !isLastLines && !isPlace
    }
    const follow = async () => {
      const reply = await request('GET', `${source.url}?offset=${buffer!.end}&follow=true`, { signal: stop.signal })
      setState((before) => ({ ...before, isConnected: true, error: null }))
      const reader = reply.body!.getReader()
      for (;;) {
        const { done, value } = await reader.read()
        if (done) return
        const whole = buffer!.aligned(value)
        buffer!.append(decoder.decode(whole, { stream: true }), whole.length)
        draw()
      }
    }
    const run = async () => {
      for (let tries = 0; !stop.signal.aborted; tries++) {
        try {
          if (!buffer && !(await begin())) return
          await follow()
          setState((before) => ({ ...before, isConnected: false }))
          return // it has said everything
        } catch (error) {
          if (stop.signal.aborted) return
          const isThere = !(error instanceof ApiError) || error.status === 0 || error.status === 429 || error.status >= 500
          const isYetToCome = error instanceof ApiError && error.status === 404 && isLive.current
          setState((before) => ({ ...before, isConnected: false, error: isThere && buffer ? null : error }))
          if (!isThere && !isYetToCome) return
          await new Promise((resolve) => setTimeout(resolve, backoffMs(Math.min(tries, 5))))
        }
      }
    }
    void run()
    return () => stop.abort()
  }, [source.url, source.at, draw])

  return { ...state, draw }
}

// ---- lines ----

function marked(text: string, mark: string): ReactNode {
  if (!mark) return text
  const isExact = mark !== mark.toLowerCase()
  const where = isExact ? text : text.toLowerCase()
  const parts: ReactNode[] = []
  let at = 0
  for (let found = where.indexOf(mark); found >= 0; found = where.indexOf(mark, at)) {
    if (found > at) parts.push(text.slice(at, found))
    parts.push(<mark key={found}>{text.slice(found, found + mark.length)}</mark>)
    at = found + mark.length
  }
  parts.push(text.slice(at))
  return parts
}

const Line = memo(function Line({ text, mark }: { text: string; mark: string }) {
  // a line of megabytes would take the page with it
  const spans = spansOf(text.length > 20_000 ? `${text.slice(0, 20_000)} …` : text)
  return (
    <>
      {spans.map((span, i) =>
        span.style ? (
          <span key={i} className={span.style}>
            {marked(span.text, mark)}
          </span>
        ) : (
          <span key={i}>{marked(span.text, mark)}</span>
        ),
      )}
    </>
  )
})

/** A time of this machine's clock, to which the log is opened. */
function Jump({ url, onJump }: { url: string; onJump: (offset: number) => void }) {
  const toast = useToast()
  const submit = async (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault()
    const ms = new Date(String(new FormData(event.currentTarget).get('time'))).getTime()
    if (Number.isNaN(ms)) return
    try {
      const offset = await offsetAt(url, ms)
      if (offset === null) toast(t('The log itself has been removed. These are the last lines that the history kept.'), 'error')
      else onJump(offset)
    } catch (failure) {
      toast(failure instanceof Error ? failure.message : String(failure), 'error')
    }
  }
  return (
    <form className="row" onSubmit={(event) => void submit(event)}>
      <input type="datetime-local" name="time" step={1} required className="input" aria-label={t('Jump to a time')} title={t('Jump to a time')} />
      <Button type="submit">{t('Jump')}</Button>
    </form>
  )
}

interface LogProps {
  url: string
  isLive: boolean
  name: string
  at?: number | null
  onEnd?: () => void
  onJump?: (offset: number) => void
}

export function Log({ url, isLive, name, at = null, onEnd, onJump }: LogProps) {
  const source = useMemo(() => ({ url, isLive, at }), [url, isLive, at])
  const { buffer, error, isLastLines, isConnected, draw } = useLog(source)
  const [isFollowing, setFollowing] = useState(at === null)
  const [isWrapped, setWrapped] = useState(false)
  const [mark, setMark] = useState('')
  const [hit, setHit] = useState(0)
  const [isBusy, setBusy] = useState(false)
  const box = useRef<HTMLDivElement>(null)
  const toast = useToast()
  const count = buffer?.count ?? 0

  const virtual = useVirtualizer({ count, getScrollElement: () => box.current, estimateSize: () => LINE_PX, overscan: 20 })
  useEffect(() => virtual.measure(), [isWrapped, virtual])

  const goEnd = useCallback(() => {
    const element = box.current
    if (element) element.scrollTop = element.scrollHeight
  }, [])
  useLayoutEffect(() => {
    if (isFollowing) goEnd()
  })

  const hits = useMemo(
    () => (buffer ? linesWith(count, (index) => plainOf(buffer.at(index)), mark) : []),
    // only what one searches for and what there is
    [buffer, count, mark],
  )
  const goHit = (to: number) => {
    if (!hits.length) return
    const next = (to + hits.length) % hits.length
    setHit(next)
    setFollowing(false)
    virtual.scrollToIndex(hits[next]!, { align: 'center' })
  }

  // the place that one has jumped to: in the middle of the window, and marked
  const place = at !== null && buffer ? buffer.lineOf(at) : -1
  useEffect(() => {
    if (place < 0) return
    virtual.scrollToIndex(place, { align: 'center' })
    box.current?.scrollIntoView({ block: 'nearest' }) // in a low window the log may stand below what was found
  }, [place, virtual])

  const onScroll = () => {
    if (at !== null) return // it stands still
    const element = box.current!
    const isAtEnd = element.scrollHeight - element.scrollTop - element.clientHeight < LINE_PX * 1.5
    if (isAtEnd !== isFollowing) setFollowing(isAtEnd)
  }

  const earlier = async () => {
    if (!buffer) return
    setBusy(true)
    setFollowing(false)
    try {
      const from = Math.max(buffer.floor, buffer.begin - MORE_BYTES)
      const { bytes, start, floor } = await logPart(url, from, buffer.begin - from)
      // more of the log may have been removed meanwhile
      buffer.floor = Math.max(buffer.floor, floor)
      const isBegin = start === buffer.floor
      const left = isBegin ? 0 : characterStart(bytes)
      const part = bytes.subarray(left, Math.max(left, buffer.begin - start))
      const came = buffer.prepend(new TextDecoder().decode(part), start + left, isBegin)
      draw()
      requestAnimationFrame(() => virtual.scrollToIndex(came, { align: 'start' }))
    } catch (failure) {
      toast(failure instanceof Error ? failure.message : String(failure), 'error')
    }
    setBusy(false)
  }

  const download = async () => {
    setBusy(true)
    try {
      await logDownload(url, name)
    } catch (failure) {
      toast(failure instanceof Error ? failure.message : String(failure), 'error')
    }
    setBusy(false)
  }

  return (
    <div className="stack log-view">
      <div className="row">
        <input
          type="search"
          className="input"
          aria-label={t('Search in what is shown')}
          placeholder={t('Search in what is shown')}
          value={mark}
          onChange={(event) => {
            setMark(event.target.value)
            setHit(0)
          }}
          onKeyDown={(event) => {
            if (event.key === 'Enter') goHit(hit + (event.shiftKey ? -1 : 1))
          }}
        />
        {mark && (
          <>
            <span className="small quiet" role="status">
              {hits.length ? t('{at} of {n} lines', { at: hit + 1, n: hits.length }) : t('no line')}
            </span>
            <Button small aria-label={t('Line before')} onClick={() => goHit(hit - 1)}>
              ↑
            </Button>
            <Button small aria-label={t('Next line')} onClick={() => goHit(hit + 1)}>
              ↓
            </Button>
          </>
        )}
        <span className="push" />
        {onJump && <Jump url={url} onJump={onJump} />}
        <Check checked={isWrapped} onChange={(event) => setWrapped(event.target.checked)}>
          {t('Wrap lines')}
        </Check>
        <Button
          aria-pressed={isFollowing}
          onClick={() => {
            if (at !== null) return onEnd?.()
            setFollowing(!isFollowing)
            if (!isFollowing) goEnd()
          }}
        >
          {t('Follow')}
        </Button>
        <Button disabled={isBusy} onClick={() => void download()}>
          {t('Download')}
        </Button>
      </div>
      {error !== null && <ErrorNote error={error} />}
      {isLastLines && <p className="note">{t('The log itself has been removed. These are the last lines that the history kept.')}</p>}
      {buffer && buffer.begin > buffer.floor && (
        <div className="row small quiet">
          <Button small disabled={isBusy} onClick={() => void earlier()}>
            {t('Show earlier lines')}
          </Button>
          {t('{size} before these', { size: bytesText(buffer.begin - buffer.floor) })}
        </div>
      )}
      <div className="log" ref={box} role="log" aria-label={t('Log')} aria-live="off" tabIndex={0} data-wrap={isWrapped || undefined} onScroll={onScroll}>
        {buffer && count === 0 && <p className="quiet log-empty">{isLive ? t('Nothing has been printed yet.') : t('The task printed nothing.')}</p>}
        <div className="log-lines" style={{ height: virtual.getTotalSize() }}>
          {virtual.getVirtualItems().map((item) => (
            <div
              key={item.key}
              ref={isWrapped ? virtual.measureElement : undefined}
              data-index={item.index}
              className="log-line"
              data-hit={(mark ? hits[hit] === item.index : place === item.index) || undefined}
              style={{ transform: `translateY(${item.start}px)` }}
            >
              <Line text={buffer!.at(item.index)} mark={mark} />
            </div>
          ))}
        </div>
      </div>
      <p className="small quiet" role="status">
        {at !== null ? t('A part of the log is shown. Follow goes to its end.') : isConnected && isLive ? t('New lines come as they are written.') : isLive && buffer && !error ? t('The connection is being made again …') : t('{n} line|{n} lines', { n: count })}
      </p>
    </div>
  )
}
