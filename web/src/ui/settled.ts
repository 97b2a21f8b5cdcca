import { useEffect, useState } from 'react'

/** `value` when it has not changed for a moment; an empty one at once. */
export function useSettled(value: string) {
  const [settled, setSettled] = useState(value)
  useEffect(() => {
    const timer = setTimeout(() => setSettled(value), 200)
    return () => clearTimeout(timer)
  }, [value])
  return value ? settled : value
}
