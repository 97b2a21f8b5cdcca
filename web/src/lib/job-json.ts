// A job file as JSON: the same values, without comments.
import { jobParse } from '../editor/document'

/** null: the text is no YAML, or its aliases stand for more than a browser should hold. */
export function jobJson(source: string): string | null {
  const { document, problems } = jobParse(source)
  if (problems.length) return null
  try {
    return `${JSON.stringify(document.toJS(), null, 2)}\n`
  } catch (error) {
    if (error instanceof ReferenceError) return null // so many aliases
    throw error
  }
}
