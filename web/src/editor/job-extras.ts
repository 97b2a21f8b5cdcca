// What a job file asks for among its extras: storages, messages about its changes, and the runtime plugins for ssh and TensorBoard. Changes are edits of the
// text; what is switched off again leaves nothing behind.
import { Document, isMap, isScalar, isSeq, Scalar, YAMLMap } from 'yaml'
import { jobParse, pairsOf, print, prune, text, type Path } from './document'

const STORAGES = ['extras', 'storages']
const PLUGINS = ['extras', 'com.microsoft.pai.runtimeplugin']

const itemsOf = (document: Document, path: Path): YAMLMap[] => {
  const list = document.getIn(path)
  return isSeq(list) ? list.items.filter((item): item is YAMLMap => isMap(item)) : []
}

/** Adds an item to a list, which is made when it is not there. */
function itemAdd(document: Document, path: Path, value: unknown) {
  const list = document.getIn(path)
  const item = document.createNode(value)
  if (isSeq(list)) list.add(item)
  else document.setIn(path, document.createNode([item]))
}

/** Takes items out of a list, and the list with the last of them. */
function itemsRemove(document: Document, path: Path, isGone: (item: YAMLMap) => boolean) {
  const list = document.getIn(path)
  if (!isSeq(list)) return
  list.items = list.items.filter((item) => !isMap(item) || !isGone(item))
  if (list.items.length) return
  document.deleteIn(path)
  prune(document, path.slice(0, -1))
}

/** The text after `change`, which gets the document; a text that is no YAML stays as it is. */
function changed(source: string, change: (document: Document) => void): string {
  const { document, problems } = jobParse(source)
  if (problems.length) return source
  change(document)
  return print(document)
}

/** A scalar keeps its comment; null removes it. */
function put(map: YAMLMap, key: string, value: string | number | boolean | null) {
  const now = map.get(key, true)
  if (value === null) map.delete(key)
  else if (isScalar(now)) {
    if (typeof now.value !== typeof value) delete now.type
    now.value = value
  } else map.set(key, value)
}

// ---- storages ----

export interface StorageForm {
  name: string
  mountPath: string // "": where it is mounted by default
}

export const mountPathOf = (name: string) => `/mnt/${name}`

export const storagesOf = (document: Document): StorageForm[] => itemsOf(document, STORAGES).map((item) => ({ name: text(item.get('name')), mountPath: text(item.get('mountPath')) }))

/** An empty list asks for the default storages of who submits. */
export function storagesAreDefault(document: Document): boolean {
  const list = document.getIn(STORAGES)
  return isSeq(list) && !list.items.length
}

/** Has a storage mounted at its usual place, or no more; the others stay as they are. `defaults` are those that an empty list means. */
export function storageSet(source: string, name: string, isWanted: boolean, defaults: string[]): string {
  return changed(source, (document) => {
    if (storagesAreDefault(document)) for (const one of defaults) itemAdd(document, STORAGES, { name: one, mountPath: mountPathOf(one) })
    if (!isWanted) itemsRemove(document, STORAGES, (item) => text(item.get('name')) === name)
    else if (!storagesOf(document).some((one) => one.name === name)) itemAdd(document, STORAGES, { name, mountPath: mountPathOf(name) })
  })
}

/** Mounts the item of that index elsewhere; "": at its usual place. */
export function mountPathSet(source: string, index: number, path: string): string {
  return changed(source, (document) => {
    const item = itemsOf(document, STORAGES)[index]
    if (item) put(item, 'mountPath', path || null)
  })
}

// ---- messages ----

const NOTICES = ['extras', 'jobStatusChangeNotification']

/** The changes of a job of which one can be told, as the file names them, in the order in which they happen. */
export const NOTICE_KINDS = ['running', 'retried', 'succeeded', 'stopped', 'failed'] as const
export type NoticeKind = (typeof NOTICE_KINDS)[number]

export const noticesOf = (document: Document): NoticeKind[] => NOTICE_KINDS.filter((kind) => document.getIn([...NOTICES, kind]) === true)

/** Asks to be told of these changes, and of no others. What is not asked for has no line, unless it has a comment. */
export function noticesSet(source: string, kinds: readonly NoticeKind[]): string {
  return changed(source, (document) => {
    if (!isMap(document.getIn(NOTICES))) {
      if (!kinds.length) return
      document.setIn(NOTICES, document.createNode({}))
    }
    const map = document.getIn(NOTICES) as YAMLMap
    for (const kind of NOTICE_KINDS) {
      const now = map.get(kind, true)
      const isCommented = map.items.some((item) => text((item.key as Scalar).value) === kind && ((item.key as Scalar).commentBefore || (isScalar(now) && now.comment)))
      put(map, kind, kinds.includes(kind) || (isCommented ? false : null))
    }
    prune(document, NOTICES)
  })
}

