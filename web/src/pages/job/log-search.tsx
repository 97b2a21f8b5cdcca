// Search in everything that the tasks of a job wrote. The server searches for a second at a time; the page asks for the
// next second until it has a page of lines or all has been searched.
import { useEffect, useRef, useState, type FormEvent, type ReactNode } from 'react'
import { enc, lineStream, request, type Schema } from '../../api/client'
import { t } from '../../i18n/i18n'
import { bytes as bytesText } from '../../lib/format'
import { plainOf } from '../../lib/ansi'
import { Link, useSearch } from '../../router'
import { Button, Check, Empty, ErrorNote } from '../../ui/ui'

type Found = Schema['LogSearchLine']

const PAGE = 200 // lines of a search, until one asks for more
const TEXT_MAX = 400
const CONTEXTS = [0, 2, 5, 10] // lines before and after each that is found
const CONTEXT = 2 // unless one chooses

interface Result {
  found: Found[]
  bytes: number
  cursor: string | null // null: all has been searched
  isBusy: boolean
  error: unknown
}

const NOTHING: Result = { found: [], bytes: 0, cursor: null, isBusy: false, error: null }

/** One of those that can be chosen, as the address has it. */
export function contextOf(text: string | null): number {
  const context = Number(text ?? CONTEXT)
  return CONTEXTS.includes(context) ? context : CONTEXT
}

export function searchQuery(text: string, isExpression: boolean, ignoresCase: boolean, context: number): URLSearchParams {
  const query = new URLSearchParams({ [isExpression ? 're' : 'q']: text, limit: String(PAGE) })
  if (context) query.set('context', String(context))
  if (ignoresCase) query.set('ignoreCase', 'true')
  return query
}

/** What one reply found. Throws when its last line, which says where to go on, is missing. */
export async function partRead(lines: AsyncIterable<Found>): Promise<Pick<Result, 'found' | 'bytes' | 'cursor'>> {
  const found: Found[] = []
  for await (const line of lines) {
    if (line.type === 'end') return { found, bytes: line.bytes ?? 0, cursor: line.cursor ?? null }
    found.push(line)
  }
  throw new Error(t('The connection broke before the search was done. Search again.'))
}

