// What the platform starts beside the commands: an ssh server and TensorBoard, as runtime plugins of the job file.
import { folderAdd, folderRemove, folderRename, folderSet, parameterSet, pluginIgnore, pluginSet, userKeySet, type PluginName, type SshForm, type TensorboardForm } from '../../editor/job-extras'
import { labelSet, type JobForm } from '../../editor/job-file'
import { t } from '../../i18n/i18n'
import { TENSORBOARD } from '../../lib/port-names'
import { Link } from '../../router'
import { Button, Check, TextField } from '../../ui/ui'
import { numberOf, Renamed, type Editing } from './fields'

const LOGS = '/mnt/tensorboard' // as OpenPAI's portal

export function Tools({ form, text, setText }: Editing & { form: JobForm }) {
  const set = (name: PluginName, parameters: Record<string, unknown> | null) => setText(pluginSet(text, name, parameters))
  return (
    <section className="card" aria-label={t('Tools')}>
      <h2>{t('Tools')}</h2>
      <Check checked={!!form.ssh} onChange={(event) => set('ssh', event.target.checked ? { jobssh: true } : null)}>
        {t('ssh to the tasks')}
      </Check>
      {form.ssh && <Ssh ssh={form.ssh} text={text} setText={setText} />}
      <Check checked={!!form.tensorboard} onChange={(event) => setText(labelSet(pluginSet(text, 'tensorboard', event.target.checked ? { logdir: { path: LOGS } } : null), TENSORBOARD, event.target.checked))}>
        TensorBoard
      </Check>
      {form.tensorboard && <Tensorboard isLabelled={form.roles.some((role) => role.ports.some(([label]) => label === TENSORBOARD))} board={form.tensorboard} text={text} setText={setText} />}
    </section>
  )
}

function Roles({ roles }: { roles: string[] }) {
  if (!roles.length) return null
  return <p className="small quiet">{t('Only for the roles {names}', { names: roles.join(', ') })}</p>
}

function Ssh({ ssh, text, setText }: Editing & { ssh: SshForm }) {
  const set = (key: string, value: string | number | boolean | null) => setText(parameterSet(text, 'ssh', key, value))
  return (
    <div role="group" aria-label={t('ssh to the tasks')} className="part stack">
      <p className="small quiet">
        {t('The image must have an ssh server. Keys of your profile are let in:')} <Link href="/profile">{t('Keys for ssh')}</Link>
      </p>
      <Roles roles={ssh.roles} />
      <Check checked={ssh.isJob} onChange={(event) => set('jobssh', event.target.checked)}>
        {t('also from task to task')}
      </Check>
      {ssh.isJob && (
        <Check checked={ssh.hasBarrier} onChange={(event) => set('sshbarrier', event.target.checked || null)}>
          {t('Begin when all tasks answer by ssh')}
        </Check>
      )}
      {ssh.isJob && ssh.hasBarrier && (
        <TextField label={t('Wait for them at most, minutes')} type="number" min={1} max={100000} placeholder="30" value={ssh.barrierMinutes} onChange={(event) => set('sshbarrierTimeout', numberOf(event.target.value))} />
      )}
      <TextField
        label={t('A further public key to let in')}
        hint={!ssh.isJob && !ssh.key ? t('With neither this nor ssh from task to task no ssh server is started.') : undefined}
        placeholder="ssh-ed25519 AAAA…"
        spellCheck={false}
        value={ssh.key}
        onChange={(event) => setText(userKeySet(text, event.target.value))}
      />
      <Check checked={ssh.isFailureIgnored} onChange={(event) => setText(pluginIgnore(text, 'ssh', event.target.checked))}>
        {t('Run without ssh where the image has no server')}
      </Check>
    </div>
  )
}

function Tensorboard({ board, isLabelled, text, setText }: Editing & { board: TensorboardForm; isLabelled: boolean }) {
  return (
    <div role="group" aria-label="TensorBoard" className="part stack">
      <p className="small quiet">{t('It is started in each task, so the image must have it, and shows what the commands write to these folders.')}</p>
      <Roles roles={board.roles} />
      <TextField
        label={t('Port of TensorBoard')}
        type="number"
        min={1}
        max={65535}
        placeholder={isLabelled ? t('given by the platform') : '6006'}
        hint={board.port ? t('“Open a port” opens it only where this is empty, and a port has the label “tensorboard”.') : undefined}
        value={board.port}
        onChange={(event) => setText(parameterSet(text, 'tensorboard', 'port', numberOf(event.target.value)))}
      />
      {board.folders.map(([name, path]) => (
        <div className="row row-top pair" key={name}>
          <Renamed label={t('Name of the logs')} value={name} taken={board.folders.map(([other]) => other)} onRename={(to) => setText(folderRename(text, name, to))} />
          <TextField label={t('Folder of the logs')} value={path} onChange={(event) => setText(folderSet(text, name, event.target.value))} />
          <Button small kind="plain" aria-label={t('Remove {name}', { name })} onClick={() => setText(folderRemove(text, name))}>
            ✕
          </Button>
        </div>
      ))}
      <div className="row">
        <Button small onClick={() => setText(folderAdd(text, LOGS))}>
          {t('Add a folder')}
        </Button>
      </div>
      <Check checked={board.isFailureIgnored} onChange={(event) => setText(pluginIgnore(text, 'tensorboard', event.target.checked))}>
        {t('Run without TensorBoard where the image has none')}
      </Check>
    </div>
  )
}
