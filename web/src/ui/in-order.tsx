// Parts of a page that are asked for at once and shown from the first to the last, each when all before it have what they begin with: what
// one reads does not move because another part has got its answer. They stand in an element of the class in-order; style/ui.css hides
// what follows the first that is awaited.
import { useState } from 'react'

/** For a part: data-awaited while this is true. What comes after its beginning hides nothing any more. */
export function useAwaited(isThere: boolean): true | undefined {
  const [isAwaited, setAwaited] = useState(true)
  if (isAwaited && isThere) setAwaited(false)
  return (isAwaited && !isThere) || undefined
}

/** In the place of a part of which it is not known yet whether there is one. */
export const Awaited = () => <div hidden data-awaited />
