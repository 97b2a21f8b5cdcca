// A menu of values, of which several may be chosen: with a field to find one, where there are many.
import { useState } from 'react'
import { t } from '../i18n/i18n'
import { Check, ErrorNote, Menu } from './ui'

const SEARCH_FROM = 10 // values
const SHOWN_MAX = 200 // of those that fit the text

export interface Values {
  values: string[] | undefined // undefined: they have not come yet
  isCut?: boolean // there are more
  error?: unknown
}

interface ChoicesProps extends Values {
  label: string
  chosen: string[]
  titleOf?: (value: string) => string
  onToggle: (value: string) => void
}

function Choices({ label, values, isCut, error, chosen, titleOf = (value) => value, onToggle }: ChoicesProps) {
  const [text, setText] = useState('')
  const [first] = useState(chosen) // they keep their places when they are no longer chosen
  const all = [...new Set([...first, ...(values ?? [])])]
  const fitting = all.filter((value) => titleOf(value).toLowerCase().includes(text.trim().toLowerCase()))
  const shown = fitting.slice(0, SHOWN_MAX)
  return (
    <div className="stack-tight" role="group" aria-label={label}>
      {error !== null && error !== undefined && <ErrorNote error={error} />}
      {all.length > SEARCH_FROM && <input type="search" className="input" aria-label={t('Find in the list')} placeholder={t('Find in the list')} value={text} onChange={(event) => setText(event.target.value)} />}
      {shown.map((value) => (
        <Check key={value} checked={chosen.includes(value)} onChange={() => onToggle(value)}>
          <span lang="en">{titleOf(value)}</span>
        </Check>
      ))}
      {values && fitting.length === 0 && <p className="small quiet">{t('There are none.')}</p>}
      {(fitting.length > shown.length || isCut) && <p className="small quiet">{t('There are more: name a part of it.')}</p>}
    </div>
  )
}

/** `useValues` is asked only while the menu is open. */
export function ChoiceMenu({ label, useValues, ...rest }: Omit<ChoicesProps, keyof Values> & { useValues: () => Values }) {
  const { chosen } = rest
  return (
    <Menu start label={chosen.length ? `${label} (${chosen.length})` : label}>
      {() => <Asked label={label} useValues={useValues} {...rest} />}
    </Menu>
  )
}

function Asked({ useValues, ...rest }: Omit<ChoicesProps, keyof Values> & { useValues: () => Values }) {
  return <Choices {...rest} {...useValues()} />
}

/** The mark of a column by which the rows are chosen. */
export function Filtered() {
  return (
    <span className="filtered" title={t('filtered')}>
      <svg viewBox="0 0 16 16" aria-hidden="true">
        <path d="M1 2h14l-5.500 6.500V14l-3-1.500v-4z" fill="currentColor" />
      </svg>
      <span className="hidden-text">{t('filtered')}</span>
    </span>
  )
}
