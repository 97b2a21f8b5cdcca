// The server has ended the session: its time is over, or it was revoked. The page stays as it is, with what was typed, below this dialog.
import { useState, type FormEvent } from 'react'
import { sessionGet, sessionLeave, signIn } from '../api/client'
import { t } from '../i18n/i18n'
import { signOnUrl, useEntrance } from '../lib/sign-on'
import { Button, Dialog, ErrorNote, TextField } from './ui'

export function SignInAgain() {
  const [error, setError] = useState<unknown>(null)
  const [isBusy, setBusy] = useState(false)
  const user = sessionGet()?.user ?? ''
  const { provider } = useEntrance()
  const submit = async (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault()
    setBusy(true)
    setError(null)
    try {
      await signIn(user, String(new FormData(event.currentTarget).get('password')))
    } catch (failure) {
      setError(failure)
      setBusy(false)
    }
  }
  return (
    <Dialog title={t('Your session has ended')} onClose={null /* there is nothing to go back to */}>
      <form className="stack" onSubmit={(event) => void submit(event)}>
        <p>{t('Sign in again as {user}: this page stays as it is, with what you have typed.', { user })}</p>
        {error !== null && <ErrorNote error={error} />}
        <input type="hidden" name="username" autoComplete="username" value={user} readOnly />
        <TextField label={t('Password')} name="password" type="password" autoComplete="current-password" required autoFocus />
        <div className="dialog-foot">
          <Button onClick={sessionLeave}>{t('Sign in as somebody else')}</Button>
          {provider && (
            <Button disabled={isBusy} onClick={() => location.assign(signOnUrl(provider, location.pathname + location.search))}>
              {t('Sign in with your organisation')}
            </Button>
          )}
          <Button type="submit" kind="main" disabled={isBusy}>
            {t('Sign in')}
          </Button>
        </div>
      </form>
    </Dialog>
  )
}
