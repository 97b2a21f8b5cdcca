import { TextField } from '../../ui/ui'

export interface Editing {
  text: string
  setText: (text: string) => void
}

export const numberOf = (value: string) => (value === '' ? null : Number(value))

/** A name is a key of the text: it changes when one leaves the field, not letter by letter. */
export function Renamed({ label, value, onRename }: { label: string; value: string; onRename: (name: string) => void }) {
  return (
    <TextField
      key={value}
      label={label}
      defaultValue={value}
      onBlur={(event) => event.target.value !== value && onRename(event.target.value.trim())}
      onKeyDown={(event) => event.key === 'Enter' && event.currentTarget.blur()}
    />
  )
}
