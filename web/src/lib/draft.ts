// Drafts of new jobs: each stays until it is submitted, or the tab is closed.
import { sessionGet } from '../api/client'

/** A draft may hold secrets: it is for who wrote it, and not for who signs in after. */
const head = () => `skep.draft.${sessionGet()?.user ?? ''}`

/** What a draft began with: the job that is cloned or the template, by name, a notebook, and "" for a new file. */
export const sourceOf = (clone: string | null, template: string | null, isNotebook = false) => (template ? `template ${template}` : clone ? `clone ${clone}` : isNotebook ? 'notebook' : '')

/** Did it begin with something to which one may want to go back? */
export const hasBeginning = (source: string) => source !== ''

const keyOf = (source: string) => head() + (source && ` ${source}`)

export const draftGet = (source: string) => sessionStorage.getItem(keyOf(source))
export const draftDrop = (source: string) => sessionStorage.removeItem(keyOf(source))

/** Was there room for it? The browser gives a page some megabytes. */
export function draftKeep(source: string, text: string): boolean {
  try {
    sessionStorage.setItem(keyOf(source), text)
    return true
  } catch {
    return false
  }
}
