// Plugins: pages of others in frames without an origin. What the portal and such a frame tell each other, and the addresses.
import type { Schema, Session } from '../api/client'

export type Plugin = Schema['PortalPlugin']

/** To the frame, which has asked for it. */
export interface PluginStart {
  kind: 'skep-plugin-start'
  index: number
  plugins: Plugin[] // as OpenPAI's page names them: the index counts; only its own has a configuration
  server: string
  version: string
  user: string
  admin: boolean
  token: string
}

/** To the portal: it is there; it wants another page of the portal; its script did not come, or defines no element. */
export type PluginNews = { kind: 'skep-plugin-ready' } | { kind: 'skep-plugin-leave'; path: string } | { kind: 'skep-plugin-failed'; reason: 'load' | 'element' }

export const PLUGIN_TOKEN_S = 8 * 3600

/** By whose token a plugin's token is ended: that of the session there is now, when it is of the same user, since a new sign-in ends the one in which the page began; '': nobody's. */
export function revokerOf(begun: Session | null, now: Session | null): string {
  const owner = begun && now?.user === begun.user ? now : begun
  return owner?.token ?? ''
}

/** OpenPAI's address of a plugin, /plugin.html?index=N&…, as this portal calls it. */
export function pluginPath(search: URLSearchParams): string | null {
  const index = search.get('index')
  if (!index || !/^\d+$/.test(index)) return null
  const rest = new URLSearchParams(search)
  rest.delete('index')
  return `/plugins/${Number(index)}${rest.size ? `?${rest}` : ''}`
}

/** The frame has the query of OpenPAI's page: plugins read their part of it. */
export function framePath(index: number, search: URLSearchParams): string {
  const query = new URLSearchParams(search)
  query.set('index', String(index))
  return `/plugin-frame.html?${query}`
}

/** Where a copy of a job begins that this plugin has submitted; null: in the form. */
export function clonePath(plugins: Plugin[], submitFrom: string | undefined, user: string, job: string): string | null {
  const index = submitFrom ? plugins.findIndex((plugin) => plugin.id === submitFrom) : -1
  return index < 0 ? null : `/plugins/${index}?${new URLSearchParams({ op: 'resubmit', type: 'job', user, jobname: job })}`
}

/** What of an address in a frame leads out of it, to a page of the portal. */
export function leavingPath(to: string, frame: string): string | null {
  const [url, here] = [new URL(to, frame), new URL(frame)]
  return url.origin === here.origin && url.pathname !== here.pathname ? url.pathname + url.search + url.hash : null
}

/** Of a job file, in YAML or in JSON. */
export const submitFromOf = (source: string) => /(?:^|[{,])\s*"?submitFrom"?\s*:\s*(?:"([^"\n]*)"|'([^'\n]*)'|([^\s"'#,}]+))/m.exec(source)?.slice(1).find((text) => text !== undefined)
