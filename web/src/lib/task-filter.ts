// The table of a job's tasks: its filters and its order as the address bar has them, and as the API takes them.
export interface TaskFilter {
  state: string
  exitTypes: string[]
  exitCodes: string[]
  nodes: string[]
  order: string // "state,DESC"; "": by role and index
}

const list = (text: string | null) => (text ? text.split(',').filter(Boolean) : [])
const ORDERS = ['state,ASC', 'state,DESC', 'exitType,ASC', 'exitType,DESC']

export function taskFilterOf(search: URLSearchParams): TaskFilter {
  const order = search.get('order') ?? ''
  return {
    state: search.get('state') ?? '',
    exitTypes: list(search.get('exitType')),
    exitCodes: list(search.get('exitCode')).filter((code) => /^-?\d{1,9}$/.test(code)),
    nodes: list(search.get('node')),
    order: ORDERS.includes(order) ? order : '',
  }
}

/** Does the server have to say which tasks these are? Their states the page knows itself. */
export const isListed = ({ exitTypes, exitCodes, nodes, order }: TaskFilter) => !!order || [exitTypes, exitCodes, nodes].some((part) => part.length > 0)

/** Those and nothing else: what "Clear filters" takes away. */
export const TASK_FILTERS_NONE = { state: null, exitType: null, exitCode: null, node: null }

/** As parameters of GET /api/v2/jobs/JOB/tasks, beside the role and the text that are looked for. */
export const taskFilterWords = ({ state, exitTypes, exitCodes, nodes, order }: TaskFilter, role: string, keyword: string) => ({
  state,
  role,
  keyword,
  exitType: exitTypes.join(','),
  exitCode: exitCodes.join(','),
  node: nodes.join(','),
  order,
})

export function taskFilterQuery(words: Record<string, string | number | undefined>): string {
  const given = Object.entries(words).filter(([, value]) => value !== undefined && value !== '')
  return new URLSearchParams(given.map(([key, value]) => [key, String(value)])).toString()
}
