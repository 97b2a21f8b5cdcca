// The portal's own components. They stand on the browser's native elements (dialog, details, select), which bring keyboard
// and accessibility with them.
import {
  Component,
  createContext,
  Fragment,
  useCallback,
  useContext,
  useEffect,
  useId,
  useRef,
  useState,
  useSyncExternalStore,
  type ButtonHTMLAttributes,
  type FormEvent,
  type InputHTMLAttributes,
  type ReactNode,
  type SelectHTMLAttributes,
} from 'react'
import { createPortal } from 'react-dom'
import { ApiError, type JobState } from '../api/client'
import { exitWords, languageGet, reasonWords, t } from '../i18n/i18n'
import { ago, clock, duration } from '../lib/format'
import { reasonPieces, type ReasonPart } from '../lib/reasons'
import { jobPath, Link, useSearch, useCurrentInSight } from '../router'

// ---- buttons and fields ----

type Kind = 'main' | 'danger' | 'plain'

export function Button({ kind, small, ...rest }: ButtonHTMLAttributes<HTMLButtonElement> & { kind?: Kind; small?: boolean }) {
  return <button type="button" className="button" data-kind={kind} data-small={small || undefined} {...rest} />
}

type ButtonProps = Parameters<typeof Button>[0]

/** A button that is gone, or disabled, once it is pressed: what it stands in (tabIndex -1; at last the page) has the focus then. */
export function OnceButton({ onClick, ...rest }: ButtonProps) {
  const press: ButtonProps['onClick'] = (event) => {
    event.currentTarget.parentElement?.closest<HTMLElement>('[tabindex="-1"]')?.focus({ preventScroll: true })
    onClick?.(event)
  }
  return <Button onClick={press} {...rest} />
}

export function LinkButton({ href, kind, small, children }: { href: string; kind?: Kind; small?: boolean; children: ReactNode }) {
  return (
    <Link className="button" data-kind={kind} data-small={small || undefined} href={href}>
      {children}
    </Link>
  )
}

interface FieldProps {
  label: string
  hint?: ReactNode
  error?: string | null | undefined
}

export function Field({ label, hint, error, children }: FieldProps & { children: (props: { id: string; 'aria-describedby'?: string; 'aria-invalid'?: boolean }) => ReactNode }) {
  const id = useId()
  const about = error || hint ? `${id}-about` : undefined
  return (
    <div className="field">
      <label htmlFor={id}>{label}</label>
      {children({ id, ...(about ? { 'aria-describedby': about } : {}), ...(error ? { 'aria-invalid': true } : {}) })}
      {error ? (
        <span id={about} className="error">
          {error}
        </span>
      ) : (
        hint && (
          <span id={about} className="hint">
            {hint}
          </span>
        )
      )}
    </div>
  )
}

export function TextField({ label, hint, error, ...rest }: FieldProps & InputHTMLAttributes<HTMLInputElement>) {
  return (
    <Field label={label} hint={hint} error={error}>
      {(props) => <input className="input" autoComplete="off" {...rest} {...props} />}
    </Field>
  )
}

export function SelectField({ label, hint, error, children, ...rest }: FieldProps & SelectHTMLAttributes<HTMLSelectElement>) {
  return (
    <Field label={label} hint={hint} error={error}>
      {(props) => (
        <select className="input" {...rest} {...props}>
          {children}
        </select>
      )}
    </Field>
  )
}

export function Check({ children, ...rest }: InputHTMLAttributes<HTMLInputElement>) {
  return (
    <label className="check">
      <input type="checkbox" {...rest} />
      <span>{children}</span>
    </label>
  )
}

// ---- dialog ----

/** Where each open dialog has its toasts, the one on top last: nothing outside it can be reached or is read aloud. */
const toastPlaces: HTMLElement[] = []
const placeWatchers = new Set<() => void>()
const placeWatch = (notify: () => void) => {
  placeWatchers.add(notify)
  return () => void placeWatchers.delete(notify)
}
const placeGet = () => toastPlaces.at(-1) ?? null

