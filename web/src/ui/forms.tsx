// In which form a text is shown; the address has it.
import { t } from '../i18n/i18n'
import { useSearch } from '../router'
import { Button } from './ui'

export type Form = 'table' | 'yaml' | 'json'

/** The first of them is shown unless the address names another. */
export function useForm(forms: readonly Form[]): Form {
  const [search] = useSearch()
  const wanted = search.get('as') as Form | null
  return wanted && forms.includes(wanted) ? wanted : forms[0]!
}

export function Forms({ forms }: { forms: readonly Form[] }) {
  const [, change] = useSearch()
  const form = useForm(forms)
  return (
    <div className="row" role="group" aria-label={t('Shown as')}>
      {forms.map((one) => (
        <Button key={one} small aria-pressed={form === one} onClick={() => change({ as: one === forms[0] ? null : one })}>
          {one === 'table' ? t('Table') : one.toUpperCase()}
        </Button>
      ))}
    </div>
  )
}
