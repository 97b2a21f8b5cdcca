// Jobs that go to another cluster. The browser carries the file there in the part of the address that no server is sent, and the other portal
// shows it before anything is done: no portal asks another cluster for anything, or holds its tokens.

export interface OtherCluster {
  alias: string
  uri: string // of its portal, without a slash at the end
  kind: 'skep' | 'openpai'
}

/** As OpenPAI's portal keeps them in the user's extension, by alias; we keep no token with them. */
export type BoundClusters = Record<string, { alias?: string; uri?: string; kind?: string }>

export const clustersOf = (bound: BoundClusters | undefined): OtherCluster[] =>
  Object.entries(bound ?? {}).flatMap(([alias, { uri, kind }]) => {
    const address = uriOf(uri ?? '')
    return address ? [{ alias, uri: address, kind: kind === 'skep' ? ('skep' as const) : ('openpai' as const) }] : []
  })

/** The address of a portal; null: it is none. */
export function uriOf(text: string): string | null {
  try {
    const url = new URL(text.trim())
    return /^https?:$/.test(url.protocol) && !url.username && !url.password ? (url.origin + url.pathname).replace(/\/+$/, '') : null
  } catch {
    return null
  }
}

// ---- the file on its way ----

/** Browsers cut addresses of more than two million characters. */
export const CARRIED_MAX = 1_000_000

const base64Of = (text: string) => btoa(Array.from(new TextEncoder().encode(text), (byte) => String.fromCharCode(byte)).join('')).replaceAll('+', '-').replaceAll('/', '_').replace(/=+$/, '')

function textOf(base64: string): string | null {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(Uint8Array.from(atob(base64.replaceAll('-', '+').replaceAll('_', '/')), (letter) => letter.charCodeAt(0)))
  } catch {
    return null
  }
}

/** Where the other portal takes the file; null: it is too long to be carried so. */
export function carryPath(file: string, from: string): string | null {
  const path = `/transfer#from=${encodeURIComponent(from)}&job=${base64Of(file)}`
  return path.length > CARRIED_MAX ? null : path
}

/** What has been carried here; `from` is what the sender says of itself. Null: there is nothing that could be read. */
export function carried(hash: string): { file: string; from: string } | null {
  const parts = new URLSearchParams(hash.replace(/^#/, ''))
  const file = textOf(parts.get('job') ?? '')
  return file ? { file, from: parts.get('from') ?? '' } : null
}

const KEY = 'skep.carried'

/** When the page is loaded: signing in changes the address. It is taken out of the address, which people copy. */
export function carriedKeep() {
  if (location.pathname !== '/transfer' || !location.hash) return
  sessionStorage.setItem(KEY, location.hash)
  history.replaceState(null, '', location.pathname)
}

export const carriedGet = () => carried(sessionStorage.getItem(KEY) ?? '')
export const carriedDrop = () => sessionStorage.removeItem(KEY)

// ---- what tags say of it ----

const PREFIXES = { done: 'pai-transferred-to-', tried: 'pai-transfer-attempt-to-' } as const

export interface Transfer {
  kind: keyof typeof PREFIXES
  alias: string
  uri: string
}

/** The tag that OpenPAI's portal puts on a job. */
export const transferTag = ({ kind, alias, uri }: Transfer) => `${PREFIXES[kind]}${alias}-url-${uri}`

export function transferOf(tag: string): Transfer | null {
  for (const kind of ['done', 'tried'] as const) {
    const rest = tag.startsWith(PREFIXES[kind]) ? tag.slice(PREFIXES[kind].length) : ''
    const at = rest.lastIndexOf('-url-')
    const uri = at > 0 ? uriOf(rest.slice(at + '-url-'.length)) : null
    if (uri) return { kind, alias: rest.slice(0, at), uri }
  }
  return null
}
