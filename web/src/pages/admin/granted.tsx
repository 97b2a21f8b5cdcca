// Virtual clusters as administrators see them: what each owns and uses, who may use it, and whether it is open.
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { clusterClose, clusterOpen } from '../../api/actions'
import { enc, type VirtualCluster } from '../../api/client'
import { clustersQuery, groupsQuery, jobPageQuery, usersQuery } from '../../api/queries'
import { t } from '../../i18n/i18n'
import { Link } from '../../router'
import { Closed, isClosed } from '../../ui/closed'
import { Button, Confirm, ErrorNote, Loading, TableCard, TextField, useToast, useUndo } from '../../ui/ui'

const countQuery = (vc: string, state: string) => jobPageQuery(`vc=${enc(vc)}&state=${state}`, 0, 1)

function Count({ vc, state, title }: { vc: string; state: string; title: string }) {
  const { data } = useQuery(countQuery(vc, state))
  return (
    <Link href={`/jobs?vc=${enc(vc)}&state=${state}`} aria-label={`${title}: ${data?.totalCount ?? '–'}`}>
      {data?.totalCount ?? '–'}
    </Link>
  )
}

/** Says what goes on and what is stopped by it. */
function CloseDialog({ name, cluster, onClose }: { name: string; cluster: VirtualCluster; onClose: () => void }) {
  const running = useQuery(countQuery(name, 'RUNNING'))
  const waiting = useQuery(countQuery(name, 'WAITING'))
  const queries = useQueryClient()
  const toast = useToast()
  const undo = useUndo()
  const [reason, setReason] = useState(cluster.closedReason ?? '')
  const error = running.error ?? waiting.error
  const fresh = () => queries.invalidateQueries({ queryKey: ['virtual-clusters'] })
  const confirm = async () => {
    await clusterClose(name, reason.trim())
    await fresh()
    if (isClosed(cluster)) toast(t('{name} is closed.', { name }))
    else undo(t('{name} is closed.', { name }), () => clusterOpen(name).finally(() => void fresh()))
  }
  return (
    <Confirm title={t('Close the virtual cluster {name}?', { name })} action={t('Close it')} danger onClose={onClose} onConfirm={confirm}>
      <p>{t('Nothing of it starts until an administrator opens it. Jobs may still be submitted: they wait, and are told who closed it, and why.')}</p>
      <TextField label={t('Reason, for people')} maxLength={500} value={reason} onChange={(event) => setReason(event.target.value)} />
      {error && <ErrorNote error={error} />}
      {running.data && waiting.data ? (
        <ul className="stack-tight">
          <li>{t('{n} job that runs goes on to its end.|{n} jobs that run go on to their ends.', { n: running.data.totalCount ?? 0 })}</li>
          <li>{t('{n} job that waits is not started.|{n} jobs that wait are not started.', { n: waiting.data.totalCount ?? 0 })}</li>
        </ul>
      ) : (
        !error && <Loading />
      )}
    </Confirm>
  )
}

function Actions({ name, cluster, onClose }: { name: string; cluster: VirtualCluster; onClose: () => void }) {
  const toast = useToast()
  const undo = useUndo()
  const queries = useQueryClient()
  const fresh = () => queries.invalidateQueries({ queryKey: ['virtual-clusters'] })
  const open = () =>
    void clusterOpen(name)
      .then(
        () => undo(t('{name} is open again.', { name }), () => clusterClose(name, cluster.closedReason ?? '').finally(() => void fresh())),
        (failure: unknown) => toast(failure instanceof Error ? failure.message : String(failure), 'error'),
      )
      .finally(() => void fresh())
  return (
    <div className="row">
      <Button small aria-label={t('Close {name}', { name })} onClick={onClose}>
        {t('Close …')}
      </Button>
      {isClosed(cluster) && (
        <Button small aria-label={t('Open {name}', { name })} onClick={open}>
          {t('Open')}
        </Button>
      )}
    </div>
  )
}

export default function Granted() {
  const { data: clusters, error: clustersError } = useQuery(clustersQuery)
  const { data: groups, error: groupsError } = useQuery(groupsQuery)
  const { data: users, error: usersError } = useQuery(usersQuery)
  const [closing, setClosing] = useState('')
  const error = clustersError ?? groupsError ?? usersError
  if (!clusters || !groups || !users) return error ? <ErrorNote error={error} /> : <Loading />
  const asked = clusters[closing]
  return (
    <div className="stack">
      {error && <ErrorNote error={error} />}
      <p className="quiet">{t('What a virtual cluster owns stands in the operator’s file of cells. Who may use it is granted to users and groups; “default” is everybody’s.')}</p>
      <TableCard
        label={t('Virtual clusters')}
        heads={[t('Virtual cluster'), t('State'), { number: t('GPUs in use') }, { number: t('Guaranteed') }, { number: t('Share of all GPUs') }, { number: t('Running') }, { number: t('Waiting') }, t('Groups'), t('Users'), { hidden: t('Actions') }]}
      >
        {Object.entries(clusters).map(([name, cluster]) => (
          <tr key={name}>
            <th scope="row">
              <Link href={`/jobs?vc=${enc(name)}`}>{name}</Link>
            </th>
            <td className="anywhere small">
              <span className="state" data-state={isClosed(cluster) ? 'STOPPED' : 'SUCCEEDED'}>
                {isClosed(cluster) ? t('Closed') : t('Open')}
              </span>
              <div>
                <Closed cluster={cluster} />
              </div>
            </td>
            <td className="number">{cluster.resourcesUsed?.gpu ?? 0}</td>
            <td className="number">{cluster.resourcesGuaranteed?.gpu ?? cluster.resourcesTotal?.gpu ?? 0}</td>
            <td className="number">{`${(cluster.capacity ?? 0).toFixed(0)} %`}</td>
            <td className="number">
              <Count vc={name} state="RUNNING" title={t('Running jobs of {name}', { name })} />
            </td>
            <td className="number">
              <Count vc={name} state="WAITING" title={t('Waiting jobs of {name}', { name })} />
            </td>
            <td>{groups.flatMap((group) => (group.extension?.acls?.virtualClusters?.includes(name) ? [group.groupname] : [])).join(', ')}</td>
            <td>{name === 'default' ? t('everybody') : users.flatMap((user) => (user.virtualCluster?.includes(name) ? [user.username] : [])).join(', ')}</td>
            <td>
              <Actions name={name} cluster={cluster} onClose={() => setClosing(name)} />
            </td>
          </tr>
        ))}
      </TableCard>
      {asked && <CloseDialog name={closing} cluster={asked} onClose={() => setClosing('')} />}
    </div>
  )
}
