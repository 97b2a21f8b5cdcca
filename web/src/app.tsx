import { lazy, Suspense, useEffect, useRef, useState, useSyncExternalStore } from 'react'
import { useQuery } from '@tanstack/react-query'
import { sessionGet, sessionWatch, signOut } from './api/client'
import { userQuery } from './api/queries'
import { LANGUAGES, languageGet, languageSet, t } from './i18n/i18n'
import { useChanges } from './lib/changes'
import { useKeys } from './lib/keys'
import { settingsChange, useSettings, type Settings } from './lib/settings'
import { Home } from './pages/home'
import { SignIn } from './pages/sign-in'
import { Link, navigate, pathOfOldPortal, useLocation } from './router'
import skep from './style/skep.svg'
import { Boundary, Button, Check, Clock, Loading, Menu, SelectField, Toasts } from './ui/ui'
import { Alerts } from './ui/alerts'
import { Help } from './ui/help'

const Jobs = lazy(() => import('./pages/jobs'))
const Job = lazy(() => import('./pages/job'))
const Submit = lazy(() => import('./pages/submit'))
const Cluster = lazy(() => import('./pages/cluster'))
const Admin = lazy(() => import('./pages/admin'))
const Storages = lazy(() => import('./pages/storages'))
const Profile = lazy(() => import('./pages/profile'))
const Design = lazy(() => import('./pages/design'))

function pageOf(path: string) {
  if (path === '/') return <Home />
  if (path === '/jobs') return <Jobs />
  if (path.startsWith('/jobs/')) {
    const name = decodeURIComponent(path.slice('/jobs/'.length))
    return <Job key={name} name={name} />
  }
  if (path === '/submit') return <Submit />
  if (path === '/cluster') return <Cluster />
  if (path === '/storages') return <Storages />
  if (path === '/admin') return <Admin />
  if (path === '/profile') return <Profile />
  if (path === '/design') return <Design />
  return <NotFound />
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
  const { data: me } = useQuery({ ...userQuery(user), enabled: !admin, staleTime: 60_000 })
  const pages: [string, string][] = [
    ['/', t('Home')],
    ['/jobs', t('Jobs')],
    ['/submit', t('Submit')],
    ['/cluster', t('Cluster')],
    ['/storages', t('Storages')],
    ...(admin || me?.adminOfGroups?.length ? ([['/admin', t('Administration')]] as [string, string][]) : []),
  ]
  return (
    <header className="bar">
      <Link className="brand" href="/" aria-label={t('Skep, home')}>
        <img src={skep} alt="" />
        Skep
      </Link>
      <nav aria-label={t('Pages')}>
        {pages.map(([to, title]) => (
          <Link key={to} href={to} aria-current={path === to || (to !== '/' && path.startsWith(`${to}/`)) ? 'page' : undefined}>
            {title}
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
  const [isHelp, setHelp] = useState(false)
  const main = useRef<HTMLElement>(null)
  useSettings()
  useKeys(() => setHelp(true), !!session)
  useChanges(!!session)

  const old = pathOfOldPortal(path, search)
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
          <Boundary key={path}>
            <Suspense fallback={<div className="page"><Loading /></div>}>{pageOf(path)}</Suspense>
          </Boundary>
        </main>
        {isHelp && <Help onClose={() => setHelp(false)} />}
      </Toasts>
    </Clock>
  )
}
