// Terminals in the running tasks of a job.
import { useEffect, useMemo, useRef, useState, type FormEvent, type KeyboardEvent } from 'react'
import type { JobDetail } from '../../api/client'
import { t } from '../../i18n/i18n'
import { settingsChange, useSettings } from '../../lib/settings'
import { TaskStates } from '../../lib/task-states'
import { useSearch } from '../../router'
import '../../style/log.css'
import '../../style/terminal.css'
import type { ExecState } from '../../lib/exec-session'
import type { TaskTerminal } from '../../ui/terminal'
import { terminalOpen, terminalRemove, useTerminals } from '../../ui/terminals'
import { Button, Check, Empty, ErrorNote, SelectField, TextField, useToast } from '../../ui/ui'

function stateText(state: ExecState): string {
  switch (state.kind) {
    case 'opening':
      return t('The program is being started …')
    case 'open':
      return t('Connected')
    case 'lost':
      return t('The connection is being made again …')
    case 'taken':
      return t('Another window has taken this terminal over.')
    case 'ended':
      return state.exitCode === undefined ? state.text || t('The program has ended.') : t('The program has ended with exit code {code}.', { code: String(state.exitCode) })
  }
}

function Panel({ terminal, id, isChosen, onRemove }: { terminal: TaskTerminal; id: string; isChosen: boolean; onRemove: () => void }) {
  const screen = useRef<HTMLDivElement>(null)
  const out = useRef<HTMLButtonElement>(null)
  const settings = useSettings()
  const toast = useToast()
  const { session } = terminal
  useEffect(() => {
    if (!isChosen) return
    terminal.show(screen.current!, settings.screenReader)
    terminal.onLeave = () => out.current?.focus()
    // the colours of the system may change while it is open
    const dark = matchMedia('(prefers-color-scheme: dark)')
    const recolour = () => terminal.show(screen.current!, settings.screenReader)
    dark.addEventListener('change', recolour)
    return () => {
      dark.removeEventListener('change', recolour)
      terminal.hide()
    }
  }, [terminal, isChosen, settings.theme, settings.screenReader])
  const close = async () => {
    try {
      await session.end()
    } catch (error) {
      toast(error instanceof Error ? error.message : String(error), 'error')
      return
    }
    onRemove()
  }
  return (
    <div className="card terminal-card" role="tabpanel" id={id} aria-label={terminal.name} hidden={!isChosen}>
      <div className="row">
        <span className="small" role="status">
          {stateText(session.state)}
        </span>
        <span className="push" />
        {session.state.kind === 'taken' && <Button onClick={() => session.take()}>{t('Take it back')}</Button>}
        <button type="button" className="button" ref={out} onClick={() => void close()}>
          {session.state.kind === 'ended' ? t('Close') : t('End the program')}
        </button>
      </div>
      <div className="terminal-screen" ref={screen} />
    </div>
  )
}

const idOf = (terminal: TaskTerminal) => `terminal-${terminal.session.id || 'new'}`

/** A list of tabs as WAI-ARIA describes it: one of them takes part in the order of Tab, arrows go to the others. */
function TerminalTabs({ terminals, chosen, choose }: { terminals: TaskTerminal[]; chosen: TaskTerminal | undefined; choose: (terminal: TaskTerminal) => void }) {
  const list = useRef<HTMLDivElement>(null)
  const onKey = (event: KeyboardEvent) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key]
    if (!step) return
    event.preventDefault()
    const next = (terminals.indexOf(chosen!) + step + terminals.length) % terminals.length
    choose(terminals[next]!)
    list.current?.querySelectorAll<HTMLElement>('[role=tab]')[next]?.focus()
  }
  return (
    <div className="row" role="tablist" aria-label={t('Terminals')} ref={list} onKeyDown={onKey}>
      {terminals.map((terminal, index) => (
        <button
          key={terminal.session.id || index}
          type="button"
          role="tab"
          className="button"
          data-small
          aria-selected={terminal === chosen}
          aria-controls={idOf(terminal)}
          tabIndex={terminal === chosen ? 0 : -1}
          onClick={() => choose(terminal)}
        >
          {index + 1} · {terminal.name}
        </button>
      ))}
    </div>
  )
}

