// What pages ask for, each under one key of the query cache.
import { keepPreviousData, queryOptions } from '@tanstack/react-query'
import { ALERTS_SHOWN } from '../lib/alerts'
import { isTold } from '../lib/changes'
import type { Cell, CellGroup } from '../lib/cells'
import { partsOf } from '../lib/parts'
import { ApiError, enc, get, getText, type ClusterNode, type JobAttempt, type JobDetail, type JobSummary, type Schema, type StoryEvent, type Task, type VirtualCluster } from './client'
import { pagesAll } from './pages'

export interface JobPage {
  totalCount: number
  data: JobSummary[]
}

/** How often what people look at is asked for again: seldom while the stream of changes tells. */
export const pollMs = () => (isTold() ? 30_000 : 3000)

/** How often what the stream does not tell of is asked for again, while somebody looks: accounts, templates, storages, settings. */
export const SELDOM_MS = 30_000

/** `filter` is a query string of GET /api/v2/jobs without offset and limit. */
export const jobPageQuery = (filter: string, offset: number, limit: number) =>
  queryOptions({
    queryKey: ['jobs', filter, offset, limit],
    queryFn: ({ signal }) => get<JobPage>(`/api/v2/jobs?${filter}${filter ? '&' : ''}offset=${offset}&limit=${limit}&withTotalCount=true`, signal),
    refetchInterval: pollMs,
    placeholderData: keepPreviousData,
  })

export const infoQuery = queryOptions({
  queryKey: ['info'],
  queryFn: ({ signal }) => get<Schema['Info']>('/api/v2/info', signal),
  staleTime: Infinity,
})

/** With the state of every task, and without the tasks: there may be twenty thousand. */
export const jobQuery = (name: string) =>
  queryOptions({
    queryKey: ['job', name],
    queryFn: ({ signal }) => get<JobDetail>(`/api/v2/jobs/${enc(name)}?tasks=states`, signal),
  })

export const TASK_FIELDS =
  'taskIndex,taskRoleName,taskState,retries,launchedTime,completedTime,attemptId,attemptState,containerId,containerIp,containerNodeName,containerPorts,containerGpus,containerLog,containerExitCode,containerOriginalExitCode,containerExitSpec'

/** `filter` is a query string of GET /api/v2/jobs/JOB/tasks. */
export const tasksQuery = (name: string, filter: string) =>
  queryOptions({
    queryKey: ['job', name, 'tasks', filter],
    queryFn: ({ signal }) => get<Task[]>(`/api/v2/jobs/${enc(name)}/tasks?${filter}&fields=${TASK_FIELDS}`, signal),
  })

/** `filter` is one, too: a part of what it finds, in its order. */
export const taskPageQuery = (name: string, filter: string, offset: number, limit: number) =>
  queryOptions({
    queryKey: ['job', name, 'task-page', filter, offset, limit],
    queryFn: ({ signal }) => get<Schema['TaskPage']>(`/api/v2/jobs/${enc(name)}/tasks?${filter}&offset=${offset}&limit=${limit}&withTotalCount=true&fields=${TASK_FIELDS}`, signal),
  })

/** What the tasks can be filtered by. */
export const taskValuesQuery = (name: string) =>
  queryOptions({
    queryKey: ['job', name, 'task-values'],
    queryFn: ({ signal }) => get<Schema['TaskValues']>(`/api/v2/jobs/${enc(name)}/task-values`, signal),
  })

/** One task as the list has it; none when there is no such task. */
export const taskRowQuery = (name: string, role: string, index: number) =>
  queryOptions({
    queryKey: ['job', name, 'tasks', role, index],
    queryFn: async ({ signal }) => {
      const tasks = await get<Task[]>(`/api/v2/jobs/${enc(name)}/tasks?role=${enc(role)}&from=${index}&limit=1&fields=${TASK_FIELDS}`, signal)
      return tasks[0]?.taskIndex === index ? tasks[0] : null
    },
  })

export const attemptsQuery = (name: string) =>
  queryOptions({
    queryKey: ['job', name, 'attempts'],
    queryFn: ({ signal }) => get<JobAttempt[]>(`/api/v2/jobs/${enc(name)}/attempts`, signal),
    refetchInterval: pollMs,
  })

/** Of one attempt of the job, without its tasks: also what ended it. */
export const attemptQuery = (name: string, attempt: number) =>
  queryOptions({
    queryKey: ['job', name, 'attempts', attempt],
    queryFn: ({ signal }) => get<JobDetail>(`/api/v2/jobs/${enc(name)}/attempts/${attempt}?tasks=none`, signal),
  })

export const taskQuery = (name: string, attempt: number, role: string, index: number) =>
  queryOptions({
    queryKey: ['job', name, 'task', attempt, role, index],
    queryFn: ({ signal }) => get<Task>(`/api/v2/jobs/${enc(name)}/attempts/${attempt}/taskRoles/${enc(role)}/taskIndex/${index}/attempts`, signal),
  })

