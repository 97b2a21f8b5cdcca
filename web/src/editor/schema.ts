// What may stand at a place of a job file, from its JSON Schema.

export interface Schema {
  description?: string
  type?: string | string[]
  enum?: unknown[]
  const?: unknown
  properties?: Record<string, Schema>
  additionalProperties?: Schema | boolean
  patternProperties?: Record<string, Schema>
  items?: Schema
  required?: string[]
  oneOf?: Schema[]
  anyOf?: Schema[]
  allOf?: Schema[]
}

/** A schema and all that it is put together from. */
function parts(schema: Schema): Schema[] {
  return [schema, ...[...(schema.oneOf ?? []), ...(schema.anyOf ?? []), ...(schema.allOf ?? [])].flatMap(parts)]
}

function child(schema: Schema, key: string | number): Schema[] {
  const found: Schema[] = []
  for (const part of parts(schema)) {
    if (typeof key === 'number') {
      if (part.items) found.push(part.items)
      continue
    }
    const own = part.properties?.[key]
    if (own) found.push(own)
    else {
      for (const [pattern, value] of Object.entries(part.patternProperties ?? {})) if (new RegExp(pattern).test(key)) found.push(value)
      if (typeof part.additionalProperties === 'object') found.push(part.additionalProperties)
    }
  }
  return found
}

export function schemasAt(root: Schema, path: (string | number)[]): Schema[] {
  let at = [root]
  for (const key of path) at = at.flatMap((schema) => child(schema, key))
  return at
}

export interface Choice {
  label: string
  detail: string
  isContainer: boolean // something stands under it
}

export function keysAt(root: Schema, path: (string | number)[]): Choice[] {
  const found = new Map<string, Choice>()
  for (const schema of schemasAt(root, path).flatMap(parts))
    for (const [label, value] of Object.entries(schema.properties ?? {})) {
      const types = parts(value).flatMap((part) => part.type ?? [])
      const before = found.get(label)
      if (!before || (!before.detail && value.description))
        found.set(label, { label, detail: value.description ?? '', isContainer: types.includes('object') || types.includes('array') })
    }
  return [...found.values()]
}

export function valuesAt(root: Schema, path: (string | number)[]): string[] {
  const values = schemasAt(root, path)
    .flatMap(parts)
    .flatMap((schema) => [...(schema.enum ?? []), ...(schema.const !== undefined ? [schema.const] : []), ...(schema.type === 'boolean' ? [true, false] : [])])
  return [...new Set(values.map(String))]
}

/** The keys above a line of block-style YAML, by indentation; "- " opens an item of a list. */
export function pathOfLine(lines: string[], line: number, indent: number): (string | number)[] {
  const path: (string | number)[] = []
  let below = indent
  for (let i = line - 1; i >= 0 && below > 0; i--) {
    const text = lines[i]!
    if (!text.trim() || text.trimStart().startsWith('#')) continue
    const match = /^(\s*)((?:- +)*)([^\s#'"][^:]*|'[^']*'|"[^"]*"):(?:\s|$)/.exec(text)
    const own = text.length - text.trimStart().length
    if (own >= below) {
      continue
    }
    const dashes = match?.[2] ?? (/^\s*(- +)/.exec(text)?.[1] || '')
    const keyIndent = own + dashes.length
    if (match && keyIndent < below) {
      path.unshift(match[3]!.replace(/^['"]|['"]$/g, ''))
      if (dashes) path.unshift(0)
    } else if (dashes) path.unshift(0)
    below = own
  }
  return path
}
