// The common fields of a job file as a form, and changes of them as edits of the text: comments, order and everything
// that the form does not show stay as they are.
import { JUPYTER } from '../lib/port-names'
import { Document, isMap, isSeq, Scalar, YAMLMap } from 'yaml'
import { jobParse, pairsOf, print, prune, text, type Path } from './document'
import { maskRemove } from './kept-secrets'
import { environmentOf, type Variable } from './job-env'
import { noticesOf, sshOf, storagesAreDefault, storagesOf, tensorboardOf, type NoticeKind, type SshForm, type StorageForm, type TensorboardForm } from './job-extras'

export interface RoleForm {
  name: string
  instances: string
  image: string // as `dockerImage` names it
  cpu: string
  memoryMB: string
  gpu: string
  commands: string
  environment: Variable[] // that their head sets
  retries: string
  shmMB: string
  minFailed: string
  minSucceeded: string
  skuType: string
  ports: [string, string][] // label and how many
}

/** How the server signs in to the registry of an image. The password stands among the secrets. */
export interface ImageAuth {
  registry: string
  username: string
  secret: string // its name; "": none is referred to
  password: string
}

export interface JobForm {
  name: string
  vc: string
  retries: string
  priority: string
  images: { name: string; uri: string; auth: ImageAuth }[]
  roles: RoleForm[]
  parameters: [string, string][]
  secrets: [string, string][]
  storages: StorageForm[]
  hasDefaultStorages: boolean // an empty list asks for the user's default ones
  notices: NoticeKind[] // the changes of which the user is told; []: none
  ssh: SshForm | null
  tensorboard: TensorboardForm | null
}

const HIVED_ROLES = ['extras', 'hivedScheduler', 'taskRoles']

const pairs = (document: Document, key: string) => pairsOf(document.get(key))

/** null: the text is no map, so there is no form of it. */
export function formOf(source: string): JobForm | null {
  const { document, problems } = jobParse(source)
  if (problems.length || !isMap(document.contents)) return null
  const prerequisites = document.get('prerequisites')
  const images = (isSeq(prerequisites) ? prerequisites.items : [])
    .filter((item): item is YAMLMap => isMap(item) && item.get('type') === 'dockerimage')
    .map((item) => ({ name: text(item.get('name')), uri: text(item.get('uri')), auth: authOf(document, item) }))
  const roles = document.get('taskRoles')
  return {
    name: text(document.get('name')),
    vc: text(document.getIn(['defaults', 'virtualCluster'])),
    retries: text(document.get('jobRetryCount')),
    priority: text(document.getIn(['extras', 'hivedScheduler', 'jobPriorityClass'])),
    images,
    roles: (isMap(roles) ? roles.items : []).map((item) => {
      const name = text((item.key as Scalar).value)
      const at = (...path: string[]) => text(document.getIn(['taskRoles', name, ...path]))
      const commands = document.getIn(['taskRoles', name, 'commands'])
      return {
        name,
        instances: at('instances'),
        image: at('dockerImage'),
        cpu: at('resourcePerInstance', 'cpu'),
        memoryMB: at('resourcePerInstance', 'memoryMB'),
        gpu: at('resourcePerInstance', 'gpu'),
        commands: isSeq(commands) ? commands.items.map((line) => text((line as Scalar).value)).join('\n') : '',
        environment: environmentOf(document, name),
        retries: at('taskRetryCount'),
        shmMB: at('extraContainerOptions', 'shmMB'),
        minFailed: at('completion', 'minFailedInstances'),
        minSucceeded: at('completion', 'minSucceededInstances'),
        skuType: text(document.getIn([...HIVED_ROLES, name, 'skuType'])),
        ports: pairsOf(document.getIn(['taskRoles', name, 'resourcePerInstance', 'ports'])),
      }
    }),
    parameters: pairs(document, 'parameters'),
    secrets: pairs(document, 'secrets'),
    storages: storagesOf(document),
    hasDefaultStorages: storagesAreDefault(document),
    notices: noticesOf(document),
    ssh: sshOf(document),
    tensorboard: tensorboardOf(document),
  }
}

/** Changes one field; null removes it. A text that looks like a number gets quotes. */
export function fieldSet(source: string, path: Path, value: string | number | null): string {
  const { document, problems } = jobParse(source)
  if (problems.length) return source
  if (value === null) document.deleteIn(path)
  else {
    const now = document.getIn(path, true)
    // the scalar keeps its comment, and its quotes while it is a text
    if (now instanceof Scalar) {
      if (typeof now.value !== typeof value) delete now.type
      now.value = value
    } else document.setIn(path, value)
  }
  return print(document)
}