// ---- plugins ----

export type PluginName = 'ssh' | 'tensorboard'

interface PluginForm {
  isFailureIgnored: boolean
  roles: string[] // [] for all
}

export interface SshForm extends PluginForm {
  isJob: boolean // between the tasks
  hasBarrier: boolean
  barrierMinutes: string
  key: string
}

export interface TensorboardForm extends PluginForm {
  port: string
  folders: [string, string][]
}

const pluginOf = (document: Document, name: PluginName) => itemsOf(document, PLUGINS).find((item) => text(item.get('plugin')) === name)

function commonOf(plugin: YAMLMap): PluginForm {
  const roles = plugin.get('taskroles') ?? plugin.get('taskRoles')
  return { isFailureIgnored: plugin.get('failurePolicy') === 'ignore', roles: isSeq(roles) ? roles.items.map((item) => text((item as Scalar).value)) : [] }
}

/** A user's key is a map since OpenPAI 1.0; before, it was the key itself. */
function keyOf(plugin: YAMLMap): string {
  const user = plugin.getIn(['parameters', 'userssh'])
  if (!isMap(user)) return text(user)
  return user.get('type') === 'none' ? '' : text(user.get('value'))
}

export function sshOf(document: Document): SshForm | null {
  const plugin = pluginOf(document, 'ssh')
  if (!plugin) return null
  const at = (key: string) => plugin.getIn(['parameters', key])
  return { ...commonOf(plugin), isJob: at('jobssh') === true, hasBarrier: at('sshbarrier') === true, barrierMinutes: text(at('sshbarrierTimeout')), key: keyOf(plugin) }
}

export function tensorboardOf(document: Document): TensorboardForm | null {
  const plugin = pluginOf(document, 'tensorboard')
  if (!plugin) return null
  return { ...commonOf(plugin), port: text(plugin.getIn(['parameters', 'port'])), folders: pairsOf(plugin.getIn(['parameters', 'logdir'])) }
}

/** Switches a plugin on with these parameters, or off: then all entries of it go. */
export function pluginSet(source: string, name: PluginName, parameters: Record<string, unknown> | null): string {
  return changed(source, (document) => {
    if (!parameters) itemsRemove(document, PLUGINS, (item) => text(item.get('plugin')) === name)
    else if (!pluginOf(document, name)) itemAdd(document, PLUGINS, { plugin: name, parameters })
  })
}

/** Its failure fails the task unless it is ignored. */
export function pluginIgnore(source: string, name: PluginName, isIgnored: boolean): string {
  return changed(source, (document) => {
    const plugin = pluginOf(document, name)
    if (plugin) put(plugin, 'failurePolicy', isIgnored ? 'ignore' : null)
  })
}

const parametersChanged = (source: string, name: PluginName, change: (parameters: YAMLMap, document: Document) => void) =>
  changed(source, (document) => {
    const plugin = pluginOf(document, name)
    if (!plugin) return
    if (!isMap(plugin.get('parameters'))) plugin.set('parameters', document.createNode({}))
    change(plugin.get('parameters') as YAMLMap, document)
  })

export const parameterSet = (source: string, name: PluginName, key: string, value: string | number | boolean | null) => parametersChanged(source, name, (parameters) => put(parameters, key, value))

/** A public key to let in; "": none. */
export const userKeySet = (source: string, key: string) =>
  parametersChanged(source, 'ssh', (parameters, document) => {
    const user = parameters.get('userssh')
    if (!key) parameters.delete('userssh')
    else if (isMap(user)) {
      put(user, 'type', 'custom')
      put(user, 'value', key)
    } else if (user) put(parameters, 'userssh', key)
    else parameters.set('userssh', document.createNode({ type: 'custom', value: key }))
  })

export const folderAdd = (source: string, path: string) =>
  parametersChanged(source, 'tensorboard', (parameters) => {
    const names = new Set(pairsOf(parameters.get('logdir')).map(([name]) => name))
    let name = 'path'
    for (let i = 2; names.has(name); i++) name = `path${i}`
    parameters.setIn(['logdir', name], path)
  })

const folders = (source: string, change: (map: YAMLMap) => void) =>
  parametersChanged(source, 'tensorboard', (parameters) => {
    const map = parameters.get('logdir')
    if (isMap(map)) change(map)
  })

export const folderSet = (source: string, name: string, path: string) => folders(source, (map) => put(map, name, path))

export const folderRemove = (source: string, name: string) => folders(source, (map) => map.delete(name))

export const folderRename = (source: string, from: string, to: string) =>
  folders(source, (map) => {
    const item = map.items.find((one) => text((one.key as Scalar).value) === from)
    if (item && to && !map.has(to)) (item.key as Scalar).value = to
  })
