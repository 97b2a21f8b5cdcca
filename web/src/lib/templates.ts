// What a template keeps of a job file, and the templates that browsers kept before the server did.
import { parseDocument, isMap, Scalar } from 'yaml'
import type { Template, TemplateWrite } from '../api/templates'
import { shellWord } from './filter'

export interface OldTemplate {
  name: string
  text: string
}

const keyOf = (user: string) => `skep.templates.${user}`

function isTemplate(value: unknown): value is OldTemplate {
  const { name, text } = (value ?? {}) as Partial<OldTemplate>
  return typeof name === 'string' && typeof text === 'string'
}

/** Those that this browser still keeps for the user. */
export function oldTemplatesOf(user: string): OldTemplate[] {
  try {
    const found: unknown = JSON.parse(localStorage.getItem(keyOf(user)) ?? '[]')
    return Array.isArray(found) ? found.filter(isTemplate) : []
  } catch {
    return [] // somebody else's text under our key
  }
}

export function oldTemplateForget(user: string, name: string): OldTemplate[] {
  const rest = oldTemplatesOf(user).filter((one) => one.name !== name)
  if (rest.length) localStorage.setItem(keyOf(user), JSON.stringify(rest))
  else localStorage.removeItem(keyOf(user))
  return rest
}

/** The names of secrets stay, what they hide does not; of secrets that are no map nothing stays. What is no YAML
 * stays as it is: the server refuses it, and says where it is wrong. */
export function withoutSecrets(text: string): string {
  const document = parseDocument(text, { keepSourceTokens: true })
  if (document.errors.length || !document.has('secrets')) return text
  const secrets = document.get('secrets')
  if (isMap(secrets)) for (const item of secrets.items) item.value = new Scalar('')
  else document.delete('secrets')
  return document.toString({ lineWidth: 0, flowCollectionPadding: false })
}

/** The author chose the name: the shell of who copies the command must take it for a name, and for that of a file in this folder. */
export const getCommand = ({ author, name }: { author: string; name: string }) =>
  `skep template get ${shellWord(`${author}~${name}`)} > ${shellWord(`${name.replaceAll('/', '-').replace(/^[-.]+/, '')}.yaml`)}`

/** The words of a comma list, each once. */
export const wordsOf = (list: string) => [...new Set(list.split(',').map((word) => word.trim()).filter(Boolean))]

/** One's own of somebody's: nobody else sees it, and its name is another than those that one has. */
export function copyOf(template: Template, taken: string[]): TemplateWrite & { name: string } {
  const names = new Set(taken)
  let name = template.name
  for (let n = 2; names.has(name); n++) name = `${template.name.slice(0, 56)}-${n}`
  return {
    name,
    summary: template.summary ?? '',
    description: template.description ?? '',
    categories: (template.categories ?? []).map((word) => word.name),
    tags: (template.tags ?? []).map((word) => word.name),
    isPublic: false,
    groupList: [],
    protocol: template.protocol ?? '',
  }
}
