// Machines: what they have, who uses it, and what administrators do to them.
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { useMemo, useState, type ReactNode } from 'react'
import { nodeCordon, nodeDrain, nodePardon, nodeUncordon } from '../../api/actions'
import { sessionGet, type ClusterNode } from '../../api/client'
import { nodesQuery, nodeTasksQuery, nodeUseQuery } from '../../api/queries'
import { t } from '../../i18n/i18n'
import { bytes, mebibytes } from '../../lib/format'
import { loadOf, nodeLine, nodeOrderOf, nodesShown, type NodeLine, type NodeOrder } from '../../lib/nodes'
import { Link, queryText, useSearch } from '../../router'
import { Ago, Button, Check, Confirm, Empty, ErrorNote, Loading, Meter, OnceButton, Said, TableCard, TextField, useToast, useUndo } from '../../ui/ui'

export function NodeState({ node }: { node: ClusterNode }) {
  const words: Record<string, [string, string]> = {
    READY: [t('Ready'), 'SUCCEEDED'],
    CORDONED: [t('Cordoned'), 'STOPPED'],
    UNHEALTHY: [t('Unhealthy'), 'FAILED'],
    LOST: [t('Lost'), 'FAILED'],
  }
  const [word, state] = words[node.state ?? ''] ?? [node.state ?? '', '']
  return (
    <span className="state" data-state={state}>
      {word}
    </span>
  )
}

export function Nodes() {
  const { data, error: nodesError } = useQuery(nodesQuery)
  const { data: use, error: useError } = useQuery(nodeUseQuery)
  const error = nodesError ?? useError
  const [closing, setClosing] = useState<ClusterNode | null>(null)
  const [search, change] = useSearch()
  const vc = search.get('vc') ?? ''
  const text = search.get('q') ?? ''
  const order = search.get('order') ?? ''
  const lines = useMemo(() => {
    const all = (data?.data ?? []).map((node) => nodeLine(node, use?.[node.name ?? '']))
    return nodesShown(all, { text, order, vc })
  }, [data, use, vc, text, order])
  const isAdmin = sessionGet()?.admin ?? false
  if (!data || (vc && !use)) return error ? <ErrorNote error={error} /> : <Loading /> // which nodes are of a virtual cluster, their use says
  const isSampled = data.data.some((node) => node.use)
  const { by, isDown } = nodeOrderOf(order)
  const sorted = (title: string, column: NodeOrder) => ({
    sort: title,
    direction: by !== column ? undefined : isDown ? ('descending' as const) : ('ascending' as const),
    onSort: () => change({ order: by === column && !isDown ? `-${column}` : column === 'name' ? null : column }),
  })
  return (
    <div className="stack">
      {error && <ErrorNote error={error} />}
      <div className="row row-foot" role="search">
        <TextField label={t('Name or address')} type="search" value={text} onChange={(event) => change({ q: event.target.value })} />
        <span className="quiet" role="status">
          {t('{n} node|{n} nodes', { n: lines.length })}
        </span>
      </div>
      {!lines.length ? (
        <div className="card">
          <Empty title={text ? t('No node has this in its name or address') : vc ? t('No node has jobs of {vc}, or is its own', { vc }) : t('There are no nodes yet')}>
            {text && <OnceButton onClick={() => change({ q: null })}>{t('Clear filters')}</OnceButton>}
          </Empty>
        </div>
      ) : (
        <TableCard
          label={t('Nodes')}
          className="nodes"
          heads={[
            sorted(t('Node'), 'name'),
            sorted(t('State'), 'state'),
            sorted(t('GPUs'), 'gpu'),
            sorted(t('Used now'), 'busy'),
            sorted(t('CPUs'), 'cpu'),
            ...(isSampled ? [sorted(t('CPU load'), 'load')] : []),
            sorted(t('Memory'), 'memory'),
            ...(isSampled ? [sorted(t('RAM in use'), 'taken'), sorted(t('Disk, read / written'), 'disk'), sorted(t('Network, in / out'), 'network')] : []),
            sorted(t('Jobs'), 'jobs'),
            sorted(t('Remarks'), 'remarks'),
            ...(isAdmin ? [{ hidden: t('Actions') }] : []),
          ]}
        >
          {lines.map((line) => (
            <NodeRow key={line.node.name} line={line} isSampled={isSampled} address={nodeAddress(search, line.node)}>
              {isAdmin && (
                <td>
                  <NodeActions node={line.node} onClose={() => setClosing(line.node)} />
                </td>
              )}
            </NodeRow>
          ))}
        </TableCard>
      )}
      {closing && <CloseDialog node={closing} onClose={() => setClosing(null)} />}
    </div>
  )
}

