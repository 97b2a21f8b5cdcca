// The way to the organisation's provider of logins and back. The server sends the browser back to /sign-in with a token in
// the address. It is taken only by the tab that asked: whoever lures somebody to an address with a token of their own
// would have them work under a foreign name.
import { useEffect, useState } from 'react'
import { call, type Schema, type Session } from '../api/client'

const KEY = 'skep.sign-on'

interface Asked {
  secret: string
  from: string
  publicUrl: string // of the server, for the way out
}

/** Where to send the browser, for `from` afterwards. */
export function signOnUrl(publicUrl: string, from: string, origin = location.origin): string {
  const asked: Asked = { secret: crypto.randomUUID(), from, publicUrl }
  sessionStorage.setItem(KEY, JSON.stringify(asked))
  const query = new URLSearchParams({ redirect_uri: `${origin}/sign-in`, from: asked.secret })
  return `${publicUrl.replace(/\/$/, '')}/api/v2/authn/oidc/login?${query}`
}

export type Returned = { session: Session; from: string } | { error: string }

/** What the address says after the return; null when this is none, or one that nobody asked for. */
export function signOnReturned(search: URLSearchParams): Returned | null {
  const error = search.get('errorMessage')
  if (error) return { error }
  const token = search.get('token')
  if (!token) return null
  const stored = sessionStorage.getItem(KEY)
  const asked = stored ? (JSON.parse(stored) as Asked) : null
  sessionStorage.removeItem(KEY)
  if (!asked || asked.secret !== search.get('from')) return null
  return { session: { user: search.get('user') ?? '', token, admin: search.get('admin') === 'true', provider: asked.publicUrl }, from: asked.from }
}

/** How one gets in. */
export interface Entrance {
  provider: string | null // the address of the server as browsers reach it, where it has a provider of logins
  hasSignUp: boolean // visitors may ask for an account
}

export function useEntrance(): Entrance {
  const [entrance, setEntrance] = useState<Entrance>({ provider: null, hasSignUp: false })
  useEffect(() => {
    const abort = new AbortController()
    call<Schema['AuthnInfo']>('GET', '/api/v2/authn/info', { signal: abort.signal, isAnonymous: true }).then(
      (info) => setEntrance({ provider: info.methods?.find((way) => way.type === 'OIDC')?.publicUrl ?? null, hasSignUp: info.signUp === 'request' }),
      () => undefined, // the form below says what is wrong when it is used
    )
    return () => abort.abort()
  }, [])
  return entrance
}
