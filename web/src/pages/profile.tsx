// Oneself: password, mail address, keys for ssh, tokens, and what one may use.
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { useState, type FormEvent } from 'react'
import { call, enc, sessionGet, signOut, type Schema, type User } from '../api/client'
import { clustersQuery, quotaQuery, tokensQuery, userQuery } from '../api/queries'
import { languageGet, t } from '../i18n/i18n'
import { clock, mebibytes } from '../lib/format'
import { QUOTAS, quotaName } from '../lib/quota'
import { Awaited, useAwaited } from '../ui/in-order'
import { Button, Cli, Confirm, Copy, Dialog, ErrorNote, Fact, Loading, Meter, SelectField, TextField, useBusy, usePageTitle, useToast } from '../ui/ui'
import { OtherClusters } from './profile/clusters'
import { Keys } from './profile/keys'
import { OwnNotices } from './profile/notices'
import { OwnRequests } from './profile/requests'
import { OwnStorages } from './profile/storages'

/** A form that sends something and says what came of it. */
function useSend(after: () => Promise<unknown> | void) {
  const [error, setError] = useState<unknown>(null)
  const [isBusy, during] = useBusy()
  const send = (action: () => Promise<unknown>) =>
    during(async () => {
      setError(null)
      try {
        await action()
        await after()
      } catch (failure) {
        setError(failure)
      }
    })
  return [error, send, isBusy] as const
}

function Account({ user }: { user: User }) {
  const name = user.username ?? ''
  const queries = useQueryClient()
  const toast = useToast()
  const [isPassword, setPassword] = useState(false)
  const [error, send, isBusy] = useSend(async () => {
    await queries.invalidateQueries({ queryKey: ['users'] })
    toast(t('Your mail address is changed.'))
  })
  return (
    <section className="card" aria-label={t('Account')}>
      <h2>{t('Account')}</h2>
      <dl className="facts">
        <Fact title={t('User name')}>{name}</Fact>
        <Fact title={t('Rights')}>{user.admin ? t('administrator') : t('user')}</Fact>
        <Fact title={t('Groups')}>{user.grouplist?.join(', ')}</Fact>
      </dl>
      <form
        className="row"
        onSubmit={(event: FormEvent<HTMLFormElement>) => {
          event.preventDefault()
          const email = String(new FormData(event.currentTarget).get('email'))
          void send(() => call('PUT', `/api/v2/users/${enc(name)}/email`, { json: { email } }))
        }}
      >
        <TextField key={user.email} label={t('Mail address')} name="email" type="email" defaultValue={user.email} autoComplete="email" />
        <div className="profile-button">
          <Button type="submit" disabled={isBusy}>
            {t('Change')}
          </Button>
        </div>
      </form>
      {error !== null && <ErrorNote error={error} />}
      <div>
        <Button onClick={() => setPassword(true)}>{t('Change the password …')}</Button>
      </div>
      {isPassword && <PasswordDialog name={name} onClose={() => setPassword(false)} />}
    </section>
  )
}

function PasswordDialog({ name, onClose }: { name: string; onClose: () => void }) {
  const [error, send, isBusy] = useSend(signOut)
  const [isDifferent, setDifferent] = useState(false)
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault()
    const form = new FormData(event.currentTarget)
    const newPassword = String(form.get('new'))
    setDifferent(newPassword !== form.get('again'))
    if (newPassword === form.get('again')) void send(() => call('PUT', `/api/v2/users/${enc(name)}/password`, { json: { oldPassword: String(form.get('old')), newPassword } }))
  }
  return (
    <Dialog title={t('Change the password')} onClose={onClose}>
      <form className="stack" onSubmit={submit}>
        <p>{t('All browsers where you are signed in must sign in again, this one as well.')}</p>
        {error !== null && <ErrorNote error={error} />}
        <TextField label={t('Old password')} name="old" type="password" autoComplete="current-password" required />
        <TextField label={t('New password')} name="new" type="password" autoComplete="new-password" minLength={6} required hint={t('At least 6 characters.')} />
        <TextField label={t('New password, again')} name="again" type="password" autoComplete="new-password" required error={isDifferent ? t('It is not the same as above.') : null} />
        <div className="dialog-foot">
          <Button onClick={onClose}>{t('Cancel')}</Button>
          <Button type="submit" kind="main" disabled={isBusy}>
            {t('Change the password')}
          </Button>
        </div>
      </form>
    </Dialog>
  )
}

