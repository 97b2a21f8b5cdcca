// How one reaches a running task by ssh: commands to copy, and the job's private key.
import { useQuery } from '@tanstack/react-query'
import { useMemo, useState } from 'react'
import { ApiError, enc, getText, type JobDetail } from '../../api/client'
import { jobSshQuery, taskRowQuery } from '../../api/queries'
import { t } from '../../i18n/i18n'
import { fileSave } from '../../lib/csv'
import { isOnlyThere, keyCommand, keyCommandWindows, keyFileName, sshCommand } from '../../lib/ssh-lines'
import { TaskStates, type TaskPlace } from '../../lib/task-states'
import { Link } from '../../router'
import { Button, Copy, Dialog, Empty, ErrorNote, Loading, SelectField, TextField, useToast } from '../../ui/ui'

const SHOWN_MAX = 1000 // running tasks to choose among
const PLUGIN = `extras:
  com.microsoft.pai.runtimeplugin:
    - plugin: ssh
      parameters: {jobssh: true}
`

function Line({ title, command, children }: { title: string; command: string; children?: React.ReactNode }) {
  return (
    <div className="stack-tight">
      <span className="label">{title}</span>
      <div className="row row-line">
        <code className="grow anywhere">{command}</code>
        <Copy text={command} label={t('Copy: {what}', { what: title })} />
      </div>
      {children}
    </div>
  )
}

function Missing({ title, children }: { title: string; children?: React.ReactNode }) {
  return (
    <>
      <Empty title={title}>{children}</Empty>
      <pre className="code" tabIndex={0} aria-label={t('In a job file')}>
        {PLUGIN}
      </pre>
    </>
  )
}

/** `at`: the task that it is opened for. */
export default function SshDialog({ name, detail, at, onClose }: { name: string; detail: JobDetail; at: TaskPlace | null; onClose: () => void }) {
  const { data: ssh, error } = useQuery(jobSshQuery(name))
  const states = useMemo(() => TaskStates.of(detail), [detail])
  const running = useMemo(() => states.numbers('RUNNING').slice(0, SHOWN_MAX), [states])
  const [chosen, setChosen] = useState<number>(at ? states.number(at) : (running[0] ?? -1))
  const [login, setLogin] = useState('root')
  const toast = useToast()
  const place = states.place(chosen)
  const { data: task } = useQuery({ ...taskRowQuery(name, place?.role ?? '', place?.index ?? 0), enabled: !!place })
  const container = ssh?.containers?.find(({ id }) => !!id && id === task?.containerId)
  const file = keyFileName(name)
  const keySave = () =>
    void getText(`/api/v1/jobs/${enc(name)}/ssh/key`).then(
      (key) => fileSave(file, 'application/x-pem-file', key),
      (failure: unknown) => toast(failure instanceof Error ? failure.message : String(failure), 'error'),
    )
  const target = { job: name, host: container?.sshIp ?? '', port: container?.sshPort ?? '', login: login.trim() || 'root' }
  const server = location.hostname
  const body = () => {
    if (error) return error instanceof ApiError && error.code === 'NoJobSshInfoError' ? <Missing title={t('This job has no ssh')}>{t('A job asks for it with the plugin ssh, and its image must have an ssh server:')}</Missing> : <ErrorNote error={error} />
    if (!ssh) return <Loading />
    if (!place || !running.length) return <Empty title={t('No task of this job runs')}>{t('A task is reached by ssh while it runs.')}</Empty>
    return (
      <div className="stack">
        <div className="fields">
          <SelectField label={t('Task')} value={chosen} onChange={(event) => setChosen(Number(event.target.value))}>
            {[...new Set([...running, chosen])].map((number) => {
              const { role, index } = states.place(number)!
              return (
                <option key={number} value={number}>
                  {role}[{index}]
                </option>
              )
            })}
          </SelectField>
          <TextField label={t('User in the container')} value={login} maxLength={64} spellCheck={false} onChange={(event) => setLogin(event.target.value)} hint={t('That of the image; mostly root.')} />
        </div>
        {!task ? (
          <Loading />
        ) : !container ? (
          <Missing title={t('This task has no ssh')}>{t('A job asks for it with the plugin ssh, and its image must have an ssh server:')}</Missing>
        ) : (
          <>
            <div className="row">
              <Button onClick={keySave}>{t('Save the private key of the job')}</Button>
              <code className="small">{file}</code>
            </div>
            <Line title={t('Once, as ssh takes no key that others may read')} command={keyCommand(file)} />
            <Line title={t('The same on Windows, in PowerShell')} command={keyCommandWindows(file)} />
            <Line title={t('With the key of the job')} command={sshCommand(target, server, file)} />
            <Line title={t('With a key of your own')} command={sshCommand(target, server)}>
              <span className="hint small quiet">
                {t('One of those that your profile had when the task started.')} <Link href="/profile">{t('Profile')}</Link>
              </span>
            </Line>
            <p className="quiet small">
              {isOnlyThere(target.host, server)
                ? t('The task listens on the server’s own machine alone: the commands go through {server}, where you need an account.', { server })
                : t('Your machine must reach {host}. From elsewhere go through one that does: ssh -J.', { host: target.host })}{' '}
              {t('The image must have an ssh server. The key is that of all tasks of this job: give it to nobody.')}
            </p>
          </>
        )}
      </div>
    )
  }
  return (
    <Dialog wide title={t('Reach a task by ssh')} onClose={onClose}>
      {body()}
      <div className="dialog-foot">
        <Button onClick={onClose}>{t('Close')}</Button>
      </div>
    </Dialog>
  )
}
