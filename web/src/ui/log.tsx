// The log of one attempt of a task: the end first, other parts when one asks for them, new lines as they come.
import { useVirtualizer } from '@tanstack/react-virtual'
import { memo, useCallback, useEffect, useLayoutEffect, useMemo, useReducer, useRef, useState, type FormEvent, type KeyboardEvent, type ReactNode, type RefObject } from 'react'
import { ApiError, backoffMs, request } from '../api/client'
import { logDownload } from '../api/logs'
import { t } from '../i18n/i18n'
import { plainOf, spansOf } from '../lib/ansi'
import { bytes as bytesText } from '../lib/format'
import { linesWith, LogBuffer, readEarlier, readLater, type LogPart } from '../lib/log-buffer'
import { Button, Check, ErrorNote, useToast } from './ui'

const FIRST_BYTES = 256 * 1024
const MORE_BYTES = 2 * 1024 * 1024
const BEFORE_BYTES = 64 * 1024 // of a place that one jumps to
const LINE_PX = 19
const NEAR_PX = LINE_PX * 1.5 // so near to the end one is at it

interface Source {
  url: string // of the log, without a query
  isLive: boolean
  at: number | null // open it there and stand still, instead of at its end
  turn: number // another one: open it again
}

interface State {
  buffer: LogBuffer | null
  error: unknown
  isLastLines: boolean // the log is gone, this is what the history kept
  isConnected: boolean
  isPart: boolean // more of the log follows on what is held, and comes only when it is asked for
  logEnd: number // of a part: where the log ended when it was asked
}

interface Reply extends LogPart {
  isLastLines: boolean // the log is gone, this is what the history kept
}

