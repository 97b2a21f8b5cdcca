// The environment of a task role. The protocol has no field for it: as in OpenPAI, variables are `export NAME=VALUE` lines at the
// head of the role's commands. Changes are edits of these lines; the others, and all comments, stay.
import { Document, isSeq, Scalar } from 'yaml'
import { jobParse, print, text } from './document'

export interface Variable {
  index: number // of its line among the commands
  name: string
  value: string // as in double quotes of the shell: $NAME is filled in; of single quotes, as it is
}

type Quotes = '' | "'" | '"'

const EXPORT = /^export\s+([A-Za-z_]\w*)=(.*?)\s*$/
const PLAIN = /^[\w@%+=:,./-]*$/
const EXPANDED = /^(?:[\w@%+=:,./-]|\$\w+|\$\{\w+\})*$/
const SINGLE = /^'([^']*)'$/
const DOUBLE = /^"((?:[^"\\`]|\\.)*)"$/

export const variableNameIsGood = (name: string) => /^[A-Za-z_]\w*$/.test(name)

/** null: the shell reads it in a way that a table cannot show. */
function read(word: string): { value: string; quotes: Quotes } | null {
  if (EXPANDED.test(word)) return { value: word, quotes: '' }
  const single = SINGLE.exec(word)
  if (single) return { value: single[1]!, quotes: "'" }
  const double = DOUBLE.exec(word)
  return double && { value: double[1]!.replace(/\\(.)/g, (both, one: string) => (one === '"' ? one : both)), quotes: '"' }
}

/** Quotes stay what they are where the value can stand in them. */
function written(value: string, before: Quotes): string {
  if (before === '' && PLAIN.test(value)) return value
  if (before === "'" && !value.includes("'")) return `'${value}'`
  return `"${value.replace(/\\.|\\$|["`]/g, (one) => (one.length > 1 ? one : `\\${one}`))}"`
}

const commandsOf = (document: Document, role: string) => document.getIn(['taskRoles', role, 'commands'])

const lineOf = (item: unknown) => (item instanceof Scalar ? text(item.value) : '')

/** How many lines at the head of the commands set variables. */
function headLength(items: unknown[]): number {
  const end = items.findIndex((item) => !EXPORT.test(lineOf(item)))
  return end < 0 ? items.length : end
}

export function environmentOf(document: Document, role: string): Variable[] {
  const commands = commandsOf(document, role)
  if (!isSeq(commands)) return []
  return commands.items.slice(0, headLength(commands.items)).flatMap((item, index) => {
    const [, name = '', word = ''] = EXPORT.exec(lineOf(item)) ?? []
    const found = read(word)
    return found ? [{ index, name, value: found.value }] : []
  })
}

function lineChanged(source: string, role: string, index: number, change: (name: string, word: string) => string): string {
  const { document, problems } = jobParse(source)
  if (problems.length) return source
  const commands = commandsOf(document, role)
  const item = isSeq(commands) ? commands.items[index] : null
  const match = EXPORT.exec(lineOf(item))
  if (!match || !(item instanceof Scalar)) return source
  item.value = change(match[1]!, match[2]!)
  return print(document)
}

export const variableSet = (source: string, role: string, index: number, value: string) => lineChanged(source, role, index, (name, word) => `export ${name}=${written(value, read(word)?.quotes ?? '"')}`)

export const variableRename = (source: string, role: string, index: number, to: string) => (variableNameIsGood(to) ? lineChanged(source, role, index, (_, word) => `export ${to}=${word}`) : source)

export function variableAdd(source: string, role: string): string {
  const { document, problems } = jobParse(source)
  if (problems.length) return source
  const commands = commandsOf(document, role)
  if (!isSeq(commands)) return source
  const names = new Set(commands.items.map((item) => EXPORT.exec(lineOf(item))?.[1]))
  let name = 'NAME'
  for (let i = 2; names.has(name); i++) name = `NAME${i}`
  commands.items.splice(headLength(commands.items), 0, document.createNode(`export ${name}=`))
  return print(document)
}

export function variableRemove(source: string, role: string, index: number): string {
  const { document, problems } = jobParse(source)
  if (problems.length) return source
  const commands = commandsOf(document, role)
  if (!isSeq(commands) || !EXPORT.test(lineOf(commands.items[index]))) return source
  commands.items.splice(index, 1)
  return print(document)
}
