import { describe, expect, it } from 'vitest'
import { backoffMs } from '../src/api/client'
import { newsOf } from '../src/lib/changes'
import { bandOf, busyByCluster, busyOf, chainsOf, colourIndex, groupsOf, hasGpus, nodesOfCluster, racksOf, sharesOf, type Cell, type CellGroup, type LeafGroup } from '../src/lib/cells'
import { csvOf, csvRead } from '../src/lib/csv'
import { diffLines } from '../src/lib/diff'
import { dayStart, filterCommand, filterOf, filterQuery, filtersKept, listTyped, orderNext } from '../src/lib/filter'
import { bytes, duration } from '../src/lib/format'
import { isAmong } from '../src/lib/password'
import { jobPath, pathOfOldPortal } from '../src/router'

describe('filters', () => {
  const filter = filterOf(new URLSearchParams('state=RUNNING,FAILED&user=@me&keyword=a b&order=vc,ASC'))
  it('become a query of the API', () => {
    expect(filterQuery(filter, 'ann', 'archived')).toBe('keyword=a+b&username=ann&state=RUNNING%2CFAILED&tagsNotContain=archived&order=vc%2CASC')
    expect(filterQuery({ ...filter, isArchived: true }, 'ann', 'archived')).toContain('tagsContain=archived')
  })
  it('become a command', () => {
    const commandOf = (search: string) => filterCommand(filterOf(new URLSearchParams(search)), 'ann', 'archived')
    expect(filterCommand(filter, 'ann', 'archived')).toBe("skep list --user ann --state RUNNING,FAILED --no-tag archived --keyword 'a b' --order vc,ASC")
    expect(commandOf("keyword=it's")).toBe("skep list --no-tag archived --keyword 'it'\\''s'")
    expect(commandOf('priority=prod,test&tag=a')).toBe('skep list --priority prod,test --tag a --no-tag archived')
    expect(commandOf('archived=true')).toBe('skep list --tag archived')
  })
  it('of the archived ones name no other tag, which the server would not look for', () => {
    const archived = filterOf(new URLSearchParams('archived=true&tag=a'))
    expect(archived.tags).toEqual([])
    expect(filterQuery(archived, 'ann', 'archived')).toBe('tagsContain=archived')
    expect(filterCommand(archived, 'ann', 'archived')).toBe('skep list --tag archived')
  })
  it('are kept for the next visit, but for what was looked for', () => {
    const kept = filtersKept(new URLSearchParams('keyword=train&user=@me&state=RUNNING,WAITING&order=vc,ASC&archived=true&other=1'))
    expect(kept).toBe('user=@me&state=RUNNING,WAITING&archived=true&order=vc,ASC')
    expect(filterOf(new URLSearchParams(kept))).toMatchObject({ users: ['@me'], states: ['RUNNING', 'WAITING'], keyword: '', isArchived: true, order: 'vc,ASC' })
    expect(filtersKept(new URLSearchParams('keyword=train'))).toBe('')
  })
  it('between two days take in both of them', () => {
    const days = filterOf(new URLSearchParams('since=2026-02-27&until=2026-02-28'))
    const query = new URLSearchParams(filterQuery(days, 'ann', 'archived'))
    expect(Number(query.get('since'))).toBe(new Date(2026, 1, 27).getTime())
    expect(Number(query.get('until'))).toBe(new Date(2026, 2, 1).getTime())
    expect(dayStart('2026-12-31', 1)).toBe(new Date(2027, 0, 1).getTime())
    expect(filterCommand(days, 'ann', 'archived')).toBe('skep list --no-tag archived --since 2026-02-27 --until 2026-03-01')
    expect(filterOf(new URLSearchParams('since=yesterday&until=2026-13-01'))).toMatchObject({ since: '', until: '' })
    expect(filtersKept(new URLSearchParams('since=2026-02-27'))).toBe('')
  })
  it('read what is typed with commas as the address has it', () => {
    for (const typed of ['', ',', 'ann', 'ann,', 'ann, bob', ' ann ,,bob ']) {
      const users = listTyped(typed)
      expect(filterOf(new URLSearchParams({ user: users })).users.join(',')).toBe(users)
    }
    expect(listTyped(' ann ,,bob ,')).toBe('ann,bob')
  })
  it('turn the order', () => {
    expect(orderNext('submissionTime,DESC', 'vc')).toBe('vc,DESC')
    expect(orderNext('vc,DESC', 'vc')).toBe('vc,ASC')
    expect(orderNext('vc,ASC', 'vc')).toBeNull()
  })
})

