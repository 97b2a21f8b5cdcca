import { useState } from 'react'
import { TextField } from '../../ui/ui'

export interface Editing {
  text: string
  setText: (text: string) => void
}

export const numberOf = (value: string) => (value === '' ? null : Number(value))

interface RenamedProps {
  label: string
  value: string
  onRename: (name: string) => void
  problemOf?: (name: string) => string | null // a name with a problem is not taken
}

/** A name is a key of the text: it changes when one leaves the field, not letter by letter. */
export function Renamed({ label, value, onRename, problemOf }: RenamedProps) {
  const [problem, setProblem] = useState<string | null>(null)
  const leave = (written: string) => {
    const name = written.trim()
    const found = problemOf?.(name) ?? null
    setProblem(found)
    if (!found && name !== value) onRename(name)
  }
  return (
    <TextField
      key={value}
      label={label}
      error={problem}
      defaultValue={value}
      onBlur={(event) => leave(event.target.value)}
      onKeyDown={(event) => event.key === 'Enter' && event.currentTarget.blur()}
    />
  )
}