/** Where the use of a node is shown, above the same list; null: the list alone. */
export function nodeAddress(search: URLSearchParams, node: ClusterNode | null) {
  const next = new URLSearchParams(search)
  if (node) next.set('node', node.name ?? '')
  else next.delete('node')
  return `/cluster?${queryText(next)}`
}

const rate = (value: number | undefined) => (value === undefined ? '–' : `${bytes(value)}/s`)
const rates = (one: number | undefined, other: number | undefined) => (one === undefined && other === undefined ? <span className="quiet">–</span> : `${rate(one)} / ${rate(other)}`)

function NodeRow({ line, isSampled, address, children }: { line: NodeLine; isSampled: boolean; address: string; children: ReactNode }) {
  const { node, gpuUsed, busy, jobs } = line
  const load = loadOf(node)
  return (
    <tr>
      <th scope="row" className="nowrap">
        <Link href={address}>{node.name}</Link>
        <div className="small quiet">{[node.address, node.engine].filter(Boolean).join(' · ')}</div>
      </th>
      <td>
        <NodeState node={node} />
      </td>
      <td className="node-gpus">{node.gpu ? <Meter label={node.gpuType ?? t('GPUs')} used={gpuUsed} total={node.gpu} /> : <span className="quiet">–</span>}</td>
      <td>{busy === null ? <span className="quiet">–</span> : `${busy} %`}</td>
      <td>{node.cpu}</td>
      {isSampled && <td>{load === null ? <span className="quiet">–</span> : `${load} %`}</td>}
      <td className="nowrap">{mebibytes(node.memoryMB ?? 0)}</td>
      {isSampled && (
        <>
          <td className="nowrap">{node.use?.memory === undefined ? <span className="quiet">–</span> : bytes(node.use.memory)}</td>
          <td className="nowrap">{rates(node.use?.read, node.use?.written)}</td>
          <td className="nowrap">{rates(node.use?.received, node.use?.sent)}</td>
        </>
      )}
      <td>
        {jobs.slice(0, 6).map(({ name, taskCount }) => (
          <div key={name} className="line">
            <Link href={`/jobs/${name}`}>{name}</Link> {taskCount > 1 && <span className="quiet small">{t('{n} task|{n} tasks', { n: taskCount })}</span>}
          </div>
        ))}
        {jobs.length > 6 && <div className="quiet small">{t('and {n} more', { n: jobs.length - 6 })}</div>}
      </td>
      <td className="anywhere small">
        <Remarks node={node} />
      </td>
      {children}
    </tr>
  )
}


/** Why it is not used as others are. */
export function Remarks({ node }: { node: ClusterNode }) {
  return (
    <>
      {node.cordonedBy && (
        <div>
          {t('Cordoned by {user}', { user: node.cordonedBy })} <Ago ms={node.cordonedTime} />
          {node.cordonReason && (
            <>
              : <span lang="">{node.cordonReason}</span>
            </>
          )}
        </div>
      )}
      <Said>{node.reason}</Said>
      {(node.blame ?? 0) >= 0.5 && <div>{t('{n} failures count against it', { n: Math.round(node.blame ?? 0) })}</div>}
      {node.avoidedUntil && (
        <div>
          {t('Taken last until')} {new Date(node.avoidedUntil).toLocaleTimeString()}
        </div>
      )}
    </>
  )
}