describe('addresses', () => {
  it('of jobs can be read', () => expect(jobPath('ann', 'a b')).toBe('/jobs/ann~a%20b'))
  it('of the portal before go on working', () => {
    const of = (address: string) => {
      const url = new URL(address, 'http://x')
      return pathOfOldPortal(url.pathname, url.searchParams, url.hash)
    }
    expect(of('/job-detail.html?username=ann&jobName=train')).toBe('/jobs/ann~train')
    expect(of('/job-list.html?status=Failed&vcName=vc1')).toBe('/jobs?vc=vc1&state=FAILED')
    expect(of('/submit.html?op=resubmit&type=job&user=ann&jobName=train')).toBe('/submit?clone=ann~train')
    expect(of('/submit.html?op=resubmit&type=job&user=ann&jobName=train#/general')).toBe('/submit?clone=ann~train')
    expect(of('/submit.html#/general?op=resubmit&type=job&user=ann&jobName=train')).toBe('/submit?clone=ann~train')
    expect(of('/submit.html#/yaml-edit')).toBe('/submit')
    expect(of('/submit_v1.html?op=resubmit&user=ann&jobname=train')).toBe('/submit?clone=ann~train')
    expect(of('/user-profile.html')).toBe('/profile')
    expect(of('/job-event.html?userName=ann&jobName=train')).toBe('/jobs/ann~train')
    expect(of('/job-transfer.html?userName=ann&jobName=train')).toBe('/jobs/ann~train?ask=transfer')
    expect(of('/task-attempt.html?username=ann&jobName=train&taskRoleName=worker&taskIndex=3')).toBe('/jobs/ann~train?task=worker.3')
    expect(of('/task-attempt.html?username=ann&jobName=train&taskRoleName=worker&taskIndex=3&jobAttemptIndex=1')).toBe('/jobs/ann~train?task=worker.3&run=1')
    expect(of('/job-list.html?jobPriority=prod&field=gpuCount&descending=true')).toBe('/jobs?priority=prod&order=totalGpuNumber%2CDESC')
    expect(of('/job-list.html?field=no-such-field')).toBe('/jobs')
    expect(of('/cluster-view/services.html')).toBe('/admin?tab=services')
    expect(of('/cluster-view/hardware.html')).toBe('/cluster?tab=nodes')
    expect(of('/cluster-view/hardware/detail.html')).toBe('/cluster?tab=nodes')
    expect(of('/cluster-view/hardware/detail.html?instance=10.0.0.7:9100')).toBe('/cluster?tab=nodes&node=10.0.0.7')
    expect(of('/cluster-view/hardware/detail.html?instance=gpu-01')).toBe('/cluster?tab=nodes&node=gpu-01')
    expect(of('/batch-register.html')).toBe('/admin')
    expect(of('/virtual-clusters.html?vcName=vc1')).toBe('/cluster?tab=quotas')
    expect(of('/home.html')).toBe('/')
    expect(of('/jobs')).toBeNull()
  })
})

describe('tables as text', () => {
  it('go both ways', () => {
    const rows = [['a', 'b,"c"'], ['line\nbreak', '']]
    expect(csvRead(csvOf(rows))).toEqual(rows)
  })
  it('are no formulas', () => expect(csvOf([['=1+1', -1]])).toBe("'=1+1,-1\r\n"))
})

describe('differences', () => {
  it('are by line', () => {
    const kinds = (before: string, after: string) => diffLines(before, after).map((line) => line.kind[0] + line.text)
    expect(kinds('a\nb\nc', 'a\nx\nc')).toEqual(['sa', 'ob', 'nx', 'sc'])
    expect(kinds('a\nb', 'a\nb')).toEqual(['sa', 'sb'])
    expect(kinds('a', 'b\na\nc')).toEqual(['nb', 'sa', 'nc'])
  })
})