/** Where the tasks are reached by ssh; for who may change the job. The tasks are new with every attempt. */
export const jobSshQuery = (name: string) =>
  queryOptions({
    queryKey: ['job', name, 'ssh'],
    queryFn: ({ signal }) => get<Schema['SshInfo']>(`/api/v1/jobs/${enc(name)}/ssh`, signal),
    retry: false,
  })

export const configQuery = (name: string) =>
  queryOptions({
    queryKey: ['job', name, 'config'],
    queryFn: ({ signal }) => getText(`/api/v2/jobs/${enc(name)}/config`, signal),
    staleTime: Infinity,
  })

/** `path` with or without a query of its own. */
export const useOverTimeQuery = (path: string, resolution: 'whole' | 'recent', isLive: boolean) =>
  queryOptions({
    queryKey: ['use', path, resolution],
    queryFn: ({ signal }) => get<Schema['Use']>(`${path}${path.includes('?') ? '&' : '?'}resolution=${resolution}`, signal),
    refetchInterval: isLive ? 10_000 : false, // the step of the server's samples
    placeholderData: keepPreviousData,
  })

export interface Story {
  totalCount: number
  data: StoryEvent[]
}

export const storyQuery = (name: string) =>
  queryOptions({
    queryKey: ['job', name, 'story'],
    queryFn: ({ signal }) => get<Story>(`/api/v2/jobs/${enc(name)}/events?limit=500`, signal),
    refetchInterval: pollMs,
  })

export const nodesQuery = queryOptions({
  queryKey: ['nodes'],
  queryFn: ({ signal }) => get<{ totalCount: number; data: ClusterNode[] }>('/api/v2/nodes', signal),
  refetchInterval: pollMs,
})

export interface NodeUse {
  gpuUsed: number
  gpuAvailable: number
  gpuTotal: number
  virtualCluster?: string // that alone has guarantees there
  jobs?: Schema['NodeJob'][] // with tasks there, under every policy
}

export const nodeUseQuery = queryOptions({
  queryKey: ['nodes', 'use'],
  queryFn: ({ signal }) => get<Record<string, NodeUse>>('/api/v2/virtual-clusters?nodes', signal),
  refetchInterval: pollMs,
})

interface Pods {
  metadata: { continue?: string }
  items: { metadata: { labels: Record<string, string> } }[]
}

/** What has a place on the node: "alice~train worker[1]". For administrators. */
export const nodeTasksQuery = (node: string) =>
  queryOptions({
    queryKey: ['nodes', node, 'tasks'],
    queryFn: async ({ signal }) => {
      const tasks: string[] = []
      for (let after: string | undefined = '0'; after !== undefined; ) {
        const page: Pods = await get<Pods>(`/api/v2/kubernetes/pods?fieldSelector=${enc(`spec.nodeName=${node}`)}&continue=${after}`, signal)
        for (const { metadata } of page.items)
          tasks.push(`${metadata.labels['userName']}~${metadata.labels['jobName']} ${metadata.labels['FC_TASKROLE_NAME']}[${metadata.labels['FC_TASK_INDEX']}]`)
        after = page.metadata.continue
      }
      return tasks
    },
  })

export const clustersQuery = queryOptions({
  queryKey: ['virtual-clusters'],
  queryFn: ({ signal }) => get<Record<string, VirtualCluster>>('/api/v2/virtual-clusters', signal),
  refetchInterval: pollMs,
})

export const skusQuery = (vc: string) =>
  queryOptions({
    queryKey: ['skus', vc],
    queryFn: ({ signal }) => get<Schema['SkuTypes']>(`/api/v2/cluster/sku-types${vc ? `?vc=${enc(vc)}` : ''}`, signal),
  })

export const usersQuery = queryOptions({
  queryKey: ['users'],
  queryFn: ({ signal }) => pagesAll<Schema['User']>((cursor) => get(`/api/v2/users?cursor=${enc(cursor)}`, signal)),
  refetchInterval: SELDOM_MS,
})

export const userQuery = (name: string) =>
  queryOptions({
    queryKey: ['users', name],
    queryFn: ({ signal }) => get<Schema['User']>(`/api/v2/users/${enc(name)}`, signal),
    refetchInterval: SELDOM_MS,
  })

export const alertsQuery = queryOptions({
  queryKey: ['alerts'],
  queryFn: ({ signal }) => get<Schema['Alert'][]>(`/api/v2/alerts?state=all&limit=${ALERTS_SHOWN}`, signal),
  refetchInterval: 30_000,
})

export const pluginsQuery = queryOptions({
  queryKey: ['plugins'],
  queryFn: ({ signal }) => get<Schema['PortalPlugin'][]>('/api/v2/plugins', signal),
  staleTime: Infinity, // they change with the server's start
})

export type Storage = Schema['StorageDetail'] & { isDefault: boolean }

