// A visitor asks for an account. Nobody is told whether there is a user of the name: an administrator decides.
import { useState, type FormEvent } from 'react'
import { accountAsk } from '../api/requests'
import { t } from '../i18n/i18n'
import { USER_NAME } from '../lib/user-name'
import { Button, Dialog, ErrorNote, TextField } from './ui'

export function AskAccount({ onClose }: { onClose: () => void }) {
  const [error, setError] = useState<unknown>(null)
  const [isBusy, setBusy] = useState(false)
  const [isDifferent, setDifferent] = useState(false)
  const [isDone, setDone] = useState(false)
  const compare = (form: FormData) => form.get('password') === form.get('again')
  const submit = async (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault()
    const form = new FormData(event.currentTarget)
    const text = (key: string) => String(form.get(key) ?? '')
    const isSame = compare(form)
    setDifferent(!isSame)
    setError(null)
    if (!isSame) return
    const reason = text('reason').trim()
    setBusy(true)
    try {
      await accountAsk({ username: text('username'), password: text('password'), email: text('email'), ...(reason ? { reason } : {}) })
      setDone(true)
    } catch (failure) {
      setError(failure)
    }
    setBusy(false)
  }
  if (isDone)
    return (
      <Dialog title={t('Ask for an account')} onClose={onClose}>
        <p role="status">{t('The request is taken. When an administrator has accepted it, sign in with this name and password.')}</p>
        <div className="dialog-foot">
          <Button kind="main" autoFocus onClick={onClose}>
            {t('Close')}
          </Button>
        </div>
      </Dialog>
    )
  return (
    <Dialog title={t('Ask for an account')} onClose={onClose}>
      <form className="stack" onChange={(event) => isDifferent && setDifferent(!compare(new FormData(event.currentTarget)))} onSubmit={(event) => void submit(event)}>
        <p>{t('An administrator sees this, and decides. There is no account before that.')}</p>
        {error !== null && <ErrorNote error={error} />}
        <TextField label={t('User name')} name="username" autoComplete="username" autoCapitalize="none" spellCheck={false} required maxLength={64} pattern={USER_NAME} hint={t('Letters, digits, _ . -')} autoFocus />
        <TextField label={t('Mail address')} name="email" type="email" autoComplete="email" required maxLength={254} />
        <TextField label={t('Password')} name="password" type="password" autoComplete="new-password" minLength={6} maxLength={1024} required hint={t('At least 6 characters.')} />
        <TextField label={t('The password, again')} name="again" type="password" autoComplete="new-password" required error={isDifferent ? t('It is not the same as above.') : null} />
        <TextField label={t('Who you are, and what you need it for')} name="reason" maxLength={300} />
        <footer className="cli">
          <span aria-hidden="true">$</span>
          <code>skep request account NAME --email ADDRESS</code>
        </footer>
        <div className="dialog-foot">
          <Button onClick={onClose}>{t('Cancel')}</Button>
          <Button type="submit" kind="main" disabled={isBusy}>
            {t('Ask for it')}
          </Button>
        </div>
      </form>
    </Dialog>
  )
}
