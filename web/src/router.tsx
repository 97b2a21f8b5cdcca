// The address bar is the state: paths name pages, queries name what is shown of them.
import { useCallback, useLayoutEffect, useMemo, useRef, useSyncExternalStore, type AnchorHTMLAttributes, type MouseEvent } from 'react'
import { pluginPath } from './lib/plugins'

const CHANGE = 'skep:navigate'

function subscribe(notify: () => void) {
  addEventListener('popstate', notify)
  addEventListener(CHANGE, notify)
  return () => {
    removeEventListener('popstate', notify)
    removeEventListener(CHANGE, notify)
  }
}

export function navigate(to: string, replace = false) {
  if (to === location.pathname + location.search) return
  if (replace) history.replaceState(null, '', to)
  else history.pushState(null, '', to)
  dispatchEvent(new Event(CHANGE))
}

const href = () => location.pathname + location.search

export function useLocation() {
  const at = useSyncExternalStore(subscribe, href)
  return useMemo(() => {
    const url = new URL(at, location.origin)
    return { path: url.pathname, search: url.searchParams }
  }, [at])
}

/** A query that can be read: these may stand in one as they are. */
export const queryText = (query: URLSearchParams) => query.toString().replaceAll('%2C', ',').replaceAll('%7E', '~').replaceAll('%40', '@')

/** The query, and a function that changes some of its keys ('' or null removes one). */
export function useSearch() {
  const { search, path } = useLocation()
  const change = useCallback(
    (changes: Record<string, string | null>, replace = true) => {
      const next = new URLSearchParams(location.search)
      for (const [key, value] of Object.entries(changes)) {
        if (value) next.set(key, value)
        else next.delete(key)
      }
      const query = queryText(next)
      navigate(path + (query ? `?${query}` : ''), replace)
    },
    [path],
  )
  return [search, change] as const
}

export function Link({ href: to, onClick, ...rest }: AnchorHTMLAttributes<HTMLAnchorElement> & { href: string }) {
  const follow = (event: MouseEvent<HTMLAnchorElement>) => {
    onClick?.(event)
    if (event.defaultPrevented || event.button || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return
    event.preventDefault()
    navigate(to)
    scrollTo(0, 0)
  }
  return <a href={to} onClick={follow} {...rest} />
}

/** For a row of links that may be wider than the window: it is scrolled to the one of `at`, where that one is out of sight. */
export function useCurrentInSight<Row extends HTMLElement>(at: string) {
  const row = useRef<Row>(null)
  useLayoutEffect(() => {
    const links = row.current
    if (!links) return
    const show = () => {
      const current = links.querySelector('[aria-current]')
      if (!current) return
      const [box, link] = [links.getBoundingClientRect(), current.getBoundingClientRect()]
      if (link.left < box.left || link.right > box.right) links.scrollLeft += link.left - box.left - (box.width - link.width) / 2
    }
    show()
    const sizes = new ResizeObserver(show) // a window that gets narrower, too
    sizes.observe(links)
    return () => sizes.disconnect()
  }, [at])
  return row
}

/** USER~JOB of what an address names: without a user, one's own. */
export const jobNameOf = (given: string, user: string) => (given.includes('~') ? given : `${user}~${given}`)

export const jobPath = (user: string, name: string) => `/jobs/${encodeURIComponent(`${user}~${name}`).replaceAll('%7E', '~')}`

/** By which it ordered its list, and as the API calls that. */
const OLD_ORDERS: Record<string, string> = {
  name: 'jobName',
  modified: 'submissionTime',
  submissionTime: 'submissionTime',
  user: 'username',
  virtualCluster: 'vc',
  retries: 'retries',
  taskCount: 'totalTaskNumber',
  gpuCount: 'totalGpuNumber',
  jobPriority: 'jobPriority',
  status: 'state',
}

/** Where OpenPAI's portal had a page, ours has another: its links go on working. */
export function pathOfOldPortal(path: string, search: URLSearchParams, hash = ''): string | null {
  if (path.endsWith('.html') && hash.includes('?')) search = new URLSearchParams([...search, ...new URLSearchParams(hash.slice(hash.indexOf('?')))]) // submit.html#/general?op=resubmit
  const user = search.get('username') ?? search.get('userName') ?? search.get('user') ?? ''
  const job = search.get('jobName') ?? search.get('jobname') ?? ''
  const detail = user && job ? jobPath(user, job) : '/jobs'
  switch (path) {
    case '/index.html':
    case '/home.html':
    case '/home':
      return '/'
    case '/job-list.html': {
      const next = new URLSearchParams()
      for (const [from, to] of [['vcName', 'vc'], ['status', 'state'], ['user', 'user'], ['keyword', 'keyword'], ['jobPriority', 'priority']] as const) {
        const value = search.get(from)
        if (value) next.set(to, from === 'status' ? value.toUpperCase() : value)
      }
      const field = OLD_ORDERS[search.get('field') ?? '']
      if (field) next.set('order', `${field},${search.get('descending') === 'true' ? 'DESC' : 'ASC'}`)
      return `/jobs${next.size ? `?${next}` : ''}`
    }
    case '/login.html': // of the portal before 1.0, as its plugins still name it
      return '/'
    case '/view.html':
    case '/job-detail.html':
    case '/job-event.html':
      return detail
    case '/job-transfer.html':
      return user && job ? `${detail}?ask=transfer` : detail
    case '/task-attempt.html': {
      const role = search.get('taskRoleName')
      const attempt = search.get('jobAttemptIndex')
      return role && user && job ? `${detail}?task=${encodeURIComponent(`${role}.${search.get('taskIndex') ?? '0'}`)}${attempt ? `&run=${encodeURIComponent(attempt)}` : ''}` : detail
    }
    case '/submit_v1.html':
    case '/submit_demo.html':
    case '/submit.html':
      return search.get('op') === 'resubmit' && user && job ? `/submit?clone=${encodeURIComponent(`${user}~${job}`)}` : '/submit'
    case '/plugin.html': // without an index: there the marketplace was
      return pluginPath(search) ?? '/templates'
    case '/virtual-clusters.html':
      return '/cluster?tab=quotas'
    case '/cluster-view/services.html':
      return '/admin?tab=services'
    case '/cluster-view/hardware.html':
      return '/cluster?tab=nodes'
    case '/cluster-view/hardware/detail.html': {
      const node = (search.get('instance') ?? '').replace(/:\d+$/, '') // with the port of its exporter
      return `/cluster?tab=nodes${node && `&node=${encodeURIComponent(node)}`}`
    }
    case '/dashboard.html':
    case '/cluster-view/k8s.html':
      return '/cluster'
    case '/user-view.html':
    case '/batch-register.html':
      return '/admin'
    case '/user-profile.html':
      return '/profile'
    default:
      return null
  }
}
