import { useState } from 'react'
import { useQuery } from '@tanstack/react-query'
import { skusQuery, storagesQuery } from '../../api/queries'
import { commandsSet, fieldSet, imageSet, keyRename, numberBegun, pairAdd, parameterNumbers, removeAt, roleAdd, storageSet, type JobForm, type RoleForm } from '../../editor/job-file'
import { t } from '../../i18n/i18n'
import { mebibytes } from '../../lib/format'
import { Button, Check, Field, SelectField, TextField } from '../../ui/ui'

interface Props {
  form: JobForm
  text: string
  setText: (text: string) => void
  vcs: string[]
  isTemplate: boolean // its parameters are what one is asked for
}

const numberOf = (value: string) => (value === '' ? null : Number(value))

export function JobFormView({ form, text, setText, vcs, isTemplate }: Props) {
  const set = (path: (string | number)[], value: string) => setText(fieldSet(text, path, value || null))
  const { data: skus } = useQuery(skusQuery(form.vc))
  const image = form.images[0]
  const [numbers] = useState(() => parameterNumbers(text)) // of the template: a text between two numbers is none of its own
  const asks = isTemplate && form.parameters.length > 0
  return (
    <>
      {asks && (
        <section className="card" aria-label={t('Parameters')}>
          <h2>{t('Parameters')}</h2>
          <div className="fields">
            {form.parameters.map(([key, value], index) => (
              <TextField key={key} label={key} autoFocus={index === 0} value={value} onChange={(event) => setText(fieldSet(text, ['parameters', key], numbers.has(key) ? numberBegun(event.target.value) : event.target.value))} />
            ))}
          </div>
        </section>
      )}
      <section className="card" aria-label={t('Job')}>
        <h2>{t('Job')}</h2>
        <div className="fields">
          <TextField label={t('Name')} value={form.name} onChange={(event) => set(['name'], event.target.value)} />
          <SelectField label={t('Virtual cluster')} value={form.vc} onChange={(event) => set(['defaults', 'virtualCluster'], event.target.value)}>
            <option value="">{t('default')}</option>
            {[...new Set([...vcs, ...(form.vc ? [form.vc] : [])])].map((vc) => (
              <option key={vc}>{vc}</option>
            ))}
          </SelectField>
          <SelectField label={t('Priority')} value={form.priority} onChange={(event) => set(['extras', 'hivedScheduler', 'jobPriorityClass'], event.target.value)}>
            <option value="">{t('default')}</option>
            {['oppo', 'test', 'prod', 'crit'].map((priority) => (
              <option key={priority}>{priority}</option>
            ))}
          </SelectField>
          <TextField label={t('Retries')} type="number" min={-2} value={form.retries} placeholder="0" onChange={(event) => setText(fieldSet(text, ['jobRetryCount'], numberOf(event.target.value)))} />
          <div className="field-wide">
            <TextField label={t('Image')} value={image?.uri ?? ''} onChange={(event) => setText(imageSet(text, image?.name ?? 'image', event.target.value))} />
          </div>
        </div>
        {skus && (
          <details className="small">
            <summary>{t('What the cluster has')}</summary>
            <ul>
              {Object.entries(skus).map(([name, sku]) => (
                <li key={name}>
                  <code>{name}</code>: {t('{gpu} GPU, {cpu} CPU, {memory}', { gpu: sku.gpu ?? 0, cpu: sku.cpu ?? 0, memory: mebibytes(sku.memory ?? 0) })}
                </li>
              ))}
            </ul>
          </details>
        )}
      </section>
      {form.roles.map((role) => (
        <Role key={role.name} role={role} form={form} text={text} setText={setText} />
      ))}
      <div className="row">
        <Button onClick={() => setText(roleAdd(text))}>{t('Add a role')}</Button>
      </div>
      <Storages form={form} text={text} setText={setText} />
      {!asks && <Pairs title={t('Parameters')} name="parameters" hint="<% $parameters.name %>" pairs={form.parameters} text={text} setText={setText} />}
      <Pairs title={t('Secrets')} name="secrets" hint="<% $secrets.name %>" isSecret pairs={form.secrets} text={text} setText={setText} />
    </>
  )
}

/** What may be mounted into its tasks; a storage that the text names and nobody offers is shown as well. */
function Storages({ form, text, setText }: { form: JobForm; text: string; setText: (text: string) => void }) {
  const { data } = useQuery(storagesQuery)
  const names = [...new Set([...(data ?? []).map((storage) => storage.name ?? ''), ...form.storages])]
  if (!names.length) return null
  return (
    <section className="card" aria-label={t('Storages')}>
      <h2>{t('Storages')}</h2>
      <div className="row">
        {names.map((name) => (
          <Check key={name} checked={form.storages.includes(name)} onChange={(event) => setText(storageSet(text, name, event.target.checked))}>
            {name}
          </Check>
        ))}
      </div>
    </section>
  )
}

