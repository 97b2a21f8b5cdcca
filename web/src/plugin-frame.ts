// The page in which a plugin runs. It has no origin (the server's policy says so), and so neither cookies nor a storage; scripts
// of OpenPAI's plugins count on both, and get some that last as long as the page.
import { leavingPath, type PluginNews, type PluginStart } from './lib/plugins'

declare global {
  interface Window {
    PAI_PLUGINS: unknown
    PAI_VERSION: string
    ENV: { restServerUri: string }
  }
}

const tell = (news: PluginNews) => parent.postMessage(news, '*') // who may frame this page is the server's to say

class Shelf implements Storage {
  readonly #items = new Map<string, string>();
  [name: string]: unknown
  get length() {
    return this.#items.size
  }
  key = (at: number) => [...this.#items.keys()][at] ?? null
  getItem = (key: string) => this.#items.get(String(key)) ?? null
  setItem = (key: string, value: string) => void this.#items.set(String(key), String(value))
  removeItem = (key: string) => void this.#items.delete(String(key))
  clear = () => this.#items.clear()
}

function cookiesMake(cookies: Map<string, string>) {
  Object.defineProperty(document, 'cookie', {
    get: () => [...cookies].map(([name, value]) => `${name}=${value}`).join('; '),
    set: (text: string) => {
      const [pair = '', ...attributes] = text.split(';')
      const [name = '', ...value] = pair.split('=')
      const isGone = attributes.some((attribute) => /^\s*(max-age=(0|-\d+)|expires=.*\b19[67]\d\b)/i.test(attribute))
      if (isGone) cookies.delete(name.trim())
      else cookies.set(name.trim(), value.join('=').trim())
    },
  })
}

/** Links to pages of the portal lead the portal there, not the frame. */
function leavesCatch() {
  document.addEventListener('click', (event) => {
    const link = event.composedPath().find((node): node is HTMLAnchorElement => node instanceof HTMLAnchorElement && !!node.href)
    const path = link && link.target !== '_blank' ? leavingPath(link.href, location.href) : null
    if (!path) return
    event.preventDefault()
    tell({ kind: 'skep-plugin-leave', path })
  })
  const { navigation } = window as { navigation?: EventTarget }
  navigation?.addEventListener('navigate', (event) => {
    const path = leavingPath((event as Event & { destination: { url: string } }).destination.url, location.href)
    if (!path || !event.cancelable) return
    event.preventDefault()
    tell({ kind: 'skep-plugin-leave', path })
  })
}

function start(given: PluginStart) {
  const plugin = given.plugins[given.index]
  if (!plugin) return
  for (const name of ['localStorage', 'sessionStorage']) Object.defineProperty(window, name, { value: new Shelf() })
  cookiesMake(new Map([['user', encodeURIComponent(given.user)], ['token', given.token], ['admin', String(given.admin)]]))
  leavesCatch()
  window.PAI_PLUGINS = given.plugins
  window.PAI_VERSION = given.version
  window.ENV = { restServerUri: given.server }
  document.title = plugin.title
  const script = document.createElement('script')
  script.onerror = () => tell({ kind: 'skep-plugin-failed', reason: 'load' })
  script.onload = () => {
    script.remove()
    if (!customElements.get('pai-plugin')) tell({ kind: 'skep-plugin-failed', reason: 'element' })
    const element = document.createElement('pai-plugin')
    element.setAttribute('pai-rest-server-uri', given.server)
    element.setAttribute('pai-version', given.version)
    element.setAttribute('pai-user', given.user)
    element.setAttribute('pai-rest-server-token', given.token)
    document.getElementById('content-wrapper')?.append(element)
  }
  script.src = plugin.uri
  document.head.append(script)
}

addEventListener('message', function first({ source, data }: MessageEvent<PluginStart>) {
  if (source !== parent || data.kind !== 'skep-plugin-start') return
  removeEventListener('message', first)
  start(data)
})
if (parent !== window) tell({ kind: 'skep-plugin-ready' })
