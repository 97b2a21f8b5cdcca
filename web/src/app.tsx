import { useEffect, useRef, useState, useSyncExternalStore, type ReactNode } from 'react'
import { useQuery, type QueryClient } from '@tanstack/react-query'
import { sessionGet, sessionIsEnded, sessionWatch, signOut } from './api/client'
import { infoQuery, jobQuery, pluginsQuery, userQuery } from './api/queries'
import { requestCountQuery } from './api/requests'
import { LANGUAGES, languageGet, languageSet, t } from './i18n/i18n'
import { useChanges } from './lib/changes'
import { useKeys } from './lib/keys'
import { jobsPath, settingsChange, useSettings, type Settings } from './lib/settings'
import { Home } from './pages/home'
import { SignIn } from './pages/sign-in'
import { jobNameOf, Link, navigate, pathOfOldPortal, useCurrentInSight, useLocation } from './router'
import skep from './style/skep.svg'
import { Boundary, Button, Check, Clock, Loading, Menu, SelectField, Toasts } from './ui/ui'
import { Alerts } from './ui/alerts'
import { Help } from './ui/help'
import { later } from './ui/later'
import { SignInAgain } from './ui/sign-in-again'

const fallback = (
  <div className="page">
    <Loading />
  </div>
)
const Jobs = later(() => import('./pages/jobs'), fallback)
const Job = later(() => import('./pages/job'), fallback)
const Submit = later(() => import('./pages/submit'), fallback)
const Cluster = later(() => import('./pages/cluster'), fallback)
const Admin = later(() => import('./pages/admin'), fallback)
const Storages = later(() => import('./pages/storages'), fallback)
const Files = later(() => import('./pages/files'), fallback)
const Templates = later(() => import('./pages/templates'), fallback)
const Transfer = later(() => import('./pages/transfer'), fallback)
const PluginPage = later(() => import('./pages/plugin'), fallback)
const Profile = later(() => import('./pages/profile'), fallback)
const Design = later(() => import('./pages/design'), fallback)

const PAGES: Record<string, { (props: object): ReactNode; load?: () => void }> = {
  '/': Home,
  '/jobs': Jobs,
  '/submit': Submit,
  '/cluster': Cluster,
  '/templates': Templates,
  '/storages': Storages,
  '/transfer': Transfer,
  '/admin': Admin,
  '/profile': Profile,
  '/design': Design,
}

/** The name behind this beginning of a path; null: there is none, or none that can be read. */
function nameBehind(path: string, head: string): string | null {
  if (!path.startsWith(head)) return null
  try {
    return decodeURIComponent(path.slice(head.length))
  } catch {
    return null
  }
}
const jobOfPath = (path: string) => nameBehind(path, '/jobs/')
const storageOfPath = (path: string) => nameBehind(path, '/storages/')

function pageOf(path: string) {
  const job = jobOfPath(path)
  if (job !== null) return <Job key={job} name={job} />
  const storage = storageOfPath(path)
  if (storage) return <Files key={storage} storage={storage} />
  const plugin = /^\/plugins\/(\d{1,3})$/.exec(path)
  if (plugin) return <PluginPage index={Number(plugin[1])} />
  const Page = PAGES[path] ?? NotFound
  return <Page />
}

/** Ask for what the page of this path needs before it is drawn: its code, and the answers that its first view waits for. */
export function pageAhead(path: string, queries: QueryClient) {
  const session = sessionGet()
  if (!session) return
  const job = jobOfPath(path)
  if (storageOfPath(path)) return Files.load()
  if (job === null) return PAGES[path]?.load?.()
  Job.load()
  void queries.prefetchQuery(jobQuery(jobNameOf(job, session.user)))
  void queries.prefetchQuery(infoQuery)
}

function NotFound() {
  return (
    <div className="page">
      <h1>{t('There is no such page')}</h1>
      <p>
        <Link href="/">{t('Home')}</Link>
      </p>
    </div>
  )
}

function Preferences() {
  const settings = useSettings()
  return (
    <>
      <SelectField label={t('Theme')} value={settings.theme} onChange={(event) => settingsChange({ theme: event.target.value as Settings['theme'] })}>
        <option value="auto">{t('As the system')}</option>
        <option value="light">{t('Light')}</option>
        <option value="dark">{t('Dark')}</option>
        <option value="contrast">{t('High contrast')}</option>
      </SelectField>
      <SelectField label={t('Language')} value={languageGet()} onChange={(event) => void languageSet(event.target.value as 'en' | 'zh-CN')}>
        {LANGUAGES.map((language) => (
          <option key={language.code} value={language.code}>
            {language.name}
          </option>
        ))}
      </SelectField>
      <Check checked={settings.singleKeys} onChange={(event) => settingsChange({ singleKeys: event.target.checked })}>
        {t('Keys of one letter')}
      </Check>
    </>
  )
}