/** It can be closed, unless `onClose` is null: then one of its own buttons must be pressed. */
export function Dialog({ title, onClose, wide, children }: { title: string; onClose: (() => void) | null; wide?: boolean; children: ReactNode }) {
  const ref = useRef<HTMLDialogElement>(null)
  const toasts = useRef<HTMLDivElement>(null)
  const id = useId()
  useEffect(() => {
    const dialog = ref.current!
    const place = toasts.current!
    const before = document.activeElement
    const tell = () => placeWatchers.forEach((notify) => notify())
    dialog.showModal()
    toastPlaces.push(place)
    tell()
    return () => {
      toastPlaces.splice(toastPlaces.indexOf(place), 1)
      tell()
      dialog.close()
      if (before instanceof HTMLElement) before.focus()
    }
  }, [])
  return (
    <dialog
      ref={ref}
      className="dialog"
      tabIndex={-1}
      data-wide={wide || undefined}
      aria-labelledby={id}
      onCancel={(event) => {
        event.preventDefault()
        onClose?.()
      }}
      onClose={() => {
        // a browser lets nobody hold a second Escape back: it has closed what is still to be answered
        const dialog = ref.current
        if (!dialog || dialog.open) return
        dialog.showModal()
        onClose?.()
      }}
    >
      <div className="dialog-body">
        <h2 id={id}>{title}</h2>
        {children}
      </div>
      {/* behind what the dialog asks: that has the focus first */}
      {onClose && (
        <button type="button" className="dialog-close" aria-label={t('Close the dialog')} title={t('Close the dialog')} onClick={onClose}>
          ✕
        </button>
      )}
      <div ref={toasts} className="toasts" role="status" aria-atomic="false" />
    </dialog>
  )
}

/** `action`, for after a wait. It does nothing once what asked for it is gone: somebody has closed it, and looks at something else. */
export function useWhileThere<Args extends unknown[]>(action: (...args: Args) => void) {
  const isThere = useRef(false)
  useEffect(() => {
    isThere.current = true
    return () => void (isThere.current = false)
  }, [])
  return (...args: Args) => {
    if (isThere.current) action(...args)
  }
}

/** Is an action under way? A button that begins it is disabled meanwhile: pressed again, it would do it again. */
export function useBusy() {
  const [isBusy, setBusy] = useState(false)
  const during = async (action: () => Promise<unknown>) => {
    setBusy(true)
    try {
      await action()
    } finally {
      setBusy(false)
    }
  }
  return [isBusy, during] as const
}

/** Asks before something is done that cannot be undone; `children` name what it is done to. `disabled`: it cannot be done, or not yet. */
export function Confirm({ title, action, danger, disabled = false, onClose, onConfirm, children }: { title: string; action: string; danger?: boolean; disabled?: boolean; onClose: () => void; onConfirm: () => Promise<void>; children: ReactNode }) {
  const [isBusy, setBusy] = useState(false)
  const [error, setError] = useState<unknown>(null)
  const toast = useToast()
  const isOpen = useRef(false) // no more when somebody has closed it meanwhile
  useEffect(() => {
    isOpen.current = true
    return () => void (isOpen.current = false)
  }, [])
  const confirm = async (event: FormEvent) => {
    event.preventDefault()
    setBusy(true)
    try {
      await onConfirm()
      if (isOpen.current) onClose()
    } catch (failure) {
      setError(failure)
      setBusy(false)
      if (!isOpen.current) toast(failure instanceof Error ? failure.message : String(failure), 'error')
    }
  }
  return (
    <Dialog title={title} onClose={onClose}>
      <form className="stack" onSubmit={(event) => void confirm(event)}>
        {children}
        {error !== null && <ErrorNote error={error} />}
        <div className="dialog-foot">
          <Button onClick={onClose}>{t('Cancel')}</Button>
          <Button type="submit" kind={danger ? 'danger' : 'main'} disabled={isBusy || disabled}>
            {action}
          </Button>
        </div>
      </form>
    </Dialog>
  )
}

/** A button that opens a list of controls; Escape and a click elsewhere close it. */
export function Menu({ label, name, start, children }: { label: ReactNode; name?: string; start?: boolean; children: (close: () => void) => ReactNode }) {
  const [isOpen, setOpen] = useState(false)
  const ref = useRef<HTMLDivElement>(null)
  const close = useCallback(() => setOpen(false), [])
  useEffect(() => {
    if (!isOpen) return
    const onPointer = (event: PointerEvent) => {
      if (!ref.current?.contains(event.target as Node)) close()
    }
    const onKey = (event: KeyboardEvent) => {
      if (event.key !== 'Escape') return
      close()
      ref.current?.querySelector('button')?.focus()
    }
    document.addEventListener('pointerdown', onPointer)
    document.addEventListener('keydown', onKey)
    return () => {
      document.removeEventListener('pointerdown', onPointer)
      document.removeEventListener('keydown', onKey)
    }
  }, [isOpen, close])
  return (
    <div className="menu" ref={ref} data-start={start || undefined}>
      <Button aria-expanded={isOpen} aria-label={name} onClick={() => setOpen(!isOpen)}>
        {label}
      </Button>
      {isOpen && <div className="menu-list">{children(close)}</div>}
    </div>
  )
}

