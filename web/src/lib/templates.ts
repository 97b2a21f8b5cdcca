// Job files that a person keeps to begin others from. This browser stores them, for each user apart.
import { parseDocument, isMap, Scalar } from 'yaml'
import { t } from '../i18n/i18n'

export interface Template {
  name: string
  text: string
}

export const TEMPLATES_MAX = 100

const keyOf = (user: string) => `skep.templates.${user}`

function isTemplate(value: unknown): value is Template {
  const { name, text } = (value ?? {}) as Partial<Template>
  return typeof name === 'string' && typeof text === 'string'
}

export function templatesOf(user: string): Template[] {
  try {
    const found: unknown = JSON.parse(localStorage.getItem(keyOf(user)) ?? '[]')
    return Array.isArray(found) ? found.filter(isTemplate) : []
  } catch {
    return [] // somebody else's text under our key
  }
}

/** Throws when the browser has no room for it, or there are too many. One of the same name is replaced. */
export function templateSave(user: string, template: Template): Template[] {
  const others = templatesOf(user).filter(({ name }) => name !== template.name)
  if (others.length >= TEMPLATES_MAX) throw new Error(t('There are {n} templates already: remove one first.', { n: TEMPLATES_MAX }))
  const next = [...others, { name: template.name, text: withoutSecrets(template.text) }].sort((a, b) => a.name.localeCompare(b.name))
  localStorage.setItem(keyOf(user), JSON.stringify(next))
  return next
}

export function templateRemove(user: string, name: string): Template[] {
  const next = templatesOf(user).filter((one) => one.name !== name)
  localStorage.setItem(keyOf(user), JSON.stringify(next))
  return next
}

/** The names of secrets stay, what they hide does not; of secrets that are no map nothing stays. The text is YAML:
 * others cannot be saved. */
export function withoutSecrets(text: string): string {
  const document = parseDocument(text, { keepSourceTokens: true })
  if (!document.has('secrets')) return text
  const secrets = document.get('secrets')
  if (isMap(secrets)) for (const item of secrets.items) item.value = new Scalar('')
  else document.set('secrets', new Scalar(null))
  return document.toString({ lineWidth: 0, flowCollectionPadding: false })
}