function Bar({ path, user, admin, onHelp }: { path: string; user: string; admin: boolean; onHelp: () => void }) {
  const { data: me } = useQuery({ ...userQuery(user), staleTime: 60_000 })
  const { data: plugins } = useQuery(pluginsQuery)
  const { data: open } = useQuery({ ...requestCountQuery, enabled: admin })
  const pages: [string, string][] = [
    ['/', t('Home')],
    ['/jobs', t('Jobs')],
    ['/submit', t('Submit')],
    ['/templates', t('Templates')],
    ['/cluster', t('Cluster')],
    ['/storages', t('Storages')],
    ...(plugins ?? []).map((plugin, index): [string, string] => [`/plugins/${index}`, plugin.title]),
    ...(admin || me?.adminOfGroups?.length ? ([['/admin', t('Administration')]] as [string, string][]) : []),
  ]
  const row = useCurrentInSight<HTMLElement>(`${path} ${pages.length}`)
  return (
    <header className="bar">
      <Link className="brand" href="/" aria-label={t('Skep, home')}>
        <img src={skep} alt="" />
        Skep
      </Link>
      <nav ref={row} aria-label={t('Pages')}>
        {pages.map(([to, title]) => (
          <Link key={to} href={to === '/jobs' ? jobsPath({ user, admin }) : to} aria-current={path === to || (to !== '/' && path.startsWith(`${to}/`)) ? 'page' : undefined}>
            {title}
            {to === '/admin' && !!open && (
              <span className="tag count">
                {open} <span className="hidden-text">{t('request waits|requests wait', { n: open })}</span>
              </span>
            )}
          </Link>
        ))}
      </nav>
      <div className="row push">
        <Alerts />
        <Button kind="plain" aria-label={t('Help and keys')} title="?" onClick={onHelp}>
          ?
        </Button>
        <Menu label={user} name={t('Account of {user}', { user })}>
          {(close) => (
            <div className="stack">
              {me?.email && <p className="small quiet anywhere">{me.email}</p>}
              <Link className="button" href="/profile" onClick={close}>
                {t('Profile')}
              </Link>
              <Preferences />
              <Button onClick={() => void signOut()}>{t('Sign out')}</Button>
            </div>
          )}
        </Menu>
      </div>
    </header>
  )
}

export function App() {
  const { path, search } = useLocation()
  const session = useSyncExternalStore(sessionWatch, sessionGet)
  const isEnded = useSyncExternalStore(sessionWatch, sessionIsEnded)
  const [isHelp, setHelp] = useState(false)
  const main = useRef<HTMLElement>(null)
  useSettings()
  useKeys(() => setHelp(true), !!session)
  useChanges(!!session)

  const old = pathOfOldPortal(path, search, location.hash)
  useEffect(() => {
    if (old) navigate(old, true)
  }, [old])
  useEffect(() => {
    if (!session && path !== '/sign-in') navigate(`/sign-in?from=${encodeURIComponent(location.pathname + location.search)}`, true)
    if (session && path === '/sign-in') {
      const from = search.get('from') ?? '/'
      navigate(from.startsWith('/') && !from.startsWith('//') ? from : '/', true)
    }
  }, [session, path, search])
  // what was read is another page: tell who cannot see it
  const before = useRef(path)
  useEffect(() => {
    if (before.current !== path && document.activeElement?.closest('main') === null) main.current?.focus()
    before.current = path
  }, [path])

  if (!session) return <SignIn />
  if (path === '/sign-in' || old) return null
  return (
    <Clock>
      <Toasts>
        <a className="skip" href="#main">
          {t('To the content')}
        </a>
        <Bar path={path} user={session.user} admin={session.admin} onHelp={() => setHelp(true)} />
        <main id="main" ref={main} tabIndex={-1}>
          <Boundary key={path}>{pageOf(path)}</Boundary>
        </main>
        {isHelp && <Help onClose={() => setHelp(false)} />}
        {isEnded && <SignInAgain />}
      </Toasts>
    </Clock>
  )
}
