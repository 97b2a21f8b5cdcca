// A new job: a form and the text of the job file, which are one thing; the server says what is wrong, at its line.
import { useQuery } from '@tanstack/react-query'
import { useEffect, useRef, useState } from 'react'
import { ApiError, call, sessionGet, type Problem, type Schema } from '../api/client'
import { configQuery, userQuery } from '../api/queries'
import { templateQuery, templateUsed } from '../api/templates'
import type { CodeHandle } from '../editor/code'
import { jobParse } from '../editor/document'
import { noticesSet } from '../editor/job-extras'
import { masked, maskSpread } from '../editor/kept-secrets'
import { fieldSet, formOf, JOB_NEW, JOB_NOTEBOOK, nameNext } from '../editor/job-file'
import { t } from '../i18n/i18n'
import { fileSave } from '../lib/csv'
import { noticesOfUser } from '../lib/notices'
import { withoutSecrets } from '../lib/templates'
import { draftDrop, draftGet, draftKeep, hasBeginning, sourceOf } from '../lib/draft'
import { shellWord } from '../lib/filter'
import { jobPath, navigate, useSearch } from '../router'
import '../style/submit.css'
import { later } from '../ui/later'
import { Button, Cli, ErrorNote, LinkButton, Loading, OnceButton, Reason, Said, usePageTitle, useToast, useWhileThere } from '../ui/ui'
import { useCheck } from './submit/check'
import { JobFormView } from './submit/form'
import { Templates } from './submit/templates'

const Code = later(() => import('../editor/code'))

function nameNew(user: string) {
  return `${user || 'job'}-${Date.now().toString(36)}`
}

/** The text to begin with: a clone, a template, a notebook, or the smallest job. */
function useStart(clone: string | null, template: string | null, isNotebook: boolean) {
  const config = useQuery({ ...configQuery(clone ?? ''), enabled: !!clone && !template })
  const item = useQuery({ ...templateQuery(template ?? ''), enabled: !!template, staleTime: Infinity })
  if (template) {
    const protocol = item.data?.protocol
    return protocol === undefined ? { text: null, error: item.error } : { text: fieldSet(withoutSecrets(protocol), ['name'], nameNew(sessionGet()?.user ?? '')), error: null }
  }
  if (!clone) return { text: (isNotebook ? JOB_NOTEBOOK : JOB_NEW).replace('{name}', nameNew(sessionGet()?.user ?? '')), error: null }
  if (!config.data) return { text: null, error: config.error }
  const name = formOf(config.data)?.name
  return { text: maskSpread(name ? config.data.replace(new RegExp(`^(name:\\s*)(["']?)${name}\\2`, 'm'), `$1${nameNext(name)}`) : config.data), error: null }
}

function syntaxProblems(text: string): Problem[] {
  return jobParse(text).problems.map((problem) => ({ ...problem, path: 'YAML' }))
}

export default function Submit() {
  const [search] = useSearch()
  const template = search.get('template')
  const isNotebook = search.get('begin') === 'notebook'
  const start = useStart(search.get('clone'), template, isNotebook)
  usePageTitle(t('Submit'))
  if (start.error || start.text === null)
    return (
      <div className="page">
        <h1>{t('Submit a job')}</h1>
        {start.error ? <ErrorNote error={start.error} /> : <Loading />}
        {start.error && (
          <div>
            <LinkButton href="/submit">{t('Begin with an empty form')}</LinkButton>
          </div>
        )}
      </div>
    )
  const clone = search.get('clone')
  const draftOf = sourceOf(clone, template, isNotebook)
  const isKept = search.has('keep')
  return <Sheet key={`${isKept} ${draftOf}`} draftOf={draftOf} start={start.text} source={clone !== null ? 'clone' : template ? 'template' : 'new'} clone={clone} template={template} isKept={isKept} />
}

/** What `source` is called where one begins with it again. */
function againName(source: 'new' | 'clone' | 'template') {
  switch (source) {
    case 'clone':
      return t('Begin again with the copy')
    case 'template':
      return t('Begin again with the template')
    case 'new':
      return t('Begin again with the notebook')
  }
}