// ---- notes ----

export function adviceOf(error: unknown): string {
  if (!(error instanceof ApiError)) return ''
  if (error.status === 0) return t('The page tries again by itself. If it stays so, ask the operator whether skepd runs.')
  if (error.status === 403) return t('Ask an administrator for the right, or sign in as somebody else.')
  if (error.status === 429) return t('Wait a moment and try again.')
  return ''
}

export function ErrorNote({ error, children }: { error: unknown; children?: ReactNode }) {
  const advice = adviceOf(error)
  return (
    <div className="note" data-kind="error" role="alert">
      <strong lang={error instanceof ApiError ? 'en' : undefined}>{error instanceof Error ? error.message : String(error)}</strong>
      {advice && <div>{advice}</div>}
      {children}
    </div>
  )
}

/** A line of a list of facts (`dl`). */
export function Fact({ title, children }: { title: string; children: ReactNode }) {
  return (
    <div>
      <dt>{title}</dt>
      <dd>{children}</dd>
    </div>
  )
}

/** What the server, or a program, has said: English, whatever the language of the page. */
export function Said({ children }: { children: ReactNode }) {
  return <span lang="en">{children}</span>
}

export function Empty({ title, children }: { title: string; children?: ReactNode }) {
  return (
    <div className="empty">
      <strong>{title}</strong>
      {children}
    </div>
  )
}

export function Loading() {
  return (
    <p className="quiet" role="status" data-awaited>
      {t('Loading …')}
    </p>
  )
}

/** A page that fails says so; the others go on. */
export class Boundary extends Component<{ children: ReactNode }, { error: unknown }> {
  override state = { error: null as unknown }

  static getDerivedStateFromError(error: unknown) {
    return { error }
  }

  override render() {
    if (this.state.error === null) return this.props.children
    return (
      <div className="page">
        <h1>{t('This page failed')}</h1>
        <ErrorNote error={this.state.error}>
          <p>{t('It is a defect of the portal. Everything can be done with the command line meanwhile: skep help')}</p>
        </ErrorNote>
        <div>
          <Button onClick={() => location.reload()}>{t('Load it again')}</Button>
        </div>
      </div>
    )
  }
}

// ---- toasts ----

interface Toast {
  id: number
  text: string
  kind: 'good' | 'error'
  undo: (() => Promise<unknown>) | undefined
}

const ToastContext = createContext<(text: string, kind?: Toast['kind'], undo?: Toast['undo']) => void>(() => undefined)
export const useToast = () => useContext(ToastContext)

/** Says that something is done, and offers to undo it: by the button, or by the key "u". */
export function useUndo() {
  const toast = useToast()
  return useCallback((text: string, undo: () => Promise<unknown>) => toast(text, 'good', undo), [toast])
}

/** As long as one may need to read what was done and to reach the button. */
const SHOWN_MS = 6000
const UNDO_MS = 30_000

export function Toasts({ children }: { children: ReactNode }) {
  const [toasts, setToasts] = useState<Toast[]>([])
  const place = useSyncExternalStore(placeWatch, placeGet)
  const next = useRef(1)
  const remove = useCallback((id: number) => {
    const gone = document.getElementById(`toast-${id}`)
    // who has pressed its button stands nowhere without it
    if (gone?.contains(document.activeElement)) (gone.nextElementSibling?.querySelector('button') ?? gone.closest<HTMLElement>('dialog') ?? document.getElementById('main'))?.focus()
    setToasts((all) => all.filter((toast) => toast.id !== id))
  }, [])
  const add = useCallback(
    (text: string, kind: Toast['kind'] = 'good', undo?: Toast['undo']) => {
      const id = next.current++
      setToasts((all) => [...all.slice(-3), { id, text, kind, undo }])
      const leave = () => {
        if (document.getElementById(`toast-${id}`)?.matches(':focus-within, :hover')) setTimeout(leave, SHOWN_MS)
        else remove(id)
      }
      if (kind === 'good') setTimeout(leave, undo ? UNDO_MS : SHOWN_MS)
    },
    [remove],
  )
  const undone = (toast: Toast) => {
    remove(toast.id)
    toast.undo?.().then(
      () => add(t('Undone.')),
      (error: unknown) => add(t('It could not be undone: {why}', { why: error instanceof Error ? error.message : String(error) }), 'error'),
    )
  }
  const shown = toasts.map((toast) => (
    <div key={toast.id} id={`toast-${toast.id}`} className="toast" data-kind={toast.kind}>
      <span>{toast.text}</span>
      {toast.undo && (
        <Button small data-undo aria-keyshortcuts="u" onClick={() => undone(toast)}>
          {t('Undo')}
        </Button>
      )}
      <Button small kind="plain" aria-label={t('Close')} onClick={() => remove(toast.id)}>
        ✕
      </Button>
    </div>
  ))
  return (
    <ToastContext value={add}>
      {children}
      {/* only what is new is read aloud, not all of them again */}
      <div className="toasts" role="status" aria-atomic="false">
        {!place && shown}
      </div>
      {place && createPortal(shown, place)}
    </ToastContext>
  )
}

