import { QueryClient, QueryClientProvider } from '@tanstack/react-query'
import { StrictMode } from 'react'
import { createRoot } from 'react-dom/client'
import { ApiError, sessionFind, sessionGet, sessionWatch } from './api/client'
import { App, pageAhead } from './app'
import { languagePreferred, languageSet, useLanguage } from './i18n/i18n'
import { carriedKeep } from './lib/transfer'
import { settingsApply } from './lib/settings'
import './style/tokens.css'
import './style/base.css'
import './style/ui.css'

const queries = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: 2000,
      retry: (tries, error) => tries < 3 && (!(error instanceof ApiError) || error.status === 0 || error.status >= 500),
      retryDelay: (tries) => Math.min(10_000, 500 * 2 ** tries),
    },
  },
})

// Somebody else has signed in: nothing of the one before may be shown.
let user = sessionGet()?.user
sessionWatch(() => {
  if (sessionGet()?.user === user) return
  user = sessionGet()?.user
  queries.clear()
})

// A chunk of an older build is gone after an upgrade of the server: the new page knows the new names.
addEventListener('vite:preloadError', (event) => {
  const last = Number(sessionStorage.getItem('skep.reloaded') ?? 0)
  if (Date.now() - last < 60_000) return
  event.preventDefault()
  sessionStorage.setItem('skep.reloaded', String(Date.now()))
  location.reload()
})

function Root() {
  const language = useLanguage()
  return <App key={language} />
}

settingsApply()
carriedKeep()
await Promise.all([languageSet(languagePreferred(), false), sessionFind().then(() => pageAhead(location.pathname, queries))])
createRoot(document.getElementById('root')!).render(
  <StrictMode>
    <QueryClientProvider client={queries}>
      <Root />
    </QueryClientProvider>
  </StrictMode>,
)
