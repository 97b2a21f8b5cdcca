// Is everything that the platform stands on healthy? The parts of the server, and what each node has of it.
import { useQuery } from '@tanstack/react-query'
import { enc, type ClusterNode } from '../../api/client'
import { nodesQuery, partsQuery } from '../../api/queries'
import { t } from '../../i18n/i18n'
import type { Part } from '../../lib/parts'
import { Link } from '../../router'
import { ErrorNote, Loading, Said, TableCard } from '../../ui/ui'
import { later } from '../../ui/later'
import { NodeState, Remarks } from '../cluster/nodes'

const ServerLog = later(() => import('./server-log'))

function partName(name: string): string {
  switch (name) {
    case 'store':
      return t('Database')
    case 'core':
      return t('Scheduler')
    case 'engine':
      return t('Engines that run tasks')
    case 'clock':
      return t('Clock')
    case 'network':
      return t('Network between tasks')
    case 'running':
      return t('Requests to the server')
    default:
      return name.startsWith('engine ') ? t('Engine {name}', { name: name.slice('engine '.length) }) : name
  }
}

function Health({ state }: { state: Part['state'] }) {
  const words = { ok: [t('Healthy'), 'SUCCEEDED'], degraded: [t('Degraded'), 'STOPPING'], failed: [t('Failed'), 'FAILED'] } as const
  return (
    <span className="state" data-state={words[state][1]}>
      {words[state][0]}
    </span>
  )
}

function Gpus({ node }: { node: ClusterNode }) {
  const sampled = node.gpus ?? []
  const lost = sampled.filter((gpu) => gpu.isLost).length
  const errors = sampled.reduce((sum, gpu) => sum + (gpu.eccErrors ?? 0), 0)
  if (!node.gpu) return <>–</>
  return (
    <>
      {t('{n} GPU|{n} GPUs', { n: node.gpu })}
      <div className="small quiet">
        {[!sampled.length && t('not measured'), lost > 0 && t('{n} lost to the driver', { n: lost }), errors > 0 && t('{n} memory errors', { n: errors })].filter(Boolean).join(', ')}
      </div>
    </>
  )
}

export default function Services() {
  const { data: parts, error: partsError } = useQuery(partsQuery)
  const { data: nodes, error: nodesError } = useQuery(nodesQuery)
  return (
    <div className="stack in-order">
      <h2>{t('The server')}</h2>
      {partsError && <ErrorNote error={partsError} />}
      {!parts && !partsError && <Loading />}
      {parts && (
        <TableCard label={t('The server')} heads={[t('Part'), t('State'), t('Remarks')]}>
          {parts.map((part) => (
            <tr key={part.name}>
              <th scope="row">{partName(part.name)}</th>
              <td>
                <Health state={part.state} />
              </td>
              <td className="anywhere">
                <Said>{part.text}</Said>
              </td>
            </tr>
          ))}
        </TableCard>
      )}
      <h2>{t('On each node')}</h2>
      {nodesError && <ErrorNote error={nodesError} />}
      {!nodes && !nodesError && <Loading />}
      {nodes && (
        <TableCard label={t('On each node')} heads={[t('Node'), t('Engine'), t('State'), t('GPUs'), { number: t('Refusals') }, { number: t('Failures counted') }, t('Remarks')]}>
          {nodes.data.map((node) => (
            <tr key={node.name}>
              <th scope="row" className="nowrap">
                <Link href={`/cluster?tab=nodes&node=${enc(node.name ?? '')}`}>{node.name}</Link>
                <div className="small quiet">{node.address}</div>
              </th>
              <td lang="en">{node.engine}</td>
              <td>
                <NodeState node={node} />
              </td>
              <td>
                <Gpus node={node} />
              </td>
              <td className="number">{node.refusals}</td>
              <td className="number">{(node.blame ?? 0).toFixed(1)}</td>
              <td className="anywhere small">
                <Remarks node={node} />
              </td>
            </tr>
          ))}
        </TableCard>
      )}
      <ServerLog />
    </div>
  )
}
