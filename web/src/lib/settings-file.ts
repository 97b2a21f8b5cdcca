// The settings in force as one file, as skepd reads it: what is set, or has a default; what is not set has no line.
import { Document, isScalar, isSeq } from 'yaml'
import type { Schema } from '../api/client'

export type Setting = Schema['Settings']['settings'][number]

/** `storages[0].name` is ["storages", 0, "name"]. */
export const pathOfKey = (key: string): (string | number)[] => [...key.matchAll(/([^.[\]]+)|\[(\d+)\]/g)].map((match) => (match[2] === undefined ? match[1]! : Number(match[2])))

export const isUnset = (setting: Setting) => setting.value === null || (Array.isArray(setting.value) && !setting.value.length)

interface Tree {
  [key: string | number]: Tree | unknown
}

/** Where each setting stands in the file: items of a list that are left out leave no gap. */
function placed(settings: Setting[]): [(string | number)[], Setting][] {
  const lists = new Map<string, number[]>()
  return settings.flatMap((setting): [(string | number)[], Setting][] => {
    if (isUnset(setting)) return []
    const path: (string | number)[] = []
    for (const key of pathOfKey(setting.key)) {
      if (typeof key === 'string') path.push(key)
      else {
        const items = lists.get(path.join('.')) ?? []
        lists.set(path.join('.'), items)
        if (!items.includes(key)) items.push(key)
        path.push(items.indexOf(key))
      }
    }
    return [[path, setting]]
  })
}

export function settingsTree(settings: Setting[]): unknown {
  const root: Tree = {}
  for (const [path, { value }] of placed(settings)) {
    let at = root
    path.forEach((key, index) => {
      if (index === path.length - 1) at[key] = value
      else at = (at[key] ??= typeof path[index + 1] === 'number' ? [] : {}) as Tree
    })
  }
  return root
}

export const settingsJson = (settings: Setting[]) => `${JSON.stringify(settingsTree(settings), null, 2)}\n`

/** With a remark at each line that comes from the file or the command line. */
export function settingsYaml(settings: Setting[], sourceOf: (setting: Setting) => string): string {
  const document = new Document(settingsTree(settings))
  for (const [path, setting] of placed(settings)) {
    if (setting.source === 'default') continue
    const node = document.getIn(path, true)
    if (isScalar(node)) node.comment = ` ${sourceOf(setting)}`
    else if (isSeq(node)) node.commentBefore = ` ${sourceOf(setting)}`
  }
  return document.toString({ lineWidth: 0 })
}
