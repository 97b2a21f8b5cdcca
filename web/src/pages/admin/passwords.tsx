// New passwords for several users at once.
import { useState, type FormEvent } from 'react'
import { errorOfAll } from '../../api/actions'
import { call, sessionGet, type User } from '../../api/client'
import { t } from '../../i18n/i18n'
import { passwordNew, type MadePassword } from '../../lib/password'
import { Button, Dialog, Empty, ErrorNote, SelectField, TextField, useToast } from '../../ui/ui'
import { MadePasswords, usePasswordsKept } from './made-passwords'

/** Not one's own: that needs the old one, and stands in the profile. */
export function PasswordsDialog({ users, onClose }: { users: User[]; onClose: () => void }) {
  const me = sessionGet()?.user
  const names = users.map((user) => user.username ?? '').filter((name) => name !== me)
  const toast = useToast()
  const [isSame, setSame] = useState(false)
  const [error, setError] = useState<unknown>(null)
  const [isBusy, setBusy] = useState(false)
  const [made, setMade] = useState<MadePassword[]>([])
  const kept = usePasswordsKept(isSame ? [] : made, isBusy, onClose)
  const left = names.filter((name) => !made.some(({ username }) => username === name))
  const submit = async (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault()
    const typed = String(new FormData(event.currentTarget).get('password') ?? '')
    setBusy(true)
    setError(null)
    const done = [...made]
    const failed: [string, unknown][] = []
    for (const username of left) {
      const password = isSame ? typed : passwordNew()
      try {
        await call('PUT', '/api/v2/users', { json: { patch: true, data: { username, password } } })
        done.push({ username, password })
        setMade([...done])
      } catch (failure) {
        failed.push([username, failure])
      }
    }
    setBusy(false)
    if (failed.length) return setError(errorOfAll(failed))
    toast(t('{n} user has a new password.|{n} users have new passwords.', { n: done.length }))
    if (isSame) onClose()
  }
  return (
    <Dialog wide title={t('New passwords for {n} user|New passwords for {n} users', { n: names.length })} onClose={kept.close}>
      {error !== null && <ErrorNote error={error} />}
      {!names.length ? (
        <Empty title={t('Your own password is changed in your profile')} />
      ) : (
        left.length > 0 && (
          <form id="passwords" className="stack" onSubmit={(event) => void submit(event)}>
            <p className="quiet anywhere">{left.join(', ')}</p>
            <SelectField label={t('Which')} value={isSame ? 'same' : 'own'} disabled={isBusy || made.length > 0} onChange={(event) => setSame(event.target.value === 'same')}>
              <option value="own">{t('one for each, made here')}</option>
              <option value="same">{t('the same for all, which you write')}</option>
            </SelectField>
            {isSame && <TextField label={t('New password')} name="password" type="password" autoComplete="new-password" minLength={6} required hint={t('At least 6 characters. Whoever has it can sign in as each of them until they change it.')} />}
            <p className="quiet small">{t('The old passwords end at once, and with them all browsers where these users are signed in. It cannot be undone.')}</p>
          </form>
        )
      )}
      {!isSame && <MadePasswords made={made} kept={kept} />}
      <div className="dialog-foot">
        <Button disabled={isBusy} onClick={kept.close}>{left.length ? t('Cancel') : t('Close')}</Button>
        {left.length > 0 && (
          <Button type="submit" form="passwords" kind="danger" disabled={isBusy}>
            {t('Set the passwords')}
          </Button>
        )}
      </div>
    </Dialog>
  )
}
