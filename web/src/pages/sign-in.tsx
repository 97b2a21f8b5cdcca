import { useEffect, useState, type FormEvent } from 'react'
import { sessionSet, signIn } from '../api/client'
import { t } from '../i18n/i18n'
import { signOnReturned, signOnUrl, useEntrance } from '../lib/sign-on'
import { navigate } from '../router'
import skep from '../style/skep.svg'
import { AskAccount } from '../ui/ask-account'
import { Button, ErrorNote, TextField, usePageTitle } from '../ui/ui'

export function SignIn() {
  const [error, setError] = useState<unknown>(null)
  const [isBusy, setBusy] = useState(false)
  const { provider, hasSignUp } = useEntrance()
  const [isAsking, setAsking] = useState(false)
  usePageTitle(t('Sign in'))
  useEffect(() => {
    const returned = signOnReturned(new URLSearchParams(location.search))
    if (!returned) return
    if ('error' in returned) {
      setError(new Error(returned.error))
      navigate('/sign-in', true)
      return
    }
    navigate(`/sign-in?from=${encodeURIComponent(returned.from)}`, true) // the token does not stay in the history
    sessionSet(returned.session)
  }, [])
  const submit = async (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault()
    const form = new FormData(event.currentTarget)
    setBusy(true)
    setError(null)
    try {
      await signIn(String(form.get('username')), String(form.get('password')))
    } catch (failure) {
      setError(failure)
      setBusy(false)
    }
  }
  return (
    <main className="page sign-in">
      <form className="card" onSubmit={(event) => void submit(event)}>
        <div className="row">
          <img src={skep} alt="" width="32" height="32" />
          <h1>{t('Sign in to Skep')}</h1>
        </div>
        {error !== null && <ErrorNote error={error} />}
        {provider && (
          <>
            <Button
              kind="main"
              disabled={isBusy}
              onClick={() => {
                setBusy(true)
                location.assign(signOnUrl(provider, new URLSearchParams(location.search).get('from') ?? '/'))
              }}
            >
              {t('Sign in with your organisation')}
            </Button>
            <p className="quiet small">{t('Or with a password of this platform:')}</p>
          </>
        )}
        <TextField label={t('User name')} name="username" autoComplete="username" autoCapitalize="none" spellCheck={false} required autoFocus />
        <TextField label={t('Password')} name="password" type="password" autoComplete="current-password" required />
        <Button type="submit" kind={provider ? undefined : 'main'} disabled={isBusy}>
          {t('Sign in')}
        </Button>
        <p className="quiet small">
          {t('The first start of the server printed a password for the user admin, or wrote it into a file. An administrator makes further users.')}
        </p>
        {hasSignUp && <Button onClick={() => setAsking(true)}>{t('Ask for an account …')}</Button>}
      </form>
      {isAsking && <AskAccount onClose={() => setAsking(false)} />}
    </main>
  )
}
