import { useId, useMemo, useState, type CSSProperties } from 'react'
import { useQuery } from '@tanstack/react-query'
import { clustersQuery, infoQuery, nodesQuery, nodeUseQuery, skusQuery } from '../../api/queries'
import type { NoticeKind } from '../../editor/job-extras'
import {
  authSet,
  commandsSet,
  fieldSet,
  gpusSet,
  imageAdd,
  keyRename,
  numberBegun,
  pairAdd,
  parameterNumbers,
  portAdd,
  portRemove,
  removeAt,
  roleAdd,
  roleRemove,
  roleRename,
  shareOfGpu,
  skuCount,
  skuSet,
  type JobForm,
  type RoleForm,
  type Sku,
} from '../../editor/job-file'
import type { Schema } from '../../api/client'
import { t } from '../../i18n/i18n'
import { mebibytes } from '../../lib/format'
import { freeOfAll, freeOfCluster, freeOfNodes, type Free } from '../../lib/free'
import { AskAccess } from '../../ui/ask-access'
import { Closed, isClosed } from '../../ui/closed'
import { useAwaited } from '../../ui/in-order'
import { Button, Loading, SelectField, TextField } from '../../ui/ui'
import { later } from '../../ui/later'
import { Environment, PlatformVariables } from './environment'
import { numberOf, Renamed, type Editing } from './fields'
import { Images } from './images'
import { Storages } from './storages'
import { Tools } from './tools'

const Commands = later(() => import('../../editor/commands'), null)

interface Props extends Editing {
  form: JobForm
  vcs: string[]
  notices: NoticeKind[] | null // of which changes the person wants to be told; null: it is not known yet
  isTemplate: boolean // its parameters are what one is asked for
}

/** Of the virtual cluster of the job, and of all of them; maps without a type say nothing about it. */
function useFree(vc: string): { here: Map<string, Free>; all: Map<string, Free>; hasCells: boolean } {
  const { data: clusters } = useQuery(clustersQuery)
  const hasCells = Object.values(clusters ?? {}).some(({ skus }) => !!skus && Object.keys(skus).length > 0)
  const asksNodes = !!clusters && !hasCells
  const { data: nodes } = useQuery({ ...nodesQuery, enabled: asksNodes })
  const { data: use } = useQuery({ ...nodeUseQuery, enabled: asksNodes })
  return useMemo(() => {
    if (hasCells) return { here: freeOfCluster(clusters ?? {}, vc), all: freeOfAll(clusters ?? {}), hasCells }
    const all = freeOfNodes(nodes?.data ?? [], use ?? {})
    return { here: all, all, hasCells }
  }, [clusters, hasCells, nodes, use, vc])
}

const freeText = (free: Free | undefined) => (free ? t('{free} of {total} free', { free: free.free, total: free.total }) : '')

/** Which types of devices there are, and how many of each are free. */
function Types({ skus, vc }: { skus: Schema['SkuTypes']; vc: string }) {
  const { here, all, hasCells } = useFree(vc)
  return (
    <details className="small">
      <summary>{t('What the cluster has, and what of it is free')}</summary>
      <ul>
        {Object.entries(skus).map(([name, sku]) => (
          <li key={name}>
            <code>{name}</code>: {t('{gpu} GPU, {cpu} CPU, {memory}', { gpu: sku.gpu ?? 0, cpu: sku.cpu ?? 0, memory: mebibytes(sku.memory ?? 0) })}
            {here.has(name) && ` · ${hasCells ? t('in {vc}: {free}', { vc, free: freeText(here.get(name)) }) : freeText(here.get(name))}`}
            {hasCells && all.has(name) && ` · ${t('in all virtual clusters: {free}', { free: freeText(all.get(name)) })}`}
          </li>
        ))}
      </ul>
      {hasCells && <p className="quiet">{t('Free in a virtual cluster is what none of its jobs holds; opportunistic jobs are ended for it. Try says where this job would start.')}</p>}
    </details>
  )
}

