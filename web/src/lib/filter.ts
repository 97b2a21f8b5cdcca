// The list of jobs: its filters as the address bar has them, as the API takes them, and as `skep list` does.
import { queryText } from '../router'

export interface JobFilter {
  keyword: string
  users: string[]
  vcs: string[]
  states: string[]
  priorities: string[]
  tags: string[]
  isArchived: boolean
  order: string // "submissionTime,DESC"
}

export const ORDER_DEFAULT = 'submissionTime,DESC'
const ME = '@me'

const list = (text: string | null) => (text ? text.split(',').filter(Boolean) : [])

export function filterOf(search: URLSearchParams): JobFilter {
  return {
    keyword: search.get('keyword') ?? '',
    users: list(search.get('user')),
    vcs: list(search.get('vc')),
    states: list(search.get('state')),
    priorities: list(search.get('priority')),
    tags: list(search.get('tag')),
    isArchived: search.get('archived') === 'true',
    order: search.get('order') ?? ORDER_DEFAULT,
  }
}

const KEPT = ['user', 'vc', 'state', 'priority', 'tag', 'archived', 'order']

/** What of an address of the list is for the next visit, too. What one looked for is not: it was for once. */
export function filtersKept(search: URLSearchParams): string {
  return queryText(new URLSearchParams(KEPT.flatMap((key) => (search.get(key) ? [[key, search.get(key)!]] : []))))
}

export const isFiltered = (filter: JobFilter) =>
  !!filter.keyword || [filter.users, filter.vcs, filter.states, filter.priorities, filter.tags].some((part) => part.length > 0)

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
  if (filter.order !== ORDER_DEFAULT) query.set('order', filter.order)
  return query.toString()
}

/** The next order after a click on a column: descending, ascending, as it was. */
export function orderNext(order: string, field: string): string | null {
  if (order === `${field},DESC`) return `${field},ASC`
  if (order === `${field},ASC`) return null
  return `${field},DESC`
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
  if (filter.keyword) parts.push('--keyword', word(filter.keyword))
  if (filter.order !== ORDER_DEFAULT) parts.push('--order', filter.order)
  return parts.join(' ')
}

export { word as shellWord }
