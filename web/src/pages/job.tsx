// One job: its story, its tasks, its logs, its file, and what can be done to it.
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { useState, type FormEvent } from 'react'
import { ARCHIVED, jobDelete, jobHasBegun, jobRelease, jobStart, jobStop, roleScale, tagAdd, tagRemove } from '../api/actions'
import { enc, sessionGet, type JobDetail, type JobStatus } from '../api/client'
import { infoQuery, jobQuery, pollMs } from '../api/queries'
import { languageGet, t } from '../i18n/i18n'
import { jobReadAgain, useWhenEnded } from '../lib/changes'
import { shellWord } from '../lib/filter'
import { clock } from '../lib/format'
import { isLive } from '../lib/job-state'
import { keyOfPlace, placeOfKey } from '../lib/task-facts'
import { TaskStates, type TaskPlace } from '../lib/task-states'
import { jobNameOf, navigate, useSearch } from '../router'
import { later } from '../ui/later'
import { Button, Cli, Confirm, Dialog, ErrorNote, LinkButton, Loading, Menu, StateBadge, Tabs, TextField, useBusy, usePageTitle, useToast, useUndo, useWhileThere } from '../ui/ui'
import { Attempts } from './job/attempts'
import { useClonePath } from './job/clone'
import { Overview } from './job/overview'
import { Logs } from './job/logs'

const JobUse = later(() => import('./job/use'))
const PortDialog = later(() => import('./job/ports'), null)
const SshDialog = later(() => import('./job/ssh'), null)
const TransferDialog = later(() => import('./job/transfer'), null)
const Transfers = later(async () => ({ default: (await import('./job/transfer')).Transfers }), null)
const TaskDialog = later(() => import('./job/task'), null)
const JobTerminal = later(() => import('./job/terminal'))
const Configuration = later(() => import('./job/configuration'))

/** What the person may do with the job of `owner`; the server decides, this only offers nothing that it would refuse. */
function useRights(owner: string | undefined) {
  const { data: info } = useQuery(infoQuery)
  const session = sessionGet()
  const mayChange = !!session && (session.admin || session.user === owner)
  return { mayChange, mayReadFile: mayChange || !!info?.sharedConfigurations, mayReadLogs: mayChange || !!info?.sharedLogs }
}

const HELD_NAMED = 8 // tasks whose container is kept

type Asked = 'stop' | 'delete' | 'tag' | 'scale' | 'port' | 'ssh' | 'transfer' | { ssh: TaskPlace } | null

function Ask({ asked, name, detail, onClose }: { asked: Asked; name: string; detail: JobDetail; onClose: () => void }) {
  const queries = useQueryClient()
  const toast = useToast()
  const undo = useUndo()
  const leave = useWhileThere(navigate)
  const fresh = () => queries.invalidateQueries({ queryKey: ['job', name] })
  const done = async (text: string) => {
    toast(text)
    await fresh()
  }
  const count = detail.jobStatus?.totalTaskNumber ?? 0
  if (asked === 'stop')
    return (
      <Confirm
        title={t('Stop this job?')}
        action={t('Stop')}
        danger
        onClose={onClose}
        onConfirm={async () => {
          // what had not begun loses nothing when it waits again
          const hadBegun = await jobHasBegun(name)
          await jobStop(name)
          const text = t('{name} is being stopped.', { name })
          if (hadBegun) toast(text)
          else undo(text, () => jobStart(name).finally(fresh))
          await fresh()
        }}
      >
        <p className="anywhere">
          {t('{name} with its {n} task ends. What it printed stays.|{name} with its {n} tasks ends. What they printed stays.', { name, n: count })}
        </p>
      </Confirm>
    )
  if (asked === 'delete')
    return (
      <Confirm
        title={t('Delete this job?')}
        action={t('Delete')}
        danger
        onClose={onClose}
        onConfirm={async () => {
          await jobDelete(name)
          toast(t('{name} is deleted.', { name }))
          leave('/jobs')
          queries.removeQueries({ queryKey: ['job', name] })
          await queries.invalidateQueries({ queryKey: ['jobs'] })
        }}
      >
        <p className="anywhere">{t('{name}: its history, its configuration and its logs are removed for ever.', { name })}</p>
      </Confirm>
    )
  if (asked === 'tag') return <TagDialog name={name} onClose={onClose} onDone={done} />
  if (asked === 'port')
    return <PortDialog name={name} detail={detail} onClose={onClose} />
  if (asked === 'ssh' || (asked !== null && typeof asked === 'object')) return <SshDialog name={name} detail={detail} at={asked === 'ssh' ? null : asked.ssh} onClose={onClose} />
  if (asked === 'transfer') return <TransferDialog name={name} detail={detail} isJobLive={isLive(detail.jobStatus?.state)} onClose={onClose} />
  if (asked === 'scale') return <ScaleDialog name={name} detail={detail} onClose={onClose} onDone={done} />
  return null
}