function Role({ role, form, text, setText }: { role: RoleForm; form: JobForm; text: string; setText: (text: string) => void }) {
  const at = (...path: string[]) => ['taskRoles', role.name, ...path]
  const number = (label: string, value: string, min: number, ...path: string[]) => (
    <TextField label={label} type="number" min={min} value={value} onChange={(event) => setText(fieldSet(text, at(...path), numberOf(event.target.value)))} />
  )
  return (
    <section className="card" aria-label={t('Role {name}', { name: role.name })}>
      <div className="card-head">
        <h2>{t('Role {name}', { name: role.name })}</h2>
        {form.roles.length > 1 && (
          <Button small kind="danger" onClick={() => setText(removeAt(text, at()))}>
            {t('Remove the role {name}', { name: role.name })}
          </Button>
        )}
      </div>
      <div className="fields fields-narrow">
        <Renamed label={t('Name')} value={role.name} onRename={(name) => setText(keyRename(text, at(), name))} />
        {number(t('Instances'), role.instances, 0, 'instances')}
        {number(t('GPUs'), role.gpu, 0, 'resourcePerInstance', 'gpu')}
        {number(t('CPUs'), role.cpu, 0, 'resourcePerInstance', 'cpu')}
        {number(t('Memory, MB'), role.memoryMB, 0, 'resourcePerInstance', 'memoryMB')}
        {form.images.length > 1 && (
          <SelectField label={t('Image')} value={role.image} onChange={(event) => setText(fieldSet(text, at('dockerImage'), event.target.value))}>
            {form.images.map((image) => (
              <option key={image.name}>{image.name}</option>
            ))}
          </SelectField>
        )}
      </div>
      <details className="small">
        <summary>{t('Retries, shared memory, and when the job ends')}</summary>
        <div className="fields fields-narrow">
          {number(t('Retries of a task'), role.retries, -2, 'taskRetryCount')}
          {number(t('Shared memory, MB'), role.shmMB, 1, 'extraContainerOptions', 'shmMB')}
          {number(t('Failed tasks that end the job'), role.minFailed, -1, 'completion', 'minFailedInstances')}
          {number(t('Succeeded tasks that end the job'), role.minSucceeded, -1, 'completion', 'minSucceededInstances')}
        </div>
      </details>
      <Field label={t('Commands, one a line')}>
        {(props) => (
          <textarea {...props} className="input mono" rows={Math.min(10, Math.max(3, role.commands.split('\n').length))} spellCheck={false} value={role.commands} onChange={(event) => setText(commandsSet(text, role.name, event.target.value))} />
        )}
      </Field>
    </section>
  )
}

/** A name is a key of the text: it changes when one leaves the field, not letter by letter. */
function Renamed({ label, value, onRename }: { label: string; value: string; onRename: (name: string) => void }) {
  return (
    <TextField
      key={value}
      label={label}
      defaultValue={value}
      onBlur={(event) => event.target.value !== value && onRename(event.target.value.trim())}
      onKeyDown={(event) => event.key === 'Enter' && event.currentTarget.blur()}
    />
  )
}

function Pairs({ title, name, hint, isSecret, pairs, text, setText }: { title: string; name: string; hint: string; isSecret?: boolean; pairs: [string, string][]; text: string; setText: (text: string) => void }) {
  return (
    <section className="card" aria-label={title}>
      <div className="card-head">
        <h2>{title}</h2>
        <code className="small quiet">{hint}</code>
        <div className="push">
          <Button small onClick={() => setText(pairAdd(text, name))}>
            {t('Add')}
          </Button>
        </div>
      </div>
      {pairs.map(([key, value]) => (
        <div className="row row-top pair" key={key}>
          <Renamed label={t('Name')} value={key} onRename={(to) => setText(keyRename(text, [name, key], to))} />
          <TextField label={t('Value')} type={isSecret ? 'password' : 'text'} autoComplete="new-password" value={value} onChange={(event) => setText(fieldSet(text, [name, key], event.target.value))} />
          <Button small kind="plain" aria-label={t('Remove {name}', { name: key })} onClick={() => setText(removeAt(text, [name, key]))}>
            ✕
          </Button>
        </div>
      ))}
    </section>
  )
}