/** The parameters that are numbers in this text. */
export function parameterNumbers(source: string): Set<string> {
  const map = jobParse(source).document.get('parameters')
  const items = isMap(map) ? map.items : []
  return new Set(items.filter((item) => typeof (item.value as Scalar | null)?.value === 'number').map((item) => text((item.key as Scalar).value)))
}

/** What a parameter that is a number gets while one writes it. On the way from 0.1 to 0.05 stand texts: `0.`, `0.0`. */
export function numberBegun(value: string): string | number {
  const number = Number(value)
  return Number.isFinite(number) && String(number) === value ? number : value
}

export function commandsSet(source: string, role: string, lines: string): string {
  const { document, problems } = jobParse(source)
  if (problems.length) return source
  const path = ['taskRoles', role, 'commands']
  const now = document.getIn(path)
  const next = lines.split('\n')
  if (isSeq(now)) {
    // items that stay the same keep their comments
    const before = now.items
    now.items = next.map((line, index) => {
      const item = before[index]
      return item instanceof Scalar && item.value === line ? item : document.createNode(line)
    })
  } else document.setIn(path, document.createNode(next))
  return print(document)
}

export function imageSet(source: string, name: string, uri: string): string {
  const { document, problems } = jobParse(source)
  const prerequisites = document.get('prerequisites')
  if (problems.length) return source
  const items = isSeq(prerequisites) ? prerequisites.items : []
  const index = items.findIndex((item) => isMap(item) && item.get('type') === 'dockerimage' && text(item.get('name')) === name)
  if (index >= 0) return fieldSet(source, ['prerequisites', index, 'uri'], uri)
  const image = document.createNode({ name, type: 'dockerimage', uri })
  if (isSeq(prerequisites)) prerequisites.add(image)
  else document.set('prerequisites', document.createNode([image]))
  return print(document)
}

/** A further image, for this role alone to begin with; it starts as the one that the role has. */
export function imageAdd(source: string, role: string): string {
  const { document, problems } = jobParse(source)
  const prerequisites = document.get('prerequisites')
  const form = formOf(source)
  if (problems.length || !form) return source
  const now = form.roles.find(({ name }) => name === role)?.image
  const uri = (form.images.find(({ name }) => name === now) ?? form.images[0])?.uri ?? 'skep/base'
  const taken = new Set(isSeq(prerequisites) ? prerequisites.items.map((item) => (isMap(item) ? text(item.get('name')) : '')) : [])
  const stem = `${role}_image`
  let name = stem
  for (let i = 2; taken.has(name); i++) name = `${stem}${i}`
  return fieldSet(imageSet(source, name, uri), ['taskRoles', role, 'dockerImage'], name)
}

/** What no role uses may go, and its password with it. */
export function imageRemove(source: string, name: string): string {
  const next = authSet(source, name, { registry: '', username: '', password: '' })
  const { document, problems } = jobParse(next)
  const prerequisites = document.get('prerequisites')
  if (problems.length || !isSeq(prerequisites)) return source
  const index = prerequisites.items.findIndex((item) => isMap(item) && item.get('type') === 'dockerimage' && text(item.get('name')) === name)
  return index < 0 ? source : removeAt(next, ['prerequisites', index])
}

const MEMORY_NEW = 256 // MB of a role that nobody has changed yet

export function roleAdd(source: string): string {
  const { document, problems } = jobParse(source)
  if (problems.length) return source
  const form = formOf(source)
  const names = new Set(form?.roles.map((role) => role.name))
  let name = 'worker'
  for (let i = 2; names.has(name); i++) name = `worker${i}`
  document.setIn(
    ['taskRoles', name],
    document.createNode({
      instances: 1,
      dockerImage: form?.images[0]?.name ?? 'image',
      resourcePerInstance: { cpu: 1, memoryMB: MEMORY_NEW, gpu: 0 },
      commands: ['echo hello'],
    }),
  )
  return print(document)
}

export function removeAt(source: string, path: Path): string {
  const { document, problems } = jobParse(source)
  if (problems.length) return source
  document.deleteIn(path)
  return print(document)
}

export function keyRename(source: string, path: Path, to: string): string {
  const { document, problems } = jobParse(source)
  if (problems.length || !to) return source
  const parent = document.getIn(path.slice(0, -1))
  if (!isMap(parent) || parent.has(to)) return source
  const item = parent.items.find((one) => text((one.key as Scalar).value) === path.at(-1))
  if (!item) return source
  ;(item.key as Scalar).value = to
  return print(document)
}

