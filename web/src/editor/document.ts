// The text of a job file as a YAML document: what all changes of it share.
import { Document, isMap, parseDocument, Scalar } from 'yaml'

export type Path = (string | number)[]

export interface SyntaxProblem {
  line: number
  column: number
  message: string
}

export const text = (value: unknown) => (value === null || value === undefined ? '' : typeof value === 'object' ? '' : String(value))

export function pairsOf(map: unknown): [string, string][] {
  return isMap(map) ? map.items.map((item) => [text((item.key as Scalar).value), text((item.value as Scalar | null)?.value)]) : []
}

export function jobParse(source: string): { document: Document; problems: SyntaxProblem[] } {
  const document = parseDocument(source, { keepSourceTokens: true })
  const problems = document.errors.map((error) => ({
    line: error.linePos?.[0].line ?? 1,
    column: error.linePos?.[0].col ?? 1,
    message: error.message.split('\n')[0]!.replace(/ at line \d+, column \d+:?$/, ''),
  }))
  return { document, problems }
}

/** What is empty goes with the last of it, unless a comment stands above it. */
export function prune(document: Document, path: Path) {
  for (let depth = path.length; depth > 0; depth--) {
    const map = document.getIn(path.slice(0, depth))
    if (map === undefined) continue
    if (!isMap(map) || map.items.length) return
    const parent = depth > 1 ? document.getIn(path.slice(0, depth - 1)) : document.contents
    const pair = isMap(parent) && parent.items.find((item) => text((item.key as Scalar).value) === path[depth - 1])
    if (pair && (pair.key as Scalar).commentBefore) return
    document.deleteIn(path.slice(0, depth))
  }
}

export const print = (document: Document) => document.toString({ lineWidth: 0, flowCollectionPadding: false })