function Opener({ name, detail, onOpen }: { name: string; detail: JobDetail; onOpen: (terminal: TaskTerminal) => void }) {
  const [search] = useSearch()
  const states = useMemo(() => TaskStates.of(detail), [detail])
  const roles = states.roles.flatMap(({ name: one, letters }) => (letters.includes('R') ? [one] : []))
  const [picked, setPicked] = useState(search.get('role') ?? '')
  const role = roles.includes(picked) ? picked : (roles[0] ?? '')
  const indexes = states.indexes(role, 'RUNNING')
  const [index, setIndex] = useState(Number(search.get('index') ?? -1))
  // of few tasks one chooses; of many one writes the number, and the server says when it does not run
  const isChoice = indexes.length <= 500
  const wanted = indexes.includes(index) || (!isChoice && index >= 0) ? index : (indexes[0] ?? 0)
  const [error, setError] = useState<unknown>(null)
  const [isBusy, setBusy] = useState(false)
  const open = async (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault()
    const program = String(new FormData(event.currentTarget).get('program')).trim()
    setBusy(true)
    setError(null)
    try {
      onOpen(await terminalOpen({ job: name, role, index: wanted }, program ? ['sh', '-c', program] : []))
    } catch (failure) {
      setError(failure)
    }
    setBusy(false)
  }
  return (
    <form className="stack" onSubmit={(event) => void open(event)}>
      {error !== null && <ErrorNote error={error} />}
      <div className="row row-foot">
        <SelectField label={t('Role')} value={role} onChange={(event) => setPicked(event.target.value)}>
          {roles.map((one) => (
            <option key={one}>{one}</option>
          ))}
        </SelectField>
        {isChoice ? (
          <SelectField label={t('Task')} value={wanted} onChange={(event) => setIndex(Number(event.target.value))}>
            {indexes.map((one) => (
              <option key={one}>{one}</option>
            ))}
          </SelectField>
        ) : (
          <TextField label={t('Task, 0 to {last}', { last: indexes.at(-1)! })} type="number" min={0} max={indexes.at(-1)} value={wanted} onChange={(event) => setIndex(Number(event.target.value))} />
        )}
        <TextField label={t('Program; empty: a shell')} name="program" placeholder="nvidia-smi" maxLength={8192} />
        <Button type="submit" kind="main" disabled={isBusy}>
          {t('Open a terminal')}
        </Button>
      </div>
    </form>
  )
}

export default function JobTerminal({ name, detail }: { name: string; detail: JobDetail }) {
  const settings = useSettings()
  const terminals = useTerminals().filter((one) => one.session.target.job === name)
  const [picked, choose] = useState<TaskTerminal | null>(null)
  const chosen = terminals.find((one) => one === picked) ?? terminals.at(-1)
  const runs = TaskStates.of(detail).letters.includes('R')
  const section = useRef<HTMLElement>(null)
  const remove = (terminal: TaskTerminal) => {
    terminalRemove(terminal)
    // the button that was pressed is gone: the keyboard goes on where the next terminal is opened
    setTimeout(() => (section.current?.querySelector<HTMLElement>('button[type=submit]') ?? section.current)?.focus())
  }
  return (
    <section className="stack" aria-label={t('Terminal')} ref={section} tabIndex={-1}>
      {runs ? (
        <Opener
          name={name}
          detail={detail}
          onOpen={(terminal) => {
            choose(terminal)
            setTimeout(() => terminal.focus())
          }}
        />
      ) : (
        !terminals.length && (
          <div className="card">
            <Empty title={t('No task of this job runs')}>
              <p>{t('A terminal opens in the container of a running task, as its user. Its owner and administrators may.')}</p>
            </Empty>
          </div>
        )
      )}
      {terminals.length > 1 && <TerminalTabs terminals={terminals} chosen={chosen} choose={choose} />}
      {terminals.map((terminal, index) => (
        <Panel key={terminal.session.id || index} id={idOf(terminal)} terminal={terminal} isChosen={terminal === chosen} onRemove={() => remove(terminal)} />
      ))}
      {terminals.length > 0 && (
        <div className="row">
          <p className="small quiet" id="terminal-keys">
            {t('Ctrl-M leaves the terminal for the buttons above it. Ctrl-Shift-C copies what is selected, Ctrl-Shift-V pastes.')}
          </p>
          <span className="push" />
          <Check checked={settings.screenReader} onChange={(event) => settingsChange({ screenReader: event.target.checked })}>
            {t('For a screen reader')}
          </Check>
        </div>
      )}
    </section>
  )
}