export function JobFormView({ form, text, setText, vcs, notices, isTemplate }: Props) {
  const set = (path: (string | number)[], value: string) => setText(fieldSet(text, path, value || null))
  const { data: skus, isLoading } = useQuery(skusQuery(form.vc))
  const { data: clusters } = useQuery(clustersQuery)
  const { isLoading: areImagesMissing } = useQuery(infoQuery)
  const isAwaited = useAwaited(!isLoading && !areImagesMissing) // what there is to choose from makes fields
  const [numbers] = useState(() => parameterNumbers(text)) // of the template: a text between two numbers is none of its own
  const asks = isTemplate && form.parameters.length > 0
  if (isAwaited) return <Loading />
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
          {isClosed(clusters?.[form.vc || VC_DEFAULT]) && (
            <p className="note small" data-kind="wait" role="status">
              <Closed cluster={clusters?.[form.vc || VC_DEFAULT]} /> · {t('the job waits until it is opened')}
            </p>
          )}
          {form.vc && !vcs.includes(form.vc) && <AskAccess vc={form.vc} />}
          <SelectField label={t('Priority')} value={form.priority} onChange={(event) => set(['extras', 'hivedScheduler', 'jobPriorityClass'], event.target.value)}>
            <option value="">{t('default')}</option>
            {['oppo', 'test', 'prod', 'crit'].map((priority) => (
              <option key={priority}>{priority}</option>
            ))}
          </SelectField>
          <TextField label={t('Retries')} type="number" min={-2} value={form.retries} placeholder="0" onChange={(event) => setText(fieldSet(text, ['jobRetryCount'], numberOf(event.target.value)))} />
          <Images form={form} text={text} setText={setText} />
        </div>
        {form.images.map(({ name, auth }) => {
          const label = (title: string) => (form.images.length > 1 ? `${title} · ${name}` : title)
          return (
            <details key={name} className="small" open={!!(auth.username || auth.password) || undefined}>
              <summary>{label(t('Sign in to the registry of the image'))}</summary>
              <div className="fields">
                <TextField label={label(t('Registry'))} placeholder="docker.io" value={auth.registry} onChange={(event) => setText(authSet(text, name, { registry: event.target.value }))} />
                <TextField label={label(t('User name'))} value={auth.username} onChange={(event) => setText(authSet(text, name, { username: event.target.value }))} />
                <TextField
                  label={label(t('Password'))}
                  type="password"
                  autoComplete="new-password"
                  hint={t('It stands among the secrets, which the stored job does not show.')}
                  value={auth.password}
                  onChange={(event) => setText(authSet(text, name, { password: event.target.value }))}
                />
              </div>
            </details>
          )
        })}
        {skus && Object.keys(skus).length > 0 && <Types skus={skus} vc={form.vc || VC_DEFAULT} />}
      </section>
      {form.roles.map((role) => (
        <Role key={role.name} role={role} form={form} skus={skus ?? {}} text={text} setText={setText} />
      ))}
      <div className="row">
        <Button onClick={() => setText(roleAdd(text))}>{t('Add a role')}</Button>
      </div>
      <PlatformVariables />
      <Storages form={form} text={text} setText={setText} />
      <Tools form={form} text={text} setText={setText} usual={notices} />
      {!asks && <Pairs title={t('Parameters')} name="parameters" hint="<% $parameters.name %>" pairs={form.parameters} text={text} setText={setText} />}
      <Pairs title={t('Secrets')} name="secrets" hint="<% $secrets.name %>" isSecret pairs={form.secrets} text={text} setText={setText} />
    </>
  )
}

const skuOf = ({ gpu, cpu, memory }: Schema['SkuTypes'][string]): Sku => ({ gpu: gpu ?? 0, cpu: cpu ?? 0, memory: memory ?? 0 })

const VC_DEFAULT = 'default' // of a job that names none
const ANOTHER = '<another>' // no name of an image is like this

function Role({ role, form, skus, text, setText }: { role: RoleForm; form: JobForm; skus: Schema['SkuTypes']; text: string; setText: (text: string) => void }) {
  const at = (...path: string[]) => ['taskRoles', role.name, ...path]
  const about = useId()
  const types = Object.entries(skus).filter(([type]) => !role.skuType || type === role.skuType)
  const share = shareOfGpu(types.map(([, sku]) => skuOf(sku)))
  const number = (label: string, value: string, min: number, ...path: string[]) => (
    <TextField label={label} type="number" min={min} value={value} onChange={(event) => setText(fieldSet(text, at(...path), numberOf(event.target.value)))} />
  )
  return (
    <section className="card" aria-label={t('Role {name}', { name: role.name })}>
      <div className="card-head">
        <h2>{t('Role {name}', { name: role.name })}</h2>
        {form.roles.length > 1 && (
          <Button small kind="danger" onClick={() => setText(roleRemove(text, role.name))}>
            {t('Remove the role {name}', { name: role.name })}
          </Button>
        )}
      </div>
      <div className="fields fields-narrow">
        <Renamed label={t('Name')} value={role.name} taken={form.roles.map(({ name }) => name)} onRename={(name) => setText(roleRename(text, role.name, name))} />
        {number(t('Instances'), role.instances, 0, 'instances')}
        <SkuFields role={role} skus={skus} vc={form.vc || VC_DEFAULT} text={text} setText={setText} />
        <TextField
          label={t('GPUs')}
          type="number"
          min={0}
          value={role.gpu}
          {...(share ? { 'aria-describedby': about } : {})}
          onChange={(event) => setText(gpusSet(text, role, numberOf(event.target.value), share))}
        />
        {number(t('CPUs'), role.cpu, 0, 'resourcePerInstance', 'cpu')}
        {number(t('Memory, MB'), role.memoryMB, 0, 'resourcePerInstance', 'memoryMB')}
        {form.images.length > 0 && (
          <SelectField
            label={t('Image of the role')}
            value={role.image}
            onChange={(event) => setText(event.target.value === ANOTHER ? imageAdd(text, role.name) : fieldSet(text, at('dockerImage'), event.target.value))}
          >
            {!form.images.some(({ name }) => name === role.image) && <option value={role.image} lang="">{role.image}</option>}
            {form.images.map((image) => (
              <option key={image.name} lang="">
                {image.name}
              </option>
            ))}
            <option value={ANOTHER}>{t('another one')}</option>
          </SelectField>
        )}
      </div>
      {share && (
        <p id={about} className="small quiet">
          {t('With each GPU come {cpu} CPU and {memory}, unless you choose others.', { cpu: share.cpu, memory: mebibytes(share.memory) })}
        </p>
      )}
      <details className="small">
        <summary>{t('Retries, shared memory, and when the job ends')}</summary>
        <div className="fields fields-narrow">
          {number(t('Retries of a task'), role.retries, -2, 'taskRetryCount')}
          {number(t('Shared memory, MB'), role.shmMB, 1, 'extraContainerOptions', 'shmMB')}
          {number(t('Failed tasks that end the job'), role.minFailed, -1, 'completion', 'minFailedInstances')}
          {number(t('Succeeded tasks that end the job'), role.minSucceeded, -1, 'completion', 'minSucceededInstances')}
        </div>
      </details>
      <Ports role={role} text={text} setText={setText} />
      <Environment role={role} text={text} setText={setText} />
      <div className="field">
        <span className="label" aria-hidden="true">{t('Commands, one a line')}</span>
        <div className="commands input" style={{ '--lines': Math.min(10, Math.max(3, role.commands.split('\n').length)) } as CSSProperties}>
          <Commands text={role.commands} label={t('Commands, one a line')} roles={form.roles.map(({ name }) => name)} onChange={(next) => setText(commandsSet(text, role.name, next))} />
        </div>
      </div>
    </section>
  )
}

