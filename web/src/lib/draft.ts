// The draft of a new job: it stays until the tab is closed.
import { sessionGet } from '../api/client'

/** A draft may hold secrets: it is for who wrote it, and not for who signs in after. */
export const draftKey = () => `skep.draft.${sessionGet()?.user ?? ''}`
