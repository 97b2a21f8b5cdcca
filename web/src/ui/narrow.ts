import { useEffect, useMemo, useState } from 'react'

/** A window in which a row of a list has no room for all its columns. */
export function useNarrow() {
  const query = useMemo(() => matchMedia('(max-width: 720px)'), [])
  const [isNarrow, setNarrow] = useState(query.matches)
  useEffect(() => {
    const change = () => setNarrow(query.matches)
    query.addEventListener('change', change)
    return () => query.removeEventListener('change', change)
  }, [query])
  return isNarrow
}