type TokenDetail = NonNullable<Schema['Tokens']['details']>[number]

function Tokens() {
  const { data, error } = useQuery(tokensQuery)
  const isAwaited = useAwaited(!!data || !!error)
  const queries = useQueryClient()
  const toast = useToast()
  const [isNew, setNew] = useState(false)
  const [revoked, setRevoked] = useState<TokenDetail | null>(null)
  const now = sessionGet()?.token
  const own = data?.details?.[data.tokens?.indexOf(now ?? '') ?? -1]?.id
  const revoke = async (token: TokenDetail) => {
    await call('DELETE', `/api/v2/tokens/${enc(token.id ?? '')}`)
    if (token.id === own) await signOut().catch(() => undefined)
    else {
      await queries.invalidateQueries({ queryKey: ['tokens'] })
      toast(t('The token is revoked.'))
    }
  }
  return (
    <div className="card" data-awaited={isAwaited}>
      <div className="card-head">
        <h2>{t('Tokens')}</h2>
        <div className="push">
          <Button onClick={() => setNew(true)}>{t('New token …')}</Button>
        </div>
      </div>
      {error ? (
        <ErrorNote error={error} />
      ) : !data ? (
        <Loading />
      ) : (
        <div className="scroll-x" tabIndex={0} role="region" aria-label={t('Tokens')}>
          <table>
            <thead>
              <tr>
                <th scope="col">{t('Kind')}</th>
                <th scope="col">{t('Good for')}</th>
                <th scope="col">{t('Made')}</th>
                <th scope="col">{t('Ends')}</th>
                <th scope="col">
                  <span className="hidden-text">{t('Actions')}</span>
                </th>
              </tr>
            </thead>
            <tbody>
              {(data.details ?? []).map((token) => (
                <tr key={token.id}>
                  <th scope="row">{token.application ? t('program') : token.id === own ? t('this browser') : t('browser or command line')}</th>
                  <td>{token.application ? token.scope : ''}</td>
                  <td className="nowrap">{token.createdTime ? clock(token.createdTime, languageGet()) : '–'}</td>
                  <td className="nowrap">{token.expiresTime ? clock(token.expiresTime, languageGet()) : t('never')}</td>
                  <td>
                    <Button small kind="danger" aria-label={t('Revoke the token {id}', { id: (token.id ?? '').slice(0, 8) })} onClick={() => setRevoked(token)}>
                      {t('Revoke')}
                    </Button>
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      {isNew && <TokenDialog onClose={() => setNew(false)} />}
      {revoked && (
        <Confirm title={t('Revoke this token?')} action={t('Revoke')} danger onClose={() => setRevoked(null)} onConfirm={() => revoke(revoked)}>
          <p>{revoked.id === own ? t('It is the one of this browser: you will be signed out.') : t('Whatever uses it is refused from now on.')}</p>
        </Confirm>
      )}
    </div>
  )
}

function TokenDialog({ onClose }: { onClose: () => void }) {
  const queries = useQueryClient()
  const [token, setToken] = useState('')
  const [error, send, isBusy] = useSend(() => queries.invalidateQueries({ queryKey: ['tokens'] }))
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault()
    const form = new FormData(event.currentTarget)
    const days = Number(form.get('days'))
    void send(async () => {
      const json = { scope: form.get('scope'), ...(days ? { expiration: days * 86400 } : {}) }
      const reply = await call<Schema['ApplicationToken']>('POST', '/api/v2/tokens/application', { json })
      setToken(reply.token ?? '')
    })
  }
  return (
    <Dialog title={t('A token for a program')} onClose={onClose}>
      {token ? (
        <>
          <p>{t('Who has this text is you, within what it is good for:')}</p>
          <pre className="code">{token}</pre>
          <div className="dialog-foot">
            <Copy text={token} label={t('Copy the token')} />
            <Button kind="main" onClick={onClose}>
              {t('Close')}
            </Button>
          </div>
        </>
      ) : (
        <form className="stack" onSubmit={submit}>
          {error !== null && <ErrorNote error={error} />}
          <SelectField label={t('Good for')} name="scope" defaultValue="submit">
            <option value="read">{t('read: what you may read')}</option>
            <option value="submit">{t('submit: that, and your own jobs')}</option>
            <option value="usual">{t('usual: all but users, groups and tokens')}</option>
            <option value="admin">{t('admin: all but tokens')}</option>
          </SelectField>
          <TextField label={t('Days that it lives; empty: for ever')} name="days" type="number" min={1} max={3650} defaultValue={90} />
          <div className="dialog-foot">
            <Button onClick={onClose}>{t('Cancel')}</Button>
            <Button type="submit" kind="main" disabled={isBusy}>
              {t('Make the token')}
            </Button>
          </div>
        </form>
      )}
    </Dialog>
  )
}

/** What the person may have and do, and how much of it is used. */
function Limits({ name }: { name: string }) {
  const { data, error } = useQuery(quotaQuery(`users/${enc(name)}`))
  if (error) return <ErrorNote error={error} />
  if (!data) return <Awaited />
  return (
    <section className="card" aria-label={t('Quotas')}>
      <h2>{t('Quotas')}</h2>
      {QUOTAS.map((kind) => {
        const { value, used = 0, group } = data[kind] ?? {}
        const whose = group ? t('of the group {group}', { group }) : ''
        return typeof value === 'number' ? (
          <Meter key={kind} label={[quotaName(kind), whose].filter(Boolean).join(', ')} used={used} total={value} />
        ) : (
          <div key={kind} className="row small">
            <span>{quotaName(kind)}</span>
            <span className="push quiet">{t('{used} used, no limit', { used })}</span>
          </div>
        )
      })}
    </section>
  )
}

function Quotas({ user }: { user: User }) {
  const { data, error } = useQuery(clustersQuery)
  if (error) return <ErrorNote error={error} />
  if (!data) return <Awaited />
  return (
    <section className="card" aria-label={t('What you may use')}>
      <h2>{t('What you may use')}</h2>
      {(user.virtualCluster ?? []).map((name) => {
        const { resourcesUsed: used, resourcesTotal: total } = data[name] ?? {}
        return (
          <div key={name} className="stack-tight">
            <Meter label={`${name}, ${t('GPUs')}`} used={used?.gpu ?? 0} total={total?.gpu ?? 0} />
            <span className="small quiet">
              {t('CPUs')} {used?.cpu ?? 0} / {total?.cpu ?? 0}, {t('Memory')} {mebibytes(used?.memory ?? 0)} / {mebibytes(total?.memory ?? 0)}
            </span>
          </div>
        )
      })}
    </section>
  )
}

export default function Profile() {
  const me = sessionGet()?.user ?? ''
  const { data: user, error } = useQuery(userQuery(me))
  usePageTitle(t('Profile'))
  return (
    <div className="page in-order">
      <h1>{t('Profile')}</h1>
      {error && <ErrorNote error={error} />}
      {!user ? (
        !error && <Loading />
      ) : (
        <>
          <div className="grid-cards in-order">
            <Account user={user} />
            <Quotas user={user} />
            <Limits name={me} />
            <OwnStorages />
            <OwnRequests />
            <OwnNotices user={user} />
          </div>
          <Keys user={user} />
          <Tokens />
          <OtherClusters user={user} />
        </>
      )}
      <Cli command="skep whoami; skep quota; skep token list" />
    </div>
  )
}
