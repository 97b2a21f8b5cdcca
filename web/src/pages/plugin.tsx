// A plugin: a page of somebody else's, in a frame that reads nothing of the portal's. It gets a token of its own, which ends with the page.
import { useEffect, useRef, useState } from 'react'
import { useQuery } from '@tanstack/react-query'
import { call, enc, sessionGet } from '../api/client'
import { infoQuery, pluginsQuery } from '../api/queries'
import { t } from '../i18n/i18n'
import { framePath, PLUGIN_TOKEN_S, revokerOf, type Plugin, type PluginNews, type PluginStart } from '../lib/plugins'
import { Link, navigate, useLocation } from '../router'
import '../style/plugin.css'
import { Empty, ErrorNote, Loading, usePageTitle } from '../ui/ui'

/** Also as the window closes. `session` is a token of who made it. */
function tokenRevoke(token: string, session: string) {
  void fetch(`/api/v2/tokens/${enc(token)}`, { method: 'DELETE', keepalive: true, headers: { Authorization: `Bearer ${session}` } }).catch(() => undefined)
}

function Frame({ plugins, index, version }: { plugins: Plugin[]; index: number; version: string }) {
  const { search } = useLocation()
  const frame = useRef<HTMLIFrameElement>(null)
  const [error, setError] = useState<unknown>(null)
  const plugin = plugins[index]!
  useEffect(() => {
    const session = sessionGet()
    const given: string[] = []
    let isGone = false
    const revoke = () => given.splice(0).forEach((token) => tokenRevoke(token, revokerOf(session, sessionGet())))
    const begin = async () => {
      const reply = await call<{ token: string }>('POST', '/api/v2/tokens/application', { json: { scope: plugin.scope, expiration: PLUGIN_TOKEN_S } })
      given.push(reply.token)
      if (isGone) return revoke()
      const start: PluginStart = {
        kind: 'skep-plugin-start',
        index,
        plugins: plugins.map((one, at) => (at === index ? one : { ...one, config: {} })),
        server: location.origin,
        version,
        user: session?.user ?? '',
        admin: session?.admin ?? false,
        token: reply.token,
      }
      frame.current?.contentWindow?.postMessage(start, '*') // the frame has no origin that could be named
    }
    const onMessage = ({ source, data }: MessageEvent<PluginNews>) => {
      if (!source || source !== frame.current?.contentWindow) return
      if (data.kind === 'skep-plugin-ready') begin().catch(setError)
      if (data.kind === 'skep-plugin-leave' && data.path.startsWith('/') && !data.path.startsWith('//')) navigate(data.path)
      if (data.kind === 'skep-plugin-failed')
        setError(new Error(data.reason === 'load' ? t('The script of the plugin could not be loaded: {uri}', { uri: plugin.uri }) : t('The script of the plugin defines no element pai-plugin: {uri}', { uri: plugin.uri })))
    }
    addEventListener('message', onMessage)
    addEventListener('pagehide', revoke)
    return () => {
      isGone = true
      removeEventListener('message', onMessage)
      removeEventListener('pagehide', revoke)
      revoke()
    }
  }, [plugins, plugin, index, version])
  return (
    <>
      {error !== null && <ErrorNote error={error} />}
      <iframe key={`${index} ${search}`} ref={frame} className="plugin" title={plugin.title} src={framePath(index, search)} />
    </>
  )
}

export function PluginPage({ index }: { index: number }) {
  const { data: plugins, error } = useQuery(pluginsQuery)
  const { data: info } = useQuery(infoQuery)
  const plugin = plugins?.[index]
  usePageTitle(plugin?.title ?? t('Plugin'))
  // where there are no plugins a link to one was a link to OpenPAI's marketplace
  useEffect(() => {
    if (plugins?.length === 0) navigate('/templates', true)
  }, [plugins])
  if (error) return <ErrorNote error={error} />
  if (!plugins || !info) return <Loading />
  if (!plugin)
    return (
      <div className="page">
        <Empty title={t('There is no such plugin')}>
          <Link href="/templates">{t('Templates')}</Link>
        </Empty>
      </div>
    )
  return (
    <div className="plugin-page">
      <h1 className="hidden-text">{plugin.title}</h1>
      <Frame plugins={plugins} index={index} version={info.version ?? ''} />
    </div>
  )
}

export default PluginPage