// ---- what jobs look like ----

const SHAPES: Record<string, ReactNode> = {
  WAITING: <circle cx="8" cy="8" r="5.5" fill="none" stroke="currentColor" strokeWidth="2" strokeDasharray="3 2.2" />,
  RUNNING: <circle cx="8" cy="8" r="6.5" fill="currentColor" />,
  STOPPING: <path d="M2 2h12v12H2z M5 5v6h6V5z" fill="currentColor" fillRule="evenodd" />,
  SUCCEEDED: <path d="M2 8.500l4 4 8-9" fill="none" stroke="currentColor" strokeWidth="2.5" />,
  FAILED: <path d="M3 3l10 10M13 3L3 13" fill="none" stroke="currentColor" strokeWidth="2.500" />,
  STOPPED: <rect x="3" y="3" width="10" height="10" fill="currentColor" />,
}

export function stateName(state: string): string {
  switch (state) {
    case 'WAITING':
      return t('Waiting')
    case 'RUNNING':
      return t('Running')
    case 'STOPPING':
      return t('Stopping')
    case 'SUCCEEDED':
      return t('Succeeded')
    case 'FAILED':
      return t('Failed')
    case 'STOPPED':
      return t('Stopped')
    default:
      return state
  }
}

export const STATES: JobState[] = ['WAITING', 'RUNNING', 'STOPPING', 'SUCCEEDED', 'FAILED', 'STOPPED']

export function StateBadge({ state }: { state: string | undefined }) {
  return (
    <span className="state" data-state={state}>
      <svg viewBox="0 0 16 16" aria-hidden="true">
        {SHAPES[state ?? '']}
      </svg>
      {stateName(state ?? '')}
    </span>
  )
}

export function Meter({ label, used, bad = 0, total, text }: { label: string; used: number; bad?: number; total: number; text?: string }) {
  const share = (part: number) => `${total ? Math.min(100, (100 * part) / total) : 0}%`
  return (
    <div className="meter">
      <div className="row small">
        <span>{label}</span>
        <span className="push number">{text ?? `${used} / ${total}`}</span>
      </div>
      <div className="meter-track" aria-hidden="true">
        <span style={{ width: share(used) }} />
        {bad > 0 && <span style={{ width: share(bad) }} />}
      </div>
    </div>
  )
}

// ---- time ----

const NowContext = createContext(0)

/** One clock for all that shows an age. */
export function Clock({ children }: { children: ReactNode }) {
  const [now, setNow] = useState(Date.now)
  useEffect(() => {
    const timer = setInterval(() => {
      if (!document.hidden) setNow(Date.now())
    }, 1000)
    return () => clearInterval(timer)
  }, [])
  return <NowContext value={now}>{children}</NowContext>
}
export const useNow = () => useContext(NowContext)

export function Ago({ ms }: { ms: number | null | undefined }) {
  const now = useNow()
  if (!ms) return <>–</>
  return (
    <time dateTime={new Date(ms).toISOString()} title={clock(ms, languageGet())}>
      {ago(ms, now, languageGet())}
    </time>
  )
}

export function Duration({ from, to }: { from: number | null | undefined; to: number | null | undefined }) {
  const now = useNow()
  return <>{from ? duration((to ?? now) - from) : '–'}</>
}

// ---- reasons ----

const HOLDER = /([\w.-]+~[\w.-]+)(\/\d+)?/g

/** The jobs that a text names are links. */
function linked(text: string): ReactNode[] {
  const parts: ReactNode[] = []
  let at = 0
  for (const match of text.matchAll(HOLDER)) {
    const [user = '', name = ''] = match[1]!.split('~')
    parts.push(text.slice(at, match.index))
    parts.push(
      <Link key={match.index} href={jobPath(user, name)}>
        {match[1]}
      </Link>,
    )
    at = match.index + match[0].length
  }
  parts.push(text.slice(at))
  return parts
}

/** In words of another script, the names of programs and settings are marked as English, so that they are read aloud as such. */
const spoken = (words: string): ReactNode[] =>
  words.split(/([A-Za-z][\w.*=/-]*(?: [\w.*=/-]+)*)/).map((part, index) => (index % 2 ? <Said key={index}>{part}</Said> : part))