function TagDialog({ name, onClose, onDone }: { name: string; onClose: () => void; onDone: (text: string) => Promise<void> }) {
  const [error, setError] = useState<unknown>(null)
  const [isBusy, during] = useBusy()
  const close = useWhileThere(onClose)
  const submit = async (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault()
    const tag = String(new FormData(event.currentTarget).get('tag')).trim()
    try {
      await tagAdd(name, tag)
      await onDone(t('The job has the tag {tag}.', { tag }))
      close()
    } catch (failure) {
      setError(failure)
    }
  }
  return (
    <Dialog title={t('Put a tag on this job')} onClose={onClose}>
      <form className="stack" onSubmit={(event) => void during(() => submit(event))}>
        {error !== null && <ErrorNote error={error} />}
        <TextField label={t('Tag')} name="tag" required maxLength={512} hint={t('One finds jobs by their tags in the list.')} />
        <div className="dialog-foot">
          <Button onClick={onClose}>{t('Cancel')}</Button>
          <Button type="submit" kind="main" disabled={isBusy}>
            {t('Put the tag')}
          </Button>
        </div>
      </form>
    </Dialog>
  )
}

function ScaleDialog({ name, detail, onClose, onDone }: { name: string; detail: JobDetail; onClose: () => void; onDone: (text: string) => Promise<void> }) {
  const [error, setError] = useState<unknown>(null)
  const [isBusy, during] = useBusy()
  const close = useWhileThere(onClose)
  const { roles } = TaskStates.of(detail)
  const submit = async (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault()
    const form = new FormData(event.currentTarget)
    try {
      for (const { name: role, letters } of roles) {
        const wanted = Number(form.get(role))
        if (wanted !== letters.length) await roleScale(name, role, wanted)
      }
      await onDone(t('The number of tasks changes.'))
      close()
    } catch (failure) {
      setError(failure)
    }
  }
  return (
    <Dialog title={t('Change the number of tasks')} onClose={onClose}>
      <form className="stack" onSubmit={(event) => void during(() => submit(event))}>
        {error !== null && <ErrorNote error={error} />}
        <p className="quiet">{t('Fewer: the tasks with the highest numbers are ended. More: new ones wait for room.')}</p>
        {roles.map(({ name: role, letters }) => (
          <TextField key={role} label={role} name={role} type="number" min={0} max={10000} required defaultValue={letters.length} />
        ))}
        <div className="dialog-foot">
          <Button onClick={onClose}>{t('Cancel')}</Button>
          <Button type="submit" kind="main" disabled={isBusy}>
            {t('Change')}
          </Button>
        </div>
      </form>
    </Dialog>
  )
}