/** `children`, the logs, have what was found beside them, or above them in a narrow window. */
export function LogSearch({ name, children }: { name: string; children: ReactNode }) {
  const [search, change] = useSearch()
  const text = search.get('find') ?? ''
  const isExpression = search.get('re') === 'true'
  const ignoresCase = search.get('case') !== 'true'
  const context = contextOf(search.get('context'))
  const [result, setResult] = useState<Result | null>(null)
  const stop = useRef<AbortController | null>(null)

  const run = async (from: Result) => {
    stop.current?.abort()
    const own = (stop.current = new AbortController())
    let { found, bytes, cursor } = from // of what has been searched to its end: a reply that is cut counts for nothing
    const wanted = found.length + PAGE
    setResult({ ...from, isBusy: true, error: null })
    try {
      do {
        const query = searchQuery(text, isExpression, ignoresCase, context)
        if (cursor) query.set('cursor', cursor)
        const reply = await request('GET', `/api/v2/jobs/${enc(name)}/logs/search?${query}`, { signal: own.signal })
        const part = await partRead(lineStream<Found>(reply))
        if (own.signal.aborted) return
        found = [...found, ...part.found]
        bytes += part.bytes
        cursor = part.cursor
        setResult({ found, bytes, cursor, isBusy: cursor !== null && found.length < wanted, error: null })
      } while (cursor !== null && found.length < wanted)
    } catch (error) {
      if (!own.signal.aborted) setResult({ found, bytes, cursor, isBusy: false, error })
    }
  }
  useEffect(() => {
    setResult(null)
    if (text) void run(NOTHING)
    return () => stop.current?.abort()
    // `run` is made anew with each of these
  }, [name, text, isExpression, ignoresCase, context])

  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault()
    const next = String(new FormData(event.currentTarget).get('find'))
    if (text && next === text) void run(NOTHING) // once more: tasks go on writing
    else change({ find: next })
  }
  return (
    <>
      <form className="row" onSubmit={submit} role="search">
        <input key={text} type="search" name="find" className="input" aria-label={t('Search in all logs of the job')} placeholder={t('Search in all logs of the job')} defaultValue={text} maxLength={1024} />
        <Button type="submit">{t('Search')}</Button>
        <Check checked={isExpression} onChange={(event) => change({ re: event.target.checked ? 'true' : null })}>
          {t('Expression')}
        </Check>
        <Check checked={!ignoresCase} onChange={(event) => change({ case: event.target.checked ? 'true' : null })}>
          {t('Case counts')}
        </Check>
        <select className="input" aria-label={t('Lines around each that is found')} title={t('Lines around each that is found')} value={context} onChange={(event) => change({ context: event.target.value === String(CONTEXT) ? null : event.target.value })}>
          {CONTEXTS.map((one) => (
            <option key={one} value={one}>
              {one ? t('{n} lines before and after', { n: one }) : t('The line alone')}
            </option>
          ))}
        </select>
        {text && (
          <Button kind="plain" onClick={() => change({ find: null, re: null, case: null, context: null })}>
            {t('Close the search')}
          </Button>
        )}
      </form>
      <div className="log-found" data-open={!!result || undefined}>
        {result && (
          <section className="card" aria-label={t('Search in all logs')}>
            <p className="small quiet" role="status">
              {result.isBusy ? t('{n} line so far, {size} searched …|{n} lines so far, {size} searched …', { n: result.found.length, size: bytesText(result.bytes) }) : t('{n} line found, {size} searched|{n} lines found, {size} searched', { n: result.found.length, size: bytesText(result.bytes) })}
            </p>
            {result.error !== null && <ErrorNote error={result.error} />}
            {!result.isBusy && result.error === null && result.found.length === 0 && <Empty title={t('No line has this')} />}
            {result.found.length > 0 && (
              <ul className="found" aria-label={t('Lines found')} tabIndex={0}>
                {result.found.map((line) => (
                  <Place key={`${line.attempt} ${line.role} ${line.index} ${line.taskAttempt} ${line.offset}`} line={line} />
                ))}
              </ul>
            )}
            {!result.isBusy && result.cursor !== null && (
              <div>
                <Button onClick={() => void run(result)}>{t('Search on')}</Button>
              </div>
            )}
          </section>
        )}
        <div className="stack">{children}</div>
      </div>
    </>
  )
}

/** One line, which leads to its place in its log. */
function Place({ line }: { line: Found }) {
  const next = new URLSearchParams(location.search)
  const place = { run: line.attempt, role: line.role, index: line.index, attempt: line.taskAttempt, at: line.offset }
  for (const [key, value] of Object.entries(place)) next.set(key, String(value))
  next.delete('stream')
  return (
    <li>
      <Link href={`${location.pathname}?${next}`}>
        {line.role}[{line.index}]
        <span className="quiet small"> {t('line {line}', { line: String(line.line) })}</span>
      </Link>
      {line.message && <span lang="en">{line.message}</span>}
      <code>
        <Around lines={line.before} label={t('Before it')} />
        {shortened(line.text)}
        <Around lines={line.after} label={t('After it')} />
      </code>
    </li>
  )
}

function shortened(text = ''): string {
  const plain = plainOf(text)
  return plain.length > TEXT_MAX ? `${plain.slice(0, TEXT_MAX)} …` : plain
}

/** What stands beside a line, quieter than it. */
function Around({ lines, label }: { lines: string[] | undefined; label: string }) {
  if (!lines?.length) return null
  return (
    <span className="found-around" role="group" aria-label={label}>
      {lines.map(shortened).join('\n')}
    </span>
  )
}
