// One row of a file of users, to be changed before it is sent.
import { useState, type FormEvent } from 'react'
import { t } from '../../i18n/i18n'
import { namesIn, type UserOfFile, type UserProblem, type UserRow } from '../../lib/user-file'
import { Button, Check, TextField } from '../../ui/ui'

export const problemText = (problem: UserProblem) =>
  ({
    name: t('A user name has 1 to 64 letters, digits, _ . -'),
    taken: t('Another row has this user name.'),
    password: t('A password has 6 to 1024 bytes.'),
    email: t('This is no mail address.'),
  })[problem]

interface Props {
  row: UserRow
  problemsOf: (row: UserRow) => UserProblem[]
  onKeep: (user: UserOfFile) => void
  onCancel: () => void
}

/** A password that was made here is not shown: it stays unless another is written. */
export function RowForm({ row, problemsOf, onKeep, onCancel }: Props) {
  const [problems, setProblems] = useState<UserProblem[]>([])
  const { user } = row
  const of = (...some: UserProblem[]) => problems.filter((problem) => some.includes(problem)).map(problemText).join(' ') || null
  const keep = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault()
    const form = new FormData(event.currentTarget)
    const text = (name: string) => String(form.get(name)).trim()
    const next = { username: text('username'), password: text('password'), email: text('email'), admin: form.has('admin'), virtualCluster: namesIn(text('vc')), grouplist: namesIn(text('groups')) }
    // what is left empty is made here, and fits
    const found = problemsOf({ ...row, user: next.password ? next : { ...next, password: '0'.repeat(16) } })
    setProblems(found)
    if (!found.length) return onKeep(next)
    const first = found[0] === 'email' ? 'email' : found[0] === 'password' ? 'password' : 'username'
    event.currentTarget.querySelector<HTMLElement>(`[name="${first}"]`)?.focus()
  }
  return (
    <form
      className="stack"
      noValidate
      aria-label={t('Line {n}', { n: row.line })}
      onSubmit={keep}
      onKeyDown={(event) => {
        if (event.key !== 'Escape') return
        event.preventDefault() // the dialog stays
        event.stopPropagation()
        onCancel()
      }}
    >
      <div className="fields">
        <TextField label={t('User name')} name="username" autoFocus defaultValue={user.username} error={of('name', 'taken')} />
        <TextField label={t('Password')} name="password" defaultValue={row.isMade ? '' : user.password} hint={t('Empty: one is made here.')} error={of('password')} />
        <TextField label={t('Mail address')} name="email" defaultValue={user.email} error={of('email')} />
        <TextField label={t('Virtual clusters')} name="vc" defaultValue={user.virtualCluster.join(', ')} hint={t('Names with commas.')} />
        <TextField label={t('Groups')} name="groups" defaultValue={user.grouplist.join(', ')} hint={t('Names with commas.')} />
      </div>
      <Check name="admin" defaultChecked={user.admin}>
        {t('Administrator: may use all virtual clusters and see all')}
      </Check>
      <div className="row">
        <Button type="submit" small kind="main">
          {t('Keep')}
        </Button>
        <Button small onClick={onCancel}>
          {t('Cancel')}
        </Button>
      </div>
    </form>
  )
}