export function pairAdd(source: string, key: string): string {
  const { document, problems } = jobParse(source)
  if (problems.length) return source
  const names = new Set(pairs(document, key).map(([name]) => name))
  let name = 'name'
  for (let i = 2; names.has(name); i++) name = `name${i}`
  if (key === 'secrets') maskRemove(document)
  document.setIn([key, name], '')
  return print(document)
}

// ---- roles ----

/** Its name in the text, and in what says how it is placed. */
export function roleRename(source: string, from: string, to: string): string {
  const renamed = keyRename(source, ['taskRoles', from], to)
  return renamed === source ? source : keyRename(renamed, [...HIVED_ROLES, from], to)
}

export function roleRemove(source: string, name: string): string {
  const { document, problems } = jobParse(source)
  if (problems.length) return source
  document.deleteIn(['taskRoles', name])
  if (document.hasIn([...HIVED_ROLES, name])) {
    document.deleteIn([...HIVED_ROLES, name])
    prune(document, HIVED_ROLES)
  }
  return print(document)
}

export interface Sku {
  gpu: number
  cpu: number
  memory: number
}

/** How many of a SKU an instance asks for; null: its resources are no whole number of them. */
export function skuCount(role: RoleForm, sku: Sku): number | null {
  const count = sku.gpu ? Number(role.gpu) / sku.gpu : Number(role.cpu) / sku.cpu
  const isWhole = Number.isInteger(count) && count > 0
  return isWhole && Number(role.gpu) === count * sku.gpu && Number(role.cpu) === count * sku.cpu && Number(role.memoryMB) === count * sku.memory ? count : null
}

/** Has an instance ask for so many of a SKU; without one, for any device, and its resources stay. */
export function skuSet(source: string, role: string, type: string, sku: Sku | null, count: number): string {
  if (!type) {
    const { document, problems } = jobParse(source)
    if (problems.length || !document.hasIn([...HIVED_ROLES, role, 'skuType'])) return source
    document.deleteIn([...HIVED_ROLES, role, 'skuType'])
    document.deleteIn([...HIVED_ROLES, role, 'skuNum'])
    prune(document, [...HIVED_ROLES, role])
    return print(document)
  }
  let next = fieldSet(source, [...HIVED_ROLES, role, 'skuType'], type)
  if (!sku) return next
  for (const [field, value] of [['gpu', sku.gpu], ['cpu', sku.cpu], ['memoryMB', sku.memory]] as const) next = fieldSet(next, ['taskRoles', role, 'resourcePerInstance', field], value * count)
  return next
}

/** What comes with one GPU of whatever type: the least that any of these types has beside it. */
export function shareOfGpu(types: Sku[]): Sku | null {
  const withGpus = types.filter(({ gpu }) => gpu > 0)
  if (!withGpus.length) return null
  const least = (of: (sku: Sku) => number) => Math.min(...withGpus.map((sku) => Math.floor(of(sku) / sku.gpu)))
  return { gpu: 1, cpu: least(({ cpu }) => cpu), memory: least(({ memory }) => memory) }
}

/** So many GPUs, and the CPUs and the memory that come with them, where nobody has chosen others. */
export function gpusSet(source: string, role: RoleForm, gpus: number | null, share: Sku | null): string {
  const next = fieldSet(source, ['taskRoles', role.name, 'resourcePerInstance', 'gpu'], gpus)
  if (!share || !gpus) return next
  const shares = Number(role.cpu) / share.cpu
  const areShares = Number.isInteger(shares) && shares > 0 && Number(role.memoryMB) === shares * share.memory
  const areNew = role.cpu === '1' && role.memoryMB === String(MEMORY_NEW)
  if (!areShares && !areNew) return next
  const put = (text: string, field: string, value: number) => fieldSet(text, ['taskRoles', role.name, 'resourcePerInstance', field], value)
  return put(put(next, 'cpu', gpus * share.cpu), 'memoryMB', gpus * share.memory)
}

export function portAdd(source: string, role: string): string {
  const { document, problems } = jobParse(source)
  if (problems.length) return source
  const path = ['taskRoles', role, 'resourcePerInstance', 'ports']
  const labels = new Set(pairsOf(document.getIn(path)).map(([label]) => label))
  let label = 'port'
  for (let i = 2; labels.has(label); i++) label = `port${i}`
  document.setIn([...path, label], 1)
  return print(document)
}

export function portRemove(source: string, role: string, label: string): string {
  const { document, problems } = jobParse(source)
  if (problems.length) return source
  const path = ['taskRoles', role, 'resourcePerInstance', 'ports']
  document.deleteIn([...path, label])
  const map = document.getIn(path)
  if (isMap(map) && !map.items.length) document.deleteIn(path)
  return print(document)
}