/** `isKept`: of a job as it ran a template is made; a draft of a copy of it is something else, and stays as it is. */
function Sheet({ start, draftOf, source, clone, template, isKept }: { start: string; draftOf: string; source: 'new' | 'clone' | 'template'; clone: string | null; template: string | null; isKept: boolean }) {
  const isClone = source === 'clone'
  const [draft] = useState(() => (isKept ? null : draftGet(draftOf)))
  const [begun, setBegun] = useState(start) // of a new job it has another name whenever it is asked for
  const [text, setText] = useState(draft ?? begun)
  const [isDraftLost, setDraftLost] = useState(false)
  const [problems, setProblems] = useState<Problem[]>([]) // of the server, about `checked`
  const [checked, setChecked] = useState('')
  const [error, setError] = useState<unknown>(null)
  const [isBusy, setBusy] = useState(false)
  const [trial, setTrial] = useState<{ text: string; trial: Schema['Trial'] } | null>(null)
  const code = useRef<CodeHandle>(null)
  const file = useRef<HTMLInputElement>(null)
  const toast = useToast()
  const leave = useWhileThere(navigate)
  const user = sessionGet()?.user ?? ''
  const { data: me, isPending: isUserAwaited } = useQuery(userQuery(user))
  const syntax = syntaxProblems(text)
  const form = formOf(text)
  const secrets = isClone ? masked(text) : null
  // the secrets of a job are for jobs of the same user
  const secretsOf = secrets && clone?.startsWith(`${user}~`) ? clone : null
  const jobsPath = (query: Record<string, string>) => {
    const words = new URLSearchParams({ ...query, ...(secretsOf ? { secretsOf } : {}) }).toString()
    return `/api/v2/jobs${words && `?${words}`}`
  }

  // nothing is wrong in what nobody has written yet; and what was submitted or tried has its answer
  const found = useCheck(syntax.length || isBusy || checked === text || trial?.text === text || (draft === null && text === begun) ? null : text, jobsPath({ dryRun: 'true', placement: 'false' }))
  const isAsked = !syntax.length && checked === text && problems.length > 0
  const shown = syntax.length ? syntax : isAsked ? problems : found?.text === text ? found.problems : []
  // the list of a moment ago stays until the server has answered about what was typed since
  const listed = syntax.length || isAsked || text === begun || trial?.text === text ? shown : (found?.problems ?? [])

  // a new job begins with the messages that its user wants to have
  useEffect(() => {
    if (source !== 'new' || !me) return
    const next = noticesSet(begun, noticesOfUser(me))
    setBegun(next)
    setText((now) => (now === begun ? next : now)) // nobody has written anything yet
  }, [source, me])

  useEffect(() => {
    if (isKept) return
    // of a copy nothing is kept before somebody has changed it
    if (hasBeginning(draftOf) && text === begun) draftDrop(draftOf)
    else setDraftLost(!draftKeep(draftOf, text))
  }, [text, isKept, begun, draftOf])

  const refused = (failure: unknown) => {
    if (failure instanceof ApiError && failure.problems.length) {
      setProblems(failure.problems)
      setChecked(text)
      code.current?.goTo(failure.problems[0]?.line ?? 1)
    } else setError(failure)
  }
  const submit = async () => {
    setBusy(true)
    setError(null)
    try {
      const reply = await call<Schema['Submitted']>('POST', jobsPath({}), { text: { type: 'text/yaml', body: text } })
      if (!isKept) draftDrop(draftOf)
      toast(t('{name} is submitted.', { name: reply.name ?? '' }))
      if (template) // the job is there: that it was not counted is no failure of it
        await templateUsed(template).catch((failure: unknown) => toast(t('The use of the template was not counted: {why}', { why: failure instanceof Error ? failure.message : String(failure) }), 'error'))
      const [owner = user, name = ''] = (reply.name ?? '').split('~')
      leave(jobPath(owner, name))
    } catch (failure) {
      setBusy(false)
      refused(failure)
    }
  }
  const attempt = async () => {
    setBusy(true)
    setError(null)
    setTrial(null)
    try {
      const reply = await call<Schema['Trial']>('POST', jobsPath({ dryRun: 'true' }), { text: { type: 'text/yaml', body: text } })
      setTrial({ text, trial: reply })
      setChecked('')
    } catch (failure) {
      refused(failure)
    }
    setBusy(false)
  }
  const read = async (chosen: File | undefined) => {
    if (chosen) setText(await chosen.text())
  }

  return (
    <div className="page in-order">
      <div className="page-head">
        <h1>{isClone ? t('Submit a copy') : t('Submit a job')}</h1>
        <div className="row push">
          <Templates user={user} text={text} suggested={form?.name ?? ''} canSave={syntax.length === 0} isAsked={isKept} />
          <input ref={file} type="file" accept=".yaml,.yml,.json" hidden onChange={(event) => void read(event.target.files?.[0])} />
          <Button onClick={() => file.current?.click()}>{t('Open a file …')}</Button>
          <Button onClick={() => fileSave(`${form?.name || 'job'}.yaml`, 'text/yaml', text)}>{t('Save as a file')}</Button>
          <Button disabled={isBusy || syntax.length > 0} onClick={() => void attempt()}>
            {t('Try')}
          </Button>
          <Button kind="main" disabled={isBusy || syntax.length > 0} onClick={() => void submit()}>
            {t('Submit')}
          </Button>
        </div>
      </div>
      {error !== null && <ErrorNote error={error} />}
      {isDraftLost && (
        <p className="note" data-kind="wait">
          {t('The browser has no room for the draft: submit it, or save it as a file, before you leave.')}
        </p>
      )}
      {draft !== null && hasBeginning(draftOf) && text !== begun && (
        <div className="note row">
          <span>{t('This is what you wrote here before, and did not submit.')}</span>
          <OnceButton small onClick={() => setText(begun)}>
            {againName(source)}
          </OnceButton>
        </div>
      )}
      {secrets && <Secrets names={secrets} from={secretsOf} />}
      {isAsked && <Problems problems={listed} isAsked onGo={(line) => code.current?.goTo(line)} />}
      {trial?.text === text && <TrialNote trial={trial.trial} />}
      <div className="submit">
        <form className="stack in-order" onSubmit={(event) => event.preventDefault()}>
          {form ? <JobFormView form={form} text={text} setText={setText} vcs={me?.virtualCluster ?? []} notices={isUserAwaited ? null : noticesOfUser(me)} isTemplate={source === 'template'} /> : <p className="note">{t('The form comes back when the text is YAML again.')}</p>}
        </form>
        <div className="submit-side stack">
          <section className="submit-code" aria-label={t('Job file')}>
            <Code ref={code} text={text} label={t('Job file, YAML')} problems={shown} onChange={setText} />
          </section>
          {/* what nobody asked for stands where it moves neither the form nor the editor */}
          {!isAsked && <Problems problems={listed} isAsked={false} onGo={(line) => code.current?.goTo(line)} />}
        </div>
      </div>
      <p className="small quiet">{t('In the editor, Ctrl-Space completes; Escape and then Tab leaves it.')}</p>
      <Cli command={`skep submit ${secretsOf ? `--secrets-of ${shellWord(secretsOf)} ` : ''}--follow ${shellWord(`${form?.name || 'job'}.yaml`)}`} />
    </div>
  )
}