describe('cells', () => {
  const leaf = (address: string, state: string, vc = ''): Cell => ({ cellType: 'G', cellAddress: address, cellState: state, cellHealthiness: 'Healthy', cellPriority: 0, vc })
  const node: Cell = { ...leaf('n1', 'Used'), isNodeLevel: true, cellType: 'N', cellChildren: [leaf('n1/0', 'Used', 'vc1'), leaf('n1/1', 'Free')] }
  const rack: Cell = { ...leaf('r1', 'Used'), leafCellType: 'G', cellType: 'R', cellChildren: [node] }
  const groups = [{ metadata: { name: 'ann~train/0' }, status: { vc: 'vc1', priority: 1, state: 'Allocated', physicalPlacement: { n1: [0] } } }]
  it('know who holds them', () => {
    const [chain] = chainsOf([rack], groups)
    expect(chain?.nodes[0]?.path).toEqual([{ type: 'R', name: 'r1', address: 'r1' }])
    expect(chain?.nodes[0]?.leaves.map((one) => [one.isUsed, one.jobs.join(), one.vc])).toEqual([
      [true, 'ann~train', 'vc1'],
      [false, '', ''],
    ])
  })
  it('of one node and index are told apart by what they are bound to', () => {
    const of = (type: string, state: string, virtual: string): Cell => ({
      ...{ ...leaf('n1', state), isNodeLevel: true, leafCellType: type, cellType: 'N' },
      cellChildren: [{ ...leaf('n1/0', state), virtualCell: { cellAddress: virtual } }],
    })
    const group = (name: string, virtual?: string) => ({
      metadata: { name: `${name}/0` },
      status: { vc: 'vc1', priority: virtual ? 1 : -1, state: 'Allocated', physicalPlacement: { n1: [0] }, ...(virtual && { virtualPlacement: { [virtual]: [`${virtual}/0`] } }) },
    })
    const jobs = (cells: Cell[], ...held: CellGroup[]) => chainsOf(cells, held).map((chain) => chain.nodes[0]?.leaves[0]?.jobs)
    const both = (state: string) => [of('G', state, 'vc1/0/0'), of('CPU', 'Used', 'vc1/1/0')]
    expect(jobs(both('Used'), group('ann~train', 'vc1/0'), group('ann~prepare', 'vc1/1'))).toEqual([['ann~train'], ['ann~prepare']])
    // the one job has both
    expect(jobs(both('Used'), group('ann~all', 'vc1/0'), group('ann~all', 'vc1/1'))).toEqual([['ann~all'], ['ann~all']])
    // one without a guarantee is not where another one has it
    expect(jobs([of('G', 'Used', 'n1/0-opp'), of('CPU', 'Used', 'vc1/1/0')], group('bob~spare'), group('ann~prepare', 'vc1/1'))).toEqual([['bob~spare'], ['ann~prepare']])
    // and stays where it is while it is being preempted
    expect(jobs(both('Reserving'), group('bob~spare'), group('ann~train', 'vc1/0'), group('ann~prepare', 'vc1/1'))).toEqual([['bob~spare', 'ann~train'], ['ann~prepare']])
  })
  it('keep what is above a node and what is inside it, as the server writes their addresses', () => {
    const cell = (cellType: string, cellAddress: string, cellChildren: Cell[]): Cell => ({ ...leaf(cellAddress, 'Used'), cellType, cellChildren })
    const socket = (at: string) => cell('SOCKET', at, [0, 1].map((i) => cell('SWITCH', `${at}/${i}`, [leaf(`${at}/${i}/${2 * i}`, 'Used', i ? 'vc1' : ''), leaf(`${at}/${i}/${2 * i + 1}`, 'Free')])))
    const nodeAt = (at: string): Cell => ({ ...cell('N', at, [socket(`${at}/0`)]), isNodeLevel: true })
    const pod: Cell = { ...cell('POD', 'p', [cell('R', 'p/0', [nodeAt('p/0/n1'), nodeAt('p/0/n2')]), cell('R', 'p/1', [nodeAt('p/1/n3')])]), leafCellType: 'G' }
    const held: CellGroup = { metadata: { name: 'ann~train/0' }, status: { vc: 'vc1', priority: 1, state: 'Allocated', physicalPlacement: { n1: [2] } } }
    const { nodes } = chainsOf([pod], [held])[0]!
    expect(nodes.map(({ name }) => name)).toEqual(['n1', 'n2', 'n3'])
    expect(nodes[2]?.path.map(({ type, name }) => `${type} ${name}`)).toEqual(['POD p', 'R 1'])
    expect(racksOf(nodes).map((rack) => rack.nodes.map(({ name }) => name))).toEqual([['n1', 'n2'], ['n3']])
    const [first] = nodes
    expect(first?.leaves.map((one) => [one.node, one.index, one.jobs.join(), one.within.map(({ name }) => name).join('.')])).toEqual([
      ['n1', 0, '', '0.0'],
      ['n1', 1, '', '0.0'],
      ['n1', 2, 'ann~train', '0.1'],
      ['n1', 3, '', '0.1'],
    ])
    const shape = (group: LeafGroup): unknown[] => group.parts.map((part) => ('parts' in part ? shape(part) : part.index))
    expect(shape(groupsOf(first!.leaves))).toEqual([[[0, 1], [2, 3]]])
    expect(nodesOfCluster(nodes, '')).toHaveLength(3)
    expect(nodesOfCluster(nodes, 'vc1')).toHaveLength(3)
    expect(nodesOfCluster(nodes, 'vc2')).toEqual([])
  })
  it('are shared by virtual clusters, of which one may use some', () => {
    const clusters = { a: { skus: { G: { total: 4, used: 1, bad: 1, opportunistic: 2 } } }, b: { skus: { G: { total: 2, used: 3 }, CPU: { total: 8 } } }, c: { skus: {} } }
    expect(sharesOf(clusters, 'G', ['b'])).toEqual([
      { vc: 'b', isMine: true, total: 2, used: 3, bad: 0, opportunistic: 0, free: 0 },
      { vc: 'a', isMine: false, total: 4, used: 1, bad: 1, opportunistic: 2, free: 2 },
    ])
    expect(sharesOf(clusters, 'CPU', null).map(({ vc, isMine, free }) => [vc, isMine, free])).toEqual([['b', true, 8]])
  })
  it('have the same colour every time', () => {
    expect(colourIndex('ann~train')).toBe(colourIndex('ann~train'))
    expect(colourIndex('')).toBeGreaterThan(0)
  })
})