/** Each role gets a port of this label, or gives the one that it has for it back; the others stay as they are. */
export function labelSet(source: string, label: string, isWanted: boolean): string {
  return (formOf(source)?.roles ?? []).reduce((text, role) => {
    const count = role.ports.find(([one]) => one === label)?.[1]
    if (isWanted) return count === undefined ? fieldSet(text, ['taskRoles', role.name, 'resourcePerInstance', 'ports', label], 1) : text
    return count === '1' ? portRemove(text, role.name, label) : text
  }, source)
}

// ---- registries ----

const SECRET = /^<%\s*\$secrets\.([\w-]+)\s*%>$/

function authOf(document: Document, image: YAMLMap): ImageAuth {
  const at = (key: string) => text(image.getIn(['auth', key]))
  const secret = SECRET.exec(at('password'))?.[1] ?? ''
  return { registry: at('registryuri'), username: at('username'), secret, password: secret ? text(isMap(document.get('secrets')) ? document.getIn(['secrets', secret]) : document.get('secrets')) : at('password') }
}

/** The password becomes a secret, which the stored job does not show; without all three nobody signs in. */
export function authSet(source: string, image: string, change: Partial<Pick<ImageAuth, 'registry' | 'username' | 'password'>>): string {
  const { document, problems } = jobParse(source)
  const prerequisites = document.get('prerequisites')
  if (problems.length || !isSeq(prerequisites)) return source
  const item = prerequisites.items.find((one): one is YAMLMap => isMap(one) && one.get('type') === 'dockerimage' && text(one.get('name')) === image)
  if (!item) return source
  const before = authOf(document, item)
  const after = { ...before, ...change }
  if (!after.registry && !after.username && !after.password) {
    item.delete('auth')
    if (before.secret && isMap(document.get('secrets'))) document.deleteIn(['secrets', before.secret])
    prune(document, ['secrets'])
    return print(document)
  }
  const put = (key: string, value: string) => {
    if (value) item.setIn(['auth', key], value)
    else item.deleteIn(['auth', key])
  }
  if (!isMap(item.get('auth'))) item.set('auth', document.createNode({}))
  put('username', after.username)
  if (change.registry !== undefined) put('registryuri', after.registry)
  if (change.password !== undefined) {
    const taken = new Set(pairs(document, 'secrets').map(([name]) => name))
    let name = before.secret || 'registry_password'
    for (let i = 2; !before.secret && taken.has(name); i++) name = `registry_password${i}`
    const value = document.createNode(after.password)
    value.type = Scalar.QUOTE_DOUBLE // what looks like a number stays a text
    maskRemove(document)
    document.setIn(['secrets', name], value)
    put('password', `<% $secrets.${name} %>`)
  }
  return print(document)
}

export const JOB_NEW = `# A job of one task. The form beside changes this text; comments stay.
protocolVersion: 2
name: {name}
type: job
prerequisites:
  - name: base
    type: dockerimage
    uri: skep/base
taskRoles:
  main:
    instances: 1
    dockerImage: base
    resourcePerInstance:
      cpu: 1
      memoryMB: ${MEMORY_NEW}
      gpu: 0
    commands:
      - echo hello from $PAI_CURRENT_TASK_ROLE_NAME
`

/** JupyterLab at a port of its own, which the page of the job opens. It needs no password: nobody else gets there. */
export const JOB_NOTEBOOK = `# A notebook. When it runs: More actions, Open a port, Jupyter.
protocolVersion: 2
name: {name}
type: job
prerequisites:
  - name: notebook
    type: dockerimage
    uri: quay.io/jupyter/minimal-notebook # or another one that has JupyterLab
taskRoles:
  notebook:
    instances: 1
    dockerImage: notebook
    resourcePerInstance:
      cpu: 2
      memoryMB: 4096
      gpu: 0
      ports:
        ${JUPYTER}: 1
    commands:
      - >-
        jupyter lab --no-browser --allow-root --ip 127.0.0.1 --port $PAI_CONTAINER_HOST_${JUPYTER}_PORT_LIST
        --ServerApp.allow_remote_access=True --IdentityProvider.token=
`

/** A name that nothing has yet: "train" becomes "train_2", "train_2" becomes "train_3". */
export function nameNext(name: string): string {
  const match = /^(.*?)_(\d+)$/.exec(name)
  return match ? `${match[1]}_${Number(match[2]) + 1}` : `${name}_2`
}