/** For administrators: what is asked for is undone by the same buttons, or at once. */
export function NodeActions({ node, onClose }: { node: ClusterNode; onClose: () => void }) {
  const toast = useToast()
  const undo = useUndo()
  const queries = useQueryClient()
  const name = node.name ?? ''
  const fresh = () => queries.invalidateQueries({ queryKey: ['nodes'] })
  const run = (action: Promise<unknown>, done: () => void) =>
    void action.then(done, (failure: unknown) => toast(failure instanceof Error ? failure.message : String(failure), 'error')).finally(() => void fresh())
  const open = () =>
    run(nodeUncordon(name), () => undo(t('{node} is used again.', { node: name }), () => nodeCordon(name, node.cordonReason ?? '').finally(() => void fresh())))
  return (
    <div className="row node-actions">
      <Button small aria-label={t('Cordon or drain {node}', { node: name })} onClick={onClose}>
        {t('Cordon …')}
      </Button>
      {node.cordonedBy && (
        <Button small aria-label={t('Uncordon {node}', { node: name })} onClick={open}>
          {t('Uncordon')}
        </Button>
      )}
      {(!!node.blame || !!node.refusals || !!node.avoidedUntil) && (
        <Button small aria-label={t('Pardon {node}', { node: name })} onClick={() => run(nodePardon(name), () => toast(t('The failures of {node} are forgotten.', { node: name })))}>
          {t('Pardon')}
        </Button>
      )}
    </div>
  )
}

const NAMED_MAX = 12

/** Has nothing started there any more; and, when one asks for it, ends what runs, which stands in the dialog. */
export function CloseDialog({ node, onClose }: { node: ClusterNode; onClose: () => void }) {
  const name = node.name ?? ''
  const isClosed = !!node.cordonedBy
  const { data: tasks, error } = useQuery(nodeTasksQuery(name))
  const queries = useQueryClient()
  const toast = useToast()
  const undo = useUndo()
  const [isDrain, setDrain] = useState(isClosed)
  const [reason, setReason] = useState(node.cordonReason ?? '') // who drains what is cordoned need not write it again
  const fresh = () => queries.invalidateQueries({ queryKey: ['nodes'] })
  const confirm = async () => {
    await (isDrain ? nodeDrain(name, reason.trim()) : nodeCordon(name, reason.trim()))
    await fresh()
    const text = isDrain ? t('{node} is being drained.', { node: name }) : t('{node} is cordoned.', { node: name })
    if (isClosed) toast(text)
    else undo(text, () => nodeUncordon(name).finally(() => void fresh()))
  }
  return (
    <Confirm title={t('Cordon {node}?', { node: name })} action={isDrain ? t('Drain') : t('Cordon')} danger={isDrain} onClose={onClose} onConfirm={confirm}>
      <p>{t('No task is started on it until somebody uncordons it. Jobs that wait are told who cordoned it, and why.')}</p>
      <TextField label={t('Reason, for people')} maxLength={500} value={reason} onChange={(event) => setReason(event.target.value)} />
      <Check checked={isDrain} onChange={(event) => setDrain(event.target.checked)}>
        {t('Drain: end what runs there')}
      </Check>
      {error !== null && <ErrorNote error={error} />}
      {!tasks ? (
        error === null && <Loading />
      ) : !tasks.length ? (
        <p className="quiet">{t('Nothing runs there.')}</p>
      ) : (
        <div className="stack-tight">
          <p>
            {isDrain
              ? t('{n} task is ended as by a preemption, and starts elsewhere; a gang starts anew as a whole:|{n} tasks are ended as by a preemption, and start elsewhere; a gang starts anew as a whole:', { n: tasks.length })
              : t('{n} task goes on until it ends:|{n} tasks go on until they end:', { n: tasks.length })}
          </p>
          <ul className="mono small stack-tight" aria-label={t('Tasks on {node}', { node: name })}>
            {tasks.slice(0, NAMED_MAX).map((task) => (
              <li key={task} className="anywhere">
                {task}
              </li>
            ))}
            {tasks.length > NAMED_MAX && <li>{t('and {n} more', { n: tasks.length - NAMED_MAX })}</li>}
          </ul>
        </div>
      )}
      {isDrain && <p className="quiet">{t('To uncordon the node later does not bring back what was ended.')}</p>}
    </Confirm>
  )
}
