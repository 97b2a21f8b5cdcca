// To a row or a page of a long list, by its number.
import type { FormEvent } from 'react'
import { t } from '../i18n/i18n'
import { Button } from './ui'

/** Lists of more rows have it; one walks through the others. */
export const GO_TO_FROM = 100

export function GoTo({ label, max, onGo }: { label: string; max: number; onGo: (number: number) => void }) {
  const go = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault()
    onGo(Number(new FormData(event.currentTarget).get('number')))
  }
  return (
    <form className="row go-to" onSubmit={go}>
      <input className="input" name="number" type="number" aria-label={label} placeholder={label} min={1} max={max} step={1} required />
      <Button small type="submit">
        {t('Go')}
      </Button>
    </form>
  )
}
