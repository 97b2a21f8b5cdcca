// Secrets of a copy: the stored file has a mask in their place, which stands for those of the job that was copied.
import { isMap, isScalar, type Document } from 'yaml'
import { jobParse, print } from './document'

export const MASK = '******'

const REFERENCE = /<%\s*\$secrets\.([\w-]+(?:\.[\w-]+)*)\s*%>/g

/** The dotted names of secrets to which the file's texts refer. */
function namesReferred(document: Document): string[] {
  const names = new Set<string>()
  const walk = (value: unknown): void => {
    if (typeof value === 'string') for (const match of value.matchAll(REFERENCE)) names.add(match[1] ?? '')
    else if (value && typeof value === 'object') for (const [key, item] of Object.entries(value)) if (key !== 'secrets') walk(item)
  }
  walk(document.toJS())
  return [...names]
}

const isWhole = (document: Document) => document.get('secrets') === MASK

/** The mask of the whole block becomes a map of one for each secret that is used, so that one of them can be written anew.
 * Where a list is meant, or nothing, it stays. */
export function maskSpread(source: string): string {
  const { document, problems } = jobParse(source)
  if (problems.length || !isWhole(document)) return source
  const names = namesReferred(document)
  const isList = /\$secrets[\w.-]*\[/.test(source)
  const isNested = names.some((name) => names.some((other) => other.startsWith(`${name}.`)))
  if (!names.length || isList || isNested) return source
  document.set('secrets', document.createNode({}))
  for (const name of names) document.setIn(['secrets', ...name.split('.')], MASK)
  return print(document)
}

/** The dotted names of the secrets that are masked in the text; of a mask for all of them, those that are used. null: none is. */
export function masked(source: string): string[] | null {
  const { document, problems } = jobParse(source)
  if (problems.length) return null
  if (isWhole(document)) return namesReferred(document)
  const names: string[] = []
  const walk = (value: unknown, name: string): void => {
    if (value === MASK) names.push(name)
    else if (value && typeof value === 'object') for (const [key, item] of Object.entries(value)) walk(item, name ? `${name}.${key}` : key)
  }
  const secrets = document.get('secrets')
  if (isMap(secrets)) walk(secrets.toJS(document), '')
  return names.length ? names : null
}

/** Secrets of the file's own can only stand in a map: a mask of the whole block goes. */
export function maskRemove(document: Document): void {
  if (isWhole(document) && isScalar(document.get('secrets', true))) document.delete('secrets')
}