describe('figures', () => {
  it('are read by people', () => {
    expect(duration(1500)).toBe('1.5 s')
    expect(duration(3_725_000)).toBe('1 h 2 min')
    expect(bytes(1536)).toBe('1.5 KiB')
    expect(bytes(512)).toBe('512 B')
  })
})

describe('news', () => {
  it('names each job once', () => {
    const changes = [{ type: 'job', id: 'ann~a' }, { type: 'job', id: 'ann~a' }, { type: 'jobRemoved', id: 'ann~b' }, { type: 'alive' }] as const
    expect(newsOf([...changes])).toEqual({ jobs: ['ann~a', 'ann~b'], hasNodes: false, isReset: false, isBegun: false })
    expect(newsOf([{ type: 'node' }, { type: 'reset' }])).toEqual({ jobs: [], hasNodes: true, isReset: true, isBegun: false })
  })
})

describe('waits between tries', () => {
  it('grow to half a minute and differ', () => {
    expect(backoffMs(0, 1)).toBe(500)
    expect(backoffMs(20, 0)).toBe(15_000)
    expect(backoffMs(20, 1)).toBe(30_000)
  })
})

describe('what is busy', () => {
  const leaf = (index: number, state: string): Cell => ({ cellType: 'V100', cellAddress: `n1/${index}`, cellState: state, cellHealthiness: 'Healthy', cellPriority: 0, vc: 'a' })
  const cells: Cell[] = [{ ...leaf(0, 'Used'), cellType: 'NODE', isNodeLevel: true, leafCellType: 'V100', cellAddress: 'n1', cellChildren: [leaf(0, 'Used'), leaf(1, 'Used'), leaf(2, 'Free')] }]
  const groups = [{ metadata: { name: 'ann~train/0' }, status: { vc: 'b', priority: 1, state: 'Allocated', physicalPlacement: { n1: [0] } } }]
  it('is told by node and index, of what is sampled', () => {
    const busy = busyOf([{ name: 'n1', gpus: [{ index: 0, utilizationPercent: 50 }, { index: 1, utilizationPercent: null }] }])
    expect([...busy]).toEqual([['n1/0', 50]])
    const types = { V100: { gpu: 1, cpu: 4, memory: 8192 }, CPU: { gpu: 0, cpu: 1, memory: 512 } }
    const told = { b: { held: 1, sampled: 1, busy: 0.5 }, a: { held: 1, sampled: 0, busy: 0 } }
    expect(Object.fromEntries(busyByCluster(cells, groups, busy, types))).toEqual(told)
    // cells of processors have the same numbers, and are no GPUs
    const ofCpus = cells.map((cell) => ({ ...cell, leafCellType: 'CPU' }))
    expect(Object.fromEntries(busyByCluster([...cells, ...ofCpus], groups, busy, types))).toEqual(told)
    expect(hasGpus(types, 'A100')).toBe(true)
  })
  it('has bands', () => expect([undefined, 0, 9, 10, 39, 40, 69, 70, 100].map(bandOf)).toEqual(['unknown', 'idle', 'idle', 'low', 'low', 'middle', 'middle', 'high', 'high']))
})

describe('passwords that were made', () => {
  const [a, b] = [
    { username: 'ann', password: '1' },
    { username: 'bob', password: '2' },
  ] as const
  it('are saved when each of them is', () => {
    expect(isAmong([], [])).toBe(true)
    expect(isAmong([a], [a, b])).toBe(true)
    expect(isAmong([a, b], [a])).toBe(false)
    expect(isAmong([{ ...a, password: '3' }], [a, b])).toBe(false) // of another file
  })
})