/** Where the secrets that are masked in the text come from. */
function Secrets({ names, from }: { names: string[]; from: string | null }) {
  if (!from)
    return (
      <p className="note" data-kind="wait">
        {t('Secrets are masked in the copy, and those of another user are not yours to take: write them again before you submit.')}
      </p>
    )
  return (
    <p className="note anywhere" data-kind="good">
      {names.length ? t('These secrets are taken from {job}: {names}. Write one anew to change it.', { job: from, names: names.join(', ') }) : t('The secrets are taken from {job}.', { job: from })}
    </p>
  )
}

/** What would become of the job, were it submitted now. */
function TrialNote({ trial }: { trial: Schema['Trial'] }) {
  const tasks = trial.tasks ?? []
  const shown = tasks.slice(0, 8).map((task) => {
    const gpus = task.gpus?.length ? ` (${t('GPUs')} ${task.gpus.join(',')})` : ''
    return `${task.taskRoleName}[${task.taskIndex}] ${task.containerNodeName}${gpus}`
  })
  return (
    <div className="note" data-kind={trial.placed ? 'good' : 'wait'} role="status">
      <strong>{trial.placed ? t('It would start now') : t('It would wait')}</strong>
      {trial.placed && (
        <p className="anywhere">
          {shown.join('; ')}
          {tasks.length > shown.length && ` … ${t('and {n} more', { n: tasks.length - shown.length })}`}
        </p>
      )}
      {!trial.placed && (
        <p className="anywhere">
          <Reason text={trial.reason} parts={trial.reasonParts} />
        </p>
      )}
      {!!trial.preempts?.length && (
        <p className="anywhere">
          {t('These jobs would be ended for it:')} <Reason text={trial.preempts.join(', ')} />
        </p>
      )}
      {trial.warnings && <p className="small anywhere" lang="en">
          {trial.warnings}
        </p>}
    </div>
  )
}

/** `isAsked`: somebody has pressed a button for it, and is told at once. */
function Problems({ problems, isAsked, onGo }: { problems: Problem[]; isAsked: boolean; onGo: (line: number) => void }) {
  if (!problems.length) return null
  return (
    <div className="note" data-kind="error" role={isAsked ? 'alert' : 'status'}>
      <strong>{t('{n} problem|{n} problems', { n: problems.length })}</strong>
      <ul>
        {problems.slice(0, 50).map((problem, index) => (
          <li key={index}>
            {problem.line !== undefined && (
              <Button small kind="plain" onClick={() => onGo(problem.line ?? 1)}>
                {t('line {line}', { line: String(problem.line) })}
              </Button>
            )}{' '}
            {problem.path && <code>{problem.path}</code>} <Said>{problem.message}</Said>
            {problem.hint && (
              <span className="quiet" lang="en">
                {' '}
                ({problem.hint})
              </span>
            )}
          </li>
        ))}
      </ul>
    </div>
  )
}

