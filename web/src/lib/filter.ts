// The list of jobs: its filters as the address bar has them, as the API takes them, and as `skep list` does.
import { queryText } from '../router'

export interface JobFilter {
  keyword: string
  users: string[]
  vcs: string[]
  states: string[]
  priorities: string[]
  tags: string[]
  since: string // days of the browser's time, YYYY-MM-DD, both of them included; "": whenever
  until: string
  isArchived: boolean
  order: string // "submissionTime,DESC"
}

export const ORDER_DEFAULT = 'submissionTime,DESC'
export const ME = '@me'

const list = (text: string | null) => (text ? text.split(',').filter(Boolean) : [])

/** What is typed into a field for several, as the address has it. */
export const listTyped = (text: string) => list(text).map((one) => one.trim()).filter(Boolean).join(',')

const day = (text: string | null) => (text && /^\d{4}-\d{2}-\d{2}$/.test(text) && !Number.isNaN(Date.parse(text)) ? text : '')

/** The beginning of that day here, or of the one behind it. */
export function dayStart(text: string, after = 0): number {
  const [year = 0, month = 1, date = 1] = text.split('-').map(Number)
  return new Date(year, month - 1, date + after).getTime()
}

export function filterOf(search: URLSearchParams): JobFilter {
  return {
    keyword: search.get('keyword') ?? '',
    users: list(search.get('user')),
    vcs: list(search.get('vc')),
    states: list(search.get('state')),
    priorities: list(search.get('priority')),
    tags: search.get('archived') === 'true' ? [] : list(search.get('tag')), // the archived ones are found by a tag of their own
    since: day(search.get('since')),
    until: day(search.get('until')),
    isArchived: search.get('archived') === 'true',
    order: search.get('order') ?? ORDER_DEFAULT,
  }
}

const KEPT = ['user', 'vc', 'state', 'priority', 'tag', 'archived', 'order']

/** What of an address of the list is for the next visit, too. What one looked for, by name or by day, is not: it was for once. */
export function filtersKept(search: URLSearchParams): string {
  return queryText(new URLSearchParams(KEPT.flatMap((key) => (search.get(key) ? [[key, search.get(key)!]] : []))))
}

export const isFiltered = (filter: JobFilter) =>
  !!filter.keyword || !!filter.since || !!filter.until || [filter.users, filter.vcs, filter.states, filter.priorities, filter.tags].some((part) => part.length > 0)

export function filterQuery(filter: JobFilter, me: string, archivedTag: string): string {
  const query = new URLSearchParams()
  const put = (key: string, values: string[]) => {
    if (values.length) query.set(key, values.join(','))
  }
  if (filter.keyword) query.set('keyword', filter.keyword)
  put('username', filter.users.map((user) => (user === ME ? me : user)))
  put('vc', filter.vcs)
  put('state', filter.states)
  put('jobPriority', filter.priorities)
  put('tagsContain', filter.isArchived ? [archivedTag] : filter.tags)
  if (!filter.isArchived) query.set('tagsNotContain', archivedTag)
  if (filter.since) query.set('since', String(dayStart(filter.since)))
  if (filter.until) query.set('until', String(dayStart(filter.until, 1)))
  if (filter.order !== ORDER_DEFAULT) query.set('order', filter.order)
  return query.toString()
}

/** The next order after a click on a column: descending, ascending, as it was. */
export function orderNext(order: string, field: string): string | null {
  if (order === `${field},DESC`) return `${field},ASC`
  if (order === `${field},ASC`) return null
  return `${field},DESC`
}

/** The day behind, as `skep list` takes it. */
function dayNext(text: string): string {
  const [year = 0, month = 1, date = 1] = text.split('-').map(Number)
  return new Date(Date.UTC(year, month - 1, date + 1)).toISOString().slice(0, 10)
}

const word = (text: string) => (/^[\w.,~/@%+=:-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`)

export function filterCommand(filter: JobFilter, me: string, archivedTag: string): string {
  const parts = ['skep list']
  const put = (option: string, values: string[]) => {
    if (values.length) parts.push(option, word(values.join(',')))
  }
  put('--user', filter.users.map((user) => (user === ME ? me : user)))
  put('--vc', filter.vcs)
  put('--state', filter.states)
  put('--priority', filter.priorities)
  put('--tag', filter.isArchived ? [archivedTag] : filter.tags)
  if (!filter.isArchived) parts.push('--no-tag', word(archivedTag))
  if (filter.keyword) parts.push('--keyword', word(filter.keyword))
  if (filter.since) parts.push('--since', filter.since)
  if (filter.until) parts.push('--until', dayNext(filter.until))
  if (filter.order !== ORDER_DEFAULT) parts.push('--order', filter.order)
  return parts.join(' ')
}

export { word as shellWord }