function Actions({ name, detail, mayClone, mayChange, ask }: { name: string; detail: JobDetail; mayClone: boolean; mayChange: boolean; ask: (asked: Asked) => void }) {
  const queries = useQueryClient()
  const toast = useToast()
  const status = detail.jobStatus!
  const clone = useClonePath(name, mayClone)
  const [isStarting, during] = useBusy()
  const run = (action: Promise<unknown>, text: string, back?: () => Promise<unknown>) =>
    action.then(
      () => {
        toast(text, 'good', back && (() => back().finally(() => void queries.invalidateQueries({ queryKey: ['job', name] }))))
        return queries.invalidateQueries({ queryKey: ['job', name] })
      },
      (error: unknown) => toast(error instanceof Error ? error.message : String(error), 'error'),
    )
  const live = isLive(status.state)
  const isArchived = detail.tags?.includes(ARCHIVED)
  return (
    <div className="row push">
      {mayClone && <LinkButton href={clone}>{t('Clone')}</LinkButton>}
      {mayChange && live && (
        <Button kind="danger" disabled={status.state === 'STOPPING' || status.executionType === 'STOP'} onClick={() => ask('stop')}>
          {t('Stop')}
        </Button>
      )}
      {mayChange && !live && (
        <Button disabled={isStarting} onClick={() => void during(() => run(jobStart(name), t('{name} starts again.', { name })))}>
          {t('Start again')}
        </Button>
      )}
      {mayChange && (
        <Menu label="⋯" name={t('More actions')}>
        {(close) => {
          const item = (title: string, action: () => void) => (
            <Button
              onClick={() => {
                close()
                action()
              }}
            >
              {title}
            </Button>
          )
          return (
            <>
              {status.state === 'RUNNING' && item(t('Open a port …'), () => ask('port'))}
              {status.state === 'RUNNING' && item(t('Reach a task by ssh …'), () => ask('ssh'))}
              {mayClone && item(t('Transfer to another cluster …'), () => ask('transfer'))}
              {item(t('Put a tag …'), () => ask('tag'))}
              {mayClone && item(t('Keep as a template …'), () => navigate(`/submit?clone=${enc(name)}&keep=1`))}
              {live && item(t('Change the number of tasks …'), () => ask('scale'))}
              {status.retryDelayTime !== null && status.state === 'WAITING' && item(t('Retry now'), () => void run(jobStart(name), t('The next try begins.')))}
              {status.held && item(t('Let go what is held for debugging'), () => void run(jobRelease(name), t('What was held is let go.')))}
              {!live && !isArchived && item(t('Archive'), () => void run(tagAdd(name, ARCHIVED), t('{name} is archived: it has left the list.', { name }), () => tagRemove(name, ARCHIVED)))}
              {isArchived && item(t('Back into the list'), () => void run(tagRemove(name, ARCHIVED), t('{name} is in the list again.', { name }), () => tagAdd(name, ARCHIVED)))}
              {!live && item(t('Delete …'), () => ask('delete'))}
            </>
          )
        }}
      </Menu>
      )}
    </div>
  )
}

/** What is left of tasks that failed, so that one can look into it. */
function Held({ held, mayChange }: { held: NonNullable<JobStatus['held']>; mayChange: boolean }) {
  const names = held.tasks.slice(0, HELD_NAMED).map(({ taskRoleName, taskIndex }) => `${taskRoleName}[${taskIndex}]`)
  return (
    <div className="note anywhere" data-kind="wait" role="region" aria-label={t('Kept for debugging')}>
      <strong>{t('The container of {n} task is kept for debugging.|The containers of {n} tasks are kept for debugging.', { n: held.containers })}</strong>
      <div>
        {names.join(', ')}
        {held.containers > names.length && ` ${t('and {n} more', { n: held.containers - names.length })}`}
      </div>
      <div>
        {held.until ? (
          <>
            {t('Until:')} <time dateTime={new Date(held.until).toISOString()}>{clock(held.until, languageGet())}</time>
          </>
        ) : (
          t('For how long is decided when the job ends.')
        )}{' '}
        {mayChange && t('Among the actions of the job you let it go before.')}
      </div>
    </div>
  )
}

function Tags({ name, tags, mayChange }: { name: string; tags: string[]; mayChange: boolean }) {
  const queries = useQueryClient()
  const toast = useToast()
  const undo = useUndo()
  const fresh = () => void queries.invalidateQueries({ queryKey: ['job', name] })
  const remove = (tag: string) => {
    tagRemove(name, tag).then(
      () => {
        fresh()
        undo(t('The tag {tag} is taken away.', { tag }), () => tagAdd(name, tag).finally(fresh))
      },
      (error: unknown) => toast(error instanceof Error ? error.message : String(error), 'error'),
    )
  }
  if (!tags.length) return null
  return (
    <ul className="row" aria-label={t('Tags')}>
      {tags.map((tag) => (
        <li key={tag} className="tag">
          {tag}
          {mayChange && (
            <button type="button" aria-label={t('Take the tag {tag} away', { tag })} onClick={() => remove(tag)}>
              ✕
            </button>
          )}
        </li>
      ))}
    </ul>
  )
}