/** Which type of device, and how many: they fill in GPUs, CPUs and memory. */
function SkuFields({ role, skus, vc, text, setText }: { role: RoleForm; skus: Schema['SkuTypes']; vc: string; text: string; setText: (text: string) => void }) {
  const names = [...new Set([...Object.keys(skus), ...(role.skuType ? [role.skuType] : [])])]
  const { here } = useFree(vc)
  if (!names.length) return null
  const skuOfType = (type: string) => (skus[type] ? skuOf(skus[type]) : null)
  const sku = skuOfType(role.skuType)
  const count = sku && skuCount(role, sku)
  return (
    <>
      <SelectField label={t('SKU type')} value={role.skuType} onChange={(event) => setText(skuSet(text, role.name, event.target.value, skuOfType(event.target.value), count ?? 1))}>
        <option value="">{t('any')}</option>
        {names.map((name) => (
          <option key={name} value={name}>
            {here.has(name) ? `${name} · ${freeText(here.get(name))}` : name}
          </option>
        ))}
      </SelectField>
      {sku && (
        <TextField
          label={t('SKUs')}
          type="number"
          min={1}
          value={count ?? ''}
          placeholder={t('as below')}
          onChange={(event) => Number(event.target.value) >= 1 && setText(skuSet(text, role.name, role.skuType, sku, Math.floor(Number(event.target.value))))}
        />
      )}
    </>
  )
}

/** Ports by their labels; ssh and http are always there. */
function Ports({ role, text, setText }: { role: RoleForm; text: string; setText: (text: string) => void }) {
  const path = ['taskRoles', role.name, 'resourcePerInstance', 'ports']
  return (
    <details className="small" open={role.ports.length > 0 || undefined}>
      <summary>{t('Ports')}</summary>
      <div className="stack">
        <p className="quiet">{t('So many of each label for every task; “ssh” and “http” are always there.')}</p>
        {role.ports.map(([label, count]) => (
          <div className="row row-top pair" key={label}>
            <Renamed label={t('Label')} value={label} taken={role.ports.map(([other]) => other)} onRename={(to) => setText(keyRename(text, [...path, label], to))} />
            <TextField label={t('How many')} type="number" min={1} max={1000} value={count} onChange={(event) => setText(fieldSet(text, [...path, label], numberOf(event.target.value) ?? ''))} />
            <Button small kind="plain" aria-label={t('Remove {name}', { name: label })} onClick={() => setText(portRemove(text, role.name, label))}>
              ✕
            </Button>
          </div>
        ))}
        <div className="row">
          <Button small onClick={() => setText(portAdd(text, role.name))}>
            {t('Add ports')}
          </Button>
        </div>
      </div>
    </details>
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
          <Renamed label={t('Name')} value={key} taken={pairs.map(([other]) => other)} onRename={(to) => setText(keyRename(text, [name, key], to))} />
          <TextField label={t('Value')} type={isSecret ? 'password' : 'text'} autoComplete="new-password" value={value} onChange={(event) => setText(fieldSet(text, [name, key], event.target.value))} />
          <Button small kind="plain" aria-label={t('Remove {name}', { name: key })} onClick={() => setText(removeAt(text, [name, key]))}>
            ✕
          </Button>
        </div>
      ))}
    </section>
  )
}
