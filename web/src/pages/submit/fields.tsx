import { useState } from 'react'
import { t } from '../../i18n/i18n'
import { TextField } from '../../ui/ui'

export interface Editing {
  text: string
  setText: (text: string) => void
}

export const numberOf = (value: string) => (value === '' ? null : Number(value))

interface RenamedProps {
  label: string
  value: string
  taken: string[] // the names beside it, and its own
  onRename: (name: string) => void
  problemOf?: (name: string) => string | null // a name with a problem is not taken
}

/** Why something cannot be called so; null: it can. */
export function nameProblem(name: string, taken: string[]): string | null {
  if (!name) return t('It needs a name.')
  return taken.includes(name) ? t('There is a {name} already.', { name }) : null
}

/** A name is a key of the text: it changes when one leaves the field, not letter by letter. */
export function Renamed({ label, value, taken, onRename, problemOf }: RenamedProps) {
  const [problem, setProblem] = useState<string | null>(null)
  const leave = (written: string) => {
    const name = written.trim()
    const found = name === value ? null : (problemOf?.(name) ?? nameProblem(name, taken))
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