export default function Job({ name: given }: { name: string }) {
  const name = jobNameOf(given, sessionGet()?.user ?? '')
  const [search, change] = useSearch()
  const [asked, ask] = useState<Asked>(search.get('ask') === 'transfer' ? 'transfer' : null)
  const { data: detail, error } = useQuery({
    ...jobQuery(name),
    refetchInterval: (query) => (isLive(query.state.data?.jobStatus?.state) ? pollMs() : false),
  })
  const queries = useQueryClient()
  useWhenEnded(isLive(detail?.jobStatus?.state), () => jobReadAgain(queries, name))
  const close = () => {
    ask(null)
    if (search.has('ask')) change({ ask: null })
  }
  const tab = search.get('tab') ?? 'overview'
  const status = detail?.jobStatus
  const { mayChange, mayReadFile, mayReadLogs } = useRights(status?.username)
  usePageTitle(given)

  if (!detail || !status)
    return (
      <div className="page">
        <h1>{name}</h1>
        {error ? <ErrorNote error={error} /> : <Loading />}
        <p>
          <LinkButton href="/jobs">{t('All jobs')}</LinkButton>
        </p>
      </div>
    )

  const short = shellWord(name)
  const task = placeOfKey(search.get('task'))
  const latest = status.attemptId ?? 0
  const run = Number(search.get('run') ?? latest)
  const role = search.get('role')
  const command: Record<string, string> = {
    overview: `skep describe --attempts ${short}`,
    logs: `skep logs${isLive(status.state) ? ' --follow' : ''}${role ? ` --role ${role} --index ${search.get('index') ?? '0'}` : ''} ${short}`,
    use: `skep use${role ? ` --role ${role}${search.get('index') ? ` --index ${search.get('index')}` : ''}` : ''} ${short}`,
    terminal: `skep shell ${short}${role ? ` ${shellWord(`${role}[${search.get('index') ?? '0'}]`)}` : ''}`,
    config: `skep config ${short}`,
    attempts: `skep describe --attempts ${short}`,
  }
  return (
    <div className="page in-order">
      <div className="page-head">
        <h1>
          <span className="quiet">{status.username}~</span>
          {status.name}
        </h1>
        <StateBadge state={status.state} />
        <Actions name={name} detail={detail} mayClone={mayReadFile} mayChange={mayChange} ask={ask} />
      </div>
      {error && <ErrorNote error={error} />}
      {!!detail.tags?.some((tag) => tag.startsWith('pai-transfer')) && <Transfers tags={detail.tags} />}
      {status.held && <Held held={status.held} mayChange={mayChange} />}
      <Tags name={name} tags={detail.tags ?? []} mayChange={mayChange} />
      <Tabs
        name="tab"
        label={t('Views of the job')}
        tabs={[
          { id: 'overview', title: t('Overview') },
          ...(mayReadLogs || tab === 'logs' ? [{ id: 'logs', title: t('Logs') }] : []),
          { id: 'use', title: t('Use') },
          ...((isLive(status.state) && mayChange) || tab === 'terminal' ? [{ id: 'terminal', title: t('Terminal') }] : []),
          ...(mayReadFile || tab === 'config' ? [{ id: 'config', title: t('Configuration') }] : []),
          { id: 'attempts', title: t('Attempts') },
        ]}
      />
      {tab === 'overview' && <Overview name={name} detail={detail} onDetails={(place) => change({ task: keyOfPlace(place) })} {...(mayChange ? { onSsh: (place) => ask({ ssh: place }) } : {})} />}
      {tab === 'logs' && <Logs name={name} detail={detail} />}
      {tab === 'use' && <JobUse name={name} detail={detail} />}
      {tab === 'terminal' && <JobTerminal name={name} detail={detail} />}
      {tab === 'config' && <Configuration name={name} />}
      {tab === 'attempts' && <Attempts name={name} roles={Object.keys(detail.taskRoles ?? {})} mayReadLogs={mayReadLogs} />}
      <Cli command={command[tab] ?? command['overview']!} />
      {task && (
        <TaskDialog
          name={name}
          place={task}
          jobAttempt={run}
          isLatest={run === latest}
          mayReadLogs={mayReadLogs}
          onClose={() => change({ task: null, ...(tab === 'logs' ? {} : { run: null }) })}
        />
      )}
      <Ask asked={asked} name={name} detail={detail} onClose={close} />
    </div>
  )
}