/** At most `length` bytes of the log from the byte `from` on; from null: its last ones. The reply says all else that is to be known. */
async function logPart(url: string, from: number | null, length: number, signal?: AbortSignal): Promise<Reply> {
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

const NOTHING: State = { buffer: null, error: null, isLastLines: false, isConnected: false, isPart: false, logEnd: 0 }

/** `isFollowing`: whoever looks is at the end; else what the page holds stays while it is full, and new lines stay with the server. */
function useLog(source: Source, isFollowing: RefObject<boolean>) {
  const [state, setState] = useState(NOTHING)
  const [, redraw] = useReducer((count: number) => count + 1, 0)
  const waiting = useRef(false)
  const isLive = useRef(source.isLive)
  isLive.current = source.isLive
  /** Follow on what is held, or follow no more. */
  const follow = useRef<(isWanted: boolean) => void>(() => undefined)

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
    let stream = new AbortController()
    let buffer: LogBuffer | null = null

    const begin = async (signal: AbortSignal) => {
      const tail = source.at === null
      let part = await logPart(source.url, tail ? null : Math.max(0, source.at! - BEFORE_BYTES), tail ? FIRST_BYTES : BEFORE_BYTES + FIRST_BYTES, signal)
      let isPlace = !tail
      if (isPlace && !part.isLastLines && source.at! > 0 && source.at! >= part.end) {
        isPlace = false // there is no such place: the end
        part = await logPart(source.url, null, FIRST_BYTES, signal)
      }
      const { bytes, start, floor, isLastLines } = part
      buffer = new LogBuffer(start, start === floor, floor)
      buffer.append(bytes)
      if (isLastLines && bytes.at(-1) !== 10) buffer.append(Uint8Array.of(10))
      const isPart = isPlace && !isLastLines && buffer.end < part.end
      setState({ buffer, error: null, isLastLines, isConnected: !isLastLines && !isPart, isPart, logEnd: part.end })
      return !isLastLines && !isPart
    }
    const end = () => {
      stream.abort()
      setState((before) => ({ ...before, isConnected: false, isPart: true }))
    }
    const listen = async (signal: AbortSignal) => {
      const reply = await request('GET', `${source.url}?offset=${buffer!.end}&follow=true`, { signal })
      const removed = Number(reply.headers.get('X-Skep-Removed') ?? 0)
      if (removed) {
        // lines are missing between: from the end anew
        void reply.body?.cancel()
        buffer = null
        return false
      }
      setState((before) => ({ ...before, isConnected: true, error: null }))
      const reader = reply.body!.getReader()
      for (let next = buffer!.end; ; next = buffer!.end) {
        const { done, value } = await reader.read()
        if (signal.aborted) throw signal.reason
        if (done) return true
        if (buffer!.end !== next || (!isFollowing.current && buffer!.isFull)) {
          end() // its last lines have been let go, or would have to be
          return true
        }
        buffer!.append(value)
        if (isFollowing.current) buffer!.dropFirst()
        draw()
      }
    }
    const run = async () => {
      stream.abort()
      const own = (stream = new AbortController())
      for (let tries = 0; !own.signal.aborted; tries++) {
        try {
          if (!buffer && !(await begin(own.signal))) return
          if (!(await listen(own.signal))) continue
          if (!own.signal.aborted) setState((before) => ({ ...before, isConnected: false }))
          return // it has said everything
        } catch (error) {
          if (own.signal.aborted) return
          const isThere = !(error instanceof ApiError) || error.status === 0 || error.status === 429 || error.status >= 500
          const isYetToCome = error instanceof ApiError && error.status === 404 && isLive.current
          setState((before) => ({ ...before, isConnected: false, error: isThere && buffer ? null : error }))
          if (!isThere && !isYetToCome) return
          await new Promise((resolve) => setTimeout(resolve, backoffMs(Math.min(tries, 5))))
        }
      }
    }
    stop.signal.addEventListener('abort', () => stream.abort())
    follow.current = (isWanted) => {
      if (stop.signal.aborted) return
      if (!isWanted) return end()
      setState((before) => ({ ...before, isPart: false }))
      void run()
    }
    void run()
    return () => stop.abort()
  }, [source.url, source.at, source.turn, draw, isFollowing])

  const logEndSet = useCallback((logEnd: number) => setState((before) => ({ ...before, logEnd })), [])
  return { ...state, follow, redraw, logEndSet }
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
  const [place, setPlace] = useState({ at, turn: 0, isMarked: at !== null })
  const source = useMemo(() => ({ url, isLive, at: place.at, turn: place.turn }), [url, isLive, place])
  const [isFollowing, setFollowing] = useState(at === null)
  const following = useRef(isFollowing)
  following.current = isFollowing
  const { buffer, error, isLastLines, isConnected, isPart, logEnd, follow, redraw, logEndSet } = useLog(source, following)
  const current = useRef(buffer)
  current.current = buffer
  const [isWrapped, setWrapped] = useState(false)
  const [mark, setMark] = useState('')
  const [hit, setHit] = useState(0)
  const [isBusy, setBusy] = useState(false)
  const box = useRef<HTMLDivElement>(null)
  const toast = useToast()
  const count = buffer?.count ?? 0
  const first = buffer?.first ?? 0

  const virtual = useVirtualizer({
    count,
    getScrollElement: () => box.current,
    estimateSize: () => LINE_PX,
    overscan: 20,
    getItemKey: useCallback((index: number) => first + index, [first]),
  })
  useEffect(() => virtual.measure(), [isWrapped, buffer, virtual])

  // Where the end was when it was last gone to. The browser tells of scrolling with its next picture only: a line that comes before
  // must not lead back whoever has scrolled up.
  const endTop = useRef(0)
  const goEnd = useCallback(() => {
    const element = box.current
    if (!element) return
    element.scrollTop = element.scrollHeight
    endTop.current = element.scrollTop
  }, [])
  const hasLeftEnd = ({ scrollTop, scrollHeight, clientHeight }: HTMLElement) =>
    scrollTop + NEAR_PX < Math.min(endTop.current, scrollHeight - clientHeight)
  useLayoutEffect(() => {
    if (!isFollowing || !box.current) return
    if (hasLeftEnd(box.current)) setFollowing(false)
    else goEnd()
  })

  // Lines come before the first one in the window, or are let go there: it stays where it is.
  // Has it been let go itself, the lines that have come are in sight from `edge` on.
  const held = useRef<{ line: number; px: number; edge: number } | null>(null)
  const hold = (edge: number, isLeft = false) => {
    const top = box.current?.scrollTop ?? 0
    const item = virtual.getVirtualItemForOffset(top)
    if (isLeft) held.current = { line: edge, px: 0, edge }
    else if (item) held.current = { line: Number(item.key), px: top - item.start, edge }
  }
  useLayoutEffect(() => {
    const kept = held.current
    held.current = null
    if (!kept || !box.current || isFollowing) return
    const isHere = kept.line >= first && kept.line < first + count
    const item = virtual.measurementsCache[(isHere ? kept.line : kept.edge) - first]
    if (item) box.current.scrollTop = item.start + (isHere ? kept.px : 0)
  })

  const hits = useMemo(
    () => (buffer ? linesWith(count, (index) => plainOf(buffer.at(index)), mark) : []),
    // only what one searches for and what there is
    [buffer, count, first, buffer?.end, mark],
  )
  const goHit = (to: number) => {
    if (!hits.length) return
    const next = (to + hits.length) % hits.length
    setHit(next)
    setFollowing(false)
    virtual.scrollToIndex(hits[next]!, { align: 'center' })
  }

  // the place that one has jumped to: in the middle of the window, and marked
  const placeLine = useMemo(() => {
    if (place.at === null || !buffer) return null
    const index = buffer.lineOf(place.at)
    return index < 0 && place.isMarked ? null : buffer.first + Math.max(0, index)
  }, [buffer, place])
  useEffect(() => {
    if (placeLine === null || !current.current) return
    virtual.scrollToIndex(placeLine - current.current.first, { align: place.isMarked ? 'center' : 'start' })
    if (place.isMarked) box.current?.scrollIntoView({ block: 'nearest' }) // in a low window the log may stand below what was found
  }, [placeLine, place, buffer, virtual])

  const openAt = (from: number | null) => {
    setFollowing(from === null)
    endTop.current = 0 // of other lines
    setPlace(({ turn }) => ({ at: from, turn: turn + 1, isMarked: false }))
  }
  const goBegin = () => {
    box.current?.focus() // its button goes
    setFollowing(false)
    if (buffer && buffer.begin <= buffer.floor) virtual.scrollToOffset(0)
    else openAt(0)
  }
  const goFollow = () => {
    if (at !== null && onEnd) onEnd()
    else if (isPart) openAt(null)
    else {
      setFollowing(true)
      goEnd()
    }
  }

  // One part of the log comes at a time. After one that failed, none comes before somebody asks for it.
  const reading = useRef<'no' | 'yes' | 'failed'>('no')
  const more = async (read: (buffer: LogBuffer) => Promise<void>) => {
    if (!buffer || reading.current === 'yes') return
    reading.current = 'yes'
    try {
      await read(buffer)
      reading.current = 'no'
    } catch (failure) {
      reading.current = 'failed'
      toast(failure instanceof Error ? failure.message : String(failure), 'error')
    }
    redraw()
  }
  const part = (from: number, length: number) => logPart(url, from, length)
  const earlier = () =>
    more(async (from) => {
      const wasFollowing = isFollowing // then one leaves the end for what has come
      setFollowing(false)
      const isLet = await readEarlier(from, part, MORE_BYTES, () => hold(from.first, wasFollowing))
      if (from.begin <= from.floor && earlierRow.current?.contains(document.activeElement)) box.current?.focus() // its button goes
      if (isLet && current.current === from) follow.current(false)
    })
  const earlierRow = useRef<HTMLDivElement>(null)
  const laterRow = useRef<HTMLDivElement>(null)
  const later = () =>
    more(async (from) => {
      const end = await readLater(from, part, MORE_BYTES, () => hold(from.first + from.count - 1))
      if (current.current !== from) return
      if (end === null) return openAt(from.floor) // what stood between has been removed
      logEndSet(end)
      if (from.end < end) return
      if (laterRow.current?.contains(document.activeElement)) box.current?.focus() // its button goes
      follow.current(true)
    })

  const onScroll = () => {
    const element = box.current!
    const left = element.scrollHeight - element.scrollTop - element.clientHeight
    if (isPart) {
      if (!isFollowing && left < element.clientHeight && reading.current === 'no') void later()
      return
    }
    if (place.isMarked) return // it stands still
    if (element.scrollTop === endTop.current) return // we went to the end ourselves
    const isAtEnd = left < NEAR_PX
    endTop.current = isAtEnd ? element.scrollTop : -1
    if (isAtEnd !== isFollowing) setFollowing(isAtEnd)
  }
  const onKey = (event: KeyboardEvent) => {
    if (event.altKey || event.metaKey || event.shiftKey || event.target !== box.current) return
    if (event.key === 'Home') goBegin()
    else if (event.key === 'End') goFollow()
    else return
    event.preventDefault()
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
            if (isFollowing) setFollowing(false)
            else goFollow()
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
        <div className="row small quiet" ref={earlierRow}>
          <Button small onClick={() => void earlier()}>
            {t('Show earlier lines')}
          </Button>
          <Button small onClick={goBegin}>
            {t('Go to the beginning')}
          </Button>
          {t('{size} before these', { size: bytesText(buffer.begin - buffer.floor) })}
        </div>
      )}
      <div className="log" ref={box} role="log" aria-label={t('Log')} aria-live="off" tabIndex={0} data-wrap={isWrapped || undefined} onScroll={onScroll} onKeyDown={onKey}>
        {buffer && count === 0 && <p className="quiet log-empty">{isLive ? t('Nothing has been printed yet.') : t('The task printed nothing.')}</p>}
        <div className="log-lines" style={{ height: virtual.getTotalSize() }}>
          {virtual.getVirtualItems().map((item) => (
            <div
              key={item.key}
              ref={isWrapped ? virtual.measureElement : undefined}
              data-index={item.index}
              className="log-line"
              data-hit={(mark ? hits[hit] === item.index : place.isMarked && item.key === placeLine) || undefined}
              style={{ transform: `translateY(${item.start}px)` }}
            >
              <Line text={buffer!.at(item.index)} mark={mark} />
            </div>
          ))}
        </div>
      </div>
      {isPart && (
        <div className="row small quiet" ref={laterRow}>
          <Button small onClick={() => void later()}>
            {t('Show later lines')}
          </Button>
          {buffer && logEnd > buffer.end && t('{size} after these', { size: bytesText(logEnd - buffer.end) })}
        </div>
      )}
      <p className="small quiet" role="status">
        {isPart ? t('A part of the log is shown. Follow goes to its end.') : isConnected && isLive ? t('New lines come as they are written.') : isLive && buffer && !error ? t('The connection is being made again …') : t('{n} line|{n} lines', { n: count })}
      </p>
    </div>
  )
}