/** The list names them; what each is stands in its own reply. */
export const storagesQuery = queryOptions({
  queryKey: ['storages'],
  queryFn: async ({ signal }): Promise<Storage[]> => {
    const { storages } = await get<{ storages: Schema['StorageSummary'][] }>('/api/v2/storages', signal)
    return Promise.all(storages.map(async ({ name, default: isDefault }) => ({ ...(await get<Schema['StorageDetail']>(`/api/v2/storages/${enc(name ?? '')}`, signal)), isDefault: isDefault ?? false })))
  },
  refetchInterval: SELDOM_MS,
})

export const groupsQuery = queryOptions({
  queryKey: ['groups'],
  queryFn: ({ signal }) => get<Schema['Groups']>('/api/v2/groups', signal),
  refetchInterval: SELDOM_MS,
})

export const membersQuery = (group: string) =>
  queryOptions({
    queryKey: ['groups', group, 'members'],
    queryFn: ({ signal }) => get<Schema['Members']>(`/api/v2/groups/${enc(group)}/userlist`, signal),
    refetchInterval: SELDOM_MS,
  })

/** `of`: users/NAME or groups/NAME. */
export const quotaQuery = (of: string) =>
  queryOptions({
    queryKey: ['quota', of],
    queryFn: ({ signal }) => get<Schema['UserQuotas']>(`/api/v2/${of}/quota`, signal),
    refetchInterval: SELDOM_MS,
  })

export const exitSpecsQuery = queryOptions({
  queryKey: ['exit-specs'],
  queryFn: ({ signal }) => get<Schema['ExitRow'][]>('/api/v2/exit-specs', signal),
  refetchInterval: SELDOM_MS,
})

export const LOG_LEVELS = ['debug', 'info', 'warning', 'error'] as const
export type LogLevel = (typeof LOG_LEVELS)[number]

/** As many as the server has. */
const LOG_LINES = 2000

/** Its newest lines; asked again, those that have come since are added. */
export const serverLogQuery = (level: LogLevel, isFollowing: boolean) =>
  queryOptions({
    queryKey: ['server-log', level],
    queryFn: async ({ signal, client }): Promise<Schema['ServerLog']> => {
      const before = client.getQueryData<Schema['ServerLog']>(['server-log', level])
      const news = await get<Schema['ServerLog']>(`/api/v2/log?level=${level}&limit=${LOG_LINES}&after=${before?.next ?? 0}`, signal)
      if (!before) return news
      return { ...news, lines: [...before.lines, ...news.lines].slice(-LOG_LINES), missed: before.missed || news.missed }
    },
    refetchInterval: isFollowing ? 2000 : false,
    refetchOnWindowFocus: isFollowing,
    gcTime: 0,
  })

export const storageHealthQuery = queryOptions({
  queryKey: ['storages', 'health'],
  queryFn: ({ signal }) => get<Schema['StoragesHealth']>('/api/v2/storage/health', signal),
  refetchInterval: 5000, // the server looks no more often
})

export const settingsQuery = queryOptions({
  queryKey: ['settings'],
  queryFn: ({ signal }) => get<Schema['Settings']>('/api/v2/settings', signal),
  refetchInterval: SELDOM_MS,
})

export const tokensQuery = queryOptions({
  queryKey: ['tokens'],
  queryFn: ({ signal }) => get<Schema['Tokens']>('/api/v2/tokens', signal),
  refetchInterval: SELDOM_MS,
})

/** How the server's own parts are. Not ready is an answer, too: it names what failed. */
export const partsQuery = queryOptions({
  queryKey: ['parts'],
  queryFn: async ({ signal }) => {
    const text = await getText('/readyz?verbose', signal).catch((failure: unknown) => {
      if (failure instanceof ApiError && failure.status === 503 && partsOf(failure.message).length) return failure.message
      throw failure
    })
    return partsOf(text)
  },
  refetchInterval: pollMs,
})

interface Cells {
  cells: Cell[]
  groups: CellGroup[]
  refusal: string // why there are none: the server places jobs without cells; ""
}

/** That there are no cells is an answer, after which nobody asks again: the policy changes with the server's configuration alone. */
export const cellsQuery = queryOptions({
  queryKey: ['cells'],
  queryFn: async ({ signal }): Promise<Cells> => {
    try {
      const [cells, groups] = await Promise.all([
        get<Cell[]>('/v1/inspect/clusterstatus/physicalcluster', signal),
        get<{ items: CellGroup[] | null }>('/v1/inspect/affinitygroups', signal),
      ])
      return { cells, groups: groups.items ?? [], refusal: '' }
    } catch (failure) {
      if (failure instanceof ApiError && failure.status === 400) return { cells: [], groups: [], refusal: failure.message }
      throw failure
    }
  },
  enabled: (query) => !query.state.data?.refusal,
  refetchInterval: pollMs,
  retry: false,
})