/** Why a job waits, in the reader's language where its parts have words in it; the jobs that it names are links, so that one sees who holds what. */
export function Reason({ text, parts }: { text: string | null | undefined; parts?: ReasonPart[] | null | undefined }) {
  const pieces = reasonPieces(parts, reasonWords)
  if (!pieces) return <Said>{linked(text ?? '')}</Said>
  return (
    <>
      {pieces.map((piece, index) => ('words' in piece ? <Fragment key={index}>{spoken(piece.words)}</Fragment> : typeof piece.value === 'number' ? String(piece.value) : <span key={index} lang="">{linked(piece.value)}</span>))}
    </>
  )
}

/** A text of the exit table. */
export function ExitText({ text }: { text: string }) {
  const words = exitWords(text)
  return words === null ? <Said>{text}</Said> : <>{spoken(words)}</>
}

// ---- small parts ----

export function Copy({ text, label }: { text: string; label: string }) {
  const toast = useToast()
  const copy = () => {
    navigator.clipboard.writeText(text).then(
      () => toast(t('Copied.')),
      () => toast(t('The browser did not allow to copy.'), 'error'),
    )
  }
  return (
    <Button small kind="plain" aria-label={label} title={label} onClick={copy}>
      <svg viewBox="0 0 16 16" width="14" height="14" aria-hidden="true" fill="none" stroke="currentColor" strokeWidth="1.500">
        <rect x="5.500" y="5.500" width="8" height="8" rx="1.500" />
        <path d="M10.500 3.500v-1h-8v8h1" />
      </svg>
    </Button>
  )
}

/** The command that does the same. */
export function Cli({ command }: { command: string }) {
  return (
    <footer className="cli">
      <span aria-hidden="true">$</span>
      <code>{command}</code>
      <Copy text={command} label={t('Copy the command')} />
    </footer>
  )
}

type Sorted = { sort: string; direction: 'ascending' | 'descending' | undefined; onSort: () => void }
type Checked = { check: string; isChecked: boolean; onCheck: () => void }
type Head = string | { number: string } | { hidden: string } | Sorted | Checked

function headContent(head: Head): ReactNode {
  if (typeof head === 'string') return head
  if ('number' in head) return head.number
  if ('hidden' in head) return <span className="hidden-text">{head.hidden}</span>
  if ('check' in head) return <input type="checkbox" aria-label={head.check} checked={head.isChecked} onChange={head.onCheck} />
  return (
    <button type="button" className="sort" onClick={head.onSort}>
      {head.sort} {head.direction === 'ascending' ? '▲' : head.direction === 'descending' ? '▼' : ''}
    </button>
  )
}

/** A table that scrolls by itself where it is too wide. A head is a text, one over numbers, one that is only read aloud, one by which the rows are ordered, or a box for all of them. */
export function TableCard({ label, caption, className, heads, foot, children }: { label: string; caption?: string; className?: string; heads: Head[]; foot?: ReactNode; children: ReactNode }) {
  return (
    <div className="card card-flush scroll-x" tabIndex={0} role="region" aria-label={label}>
      <table className={className}>
        {caption && <caption className="hidden-text">{caption}</caption>}
        <thead>
          <tr>
            {heads.map((head, index) => (
              <th key={index} scope="col" className={typeof head !== 'string' && 'number' in head ? 'number' : undefined} aria-sort={typeof head !== 'string' && 'sort' in head ? head.direction : undefined}>
                {headContent(head)}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>{children}</tbody>
      </table>
      {foot}
    </div>
  )
}

/** Tabs are links: each has an address. What `keep` names of the address stays. */
export function Tabs({ name, tabs, label, keep = [] }: { name: string; label: string; tabs: { id: string; title: ReactNode }[]; keep?: string[] }) {
  const [search] = useSearch()
  const at = search.get(name) ?? tabs[0]!.id
  const row = useCurrentInSight<HTMLElement>(at)
  return (
    <nav ref={row} className="tabs" aria-label={label}>
      {tabs.map((tab) => {
        const next = new URLSearchParams(keep.flatMap((key) => (search.get(key) ? [[key, search.get(key)!]] : [])))
        if (tab.id !== tabs[0]!.id) next.set(name, tab.id)
        return (
          <Link key={tab.id} href={location.pathname + (next.size ? `?${next}` : '')} aria-current={tab.id === at ? 'page' : undefined}>
            {tab.title}
          </Link>
        )
      })}
    </nav>
  )
}

export function usePageTitle(title: string) {
  useEffect(() => {
    document.title = `${title} · Skep`
  }, [title])
}
