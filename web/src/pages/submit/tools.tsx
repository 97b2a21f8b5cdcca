// What the platform does beside the commands: an ssh server and TensorBoard, as runtime plugins of the job file, and messages about its changes.
import { useState } from 'react'
import { createPortal } from 'react-dom'
import { sessionGet } from '../../api/client'
import { folderAdd, folderRemove, folderRename, folderSet, noticesSet, parameterSet, pluginIgnore, pluginSet, userKeySet, type NoticeKind, type PluginName, type SshForm, type TensorboardForm } from '../../editor/job-extras'
import { labelSet, type JobForm } from '../../editor/job-file'
import { t } from '../../i18n/i18n'
import { TENSORBOARD } from '../../lib/port-names'
import { Link } from '../../router'
import { later } from '../../ui/later'
import { NoticeKinds } from '../../ui/notice-kinds'
import { Button, Check, TextField } from '../../ui/ui'
import { numberOf, Renamed, type Editing } from './fields'

const MakeDialog = later(async () => ({ default: (await import('../profile/keys')).MakeDialog }), null)

const NOTICES_USUAL: NoticeKind[] = ['succeeded', 'failed'] // how it ends, unless somebody has stopped it

const LOGS = '/mnt/tensorboard' // as OpenPAI's portal

/** `usual`: of which changes the person wants to be told; none: that is not said; null: it is not known yet. */
export function Tools({ form, text, setText, usual }: Editing & { form: JobForm; usual: NoticeKind[] | null }) {
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
      <Check
        checked={form.notices.length > 0}
        disabled={!usual && form.notices.length === 0}
        onChange={(event) => setText(noticesSet(text, event.target.checked ? (usual?.length ? usual : NOTICES_USUAL) : []))}
      >
        {t('Tell me when the job changes')}
      </Check>
      {form.notices.length > 0 && <Notices asked={form.notices} text={text} setText={setText} />}
    </section>
  )
}

/** Of which changes; with the last of them the switch goes off. */
function Notices({ asked, text, setText }: Editing & { asked: NoticeKind[] }) {
  return (
    <div role="group" aria-label={t('Tell me when the job changes')} className="part stack">
      <p className="small quiet">{t('By mail to the address of your account, where the administrators have set up a mail server; else the check of the file says so.')}</p>
      <NoticeKinds asked={asked} onChange={(kinds) => setText(noticesSet(text, kinds))} />
    </div>
  )
}

function Roles({ roles }: { roles: string[] }) {
  if (!roles.length) return null
  return <p className="small quiet">{t('Only for the roles {names}', { names: roles.join(', ') })}</p>
}

function Ssh({ ssh, text, setText }: Editing & { ssh: SshForm }) {
  const [isMaking, setMaking] = useState(false)
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
      <div className="row">
        <Button small onClick={() => setMaking(true)}>
          {t('Make a key for this job …')}
        </Button>
      </div>
      <Check checked={ssh.isFailureIgnored} onChange={(event) => setText(pluginIgnore(text, 'ssh', event.target.checked))}>
        {t('Run without ssh where the image has no server')}
      </Check>
      {isMaking &&
        createPortal(
          <MakeDialog
            user={sessionGet()?.user ?? ''}
            onClose={() => setMaking(false)}
            onSave={async (key) => {
              setText(userKeySet(text, key.value))
            }}
          />,
          document.body, // its form stands in no other
        )}
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
