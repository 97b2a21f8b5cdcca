// Virtual clusters as administrators see them: what each owns and uses, and who may use it.
import { useQuery } from '@tanstack/react-query'
import { clustersQuery, groupsQuery, usersQuery } from '../../api/queries'
import { t } from '../../i18n/i18n'
import { Link } from '../../router'
import { ErrorNote, Loading, TableCard } from '../../ui/ui'

export default function Granted() {
  const { data: clusters, error: clustersError } = useQuery(clustersQuery)
  const { data: groups, error: groupsError } = useQuery(groupsQuery)
  const { data: users, error: usersError } = useQuery(usersQuery)
  const error = clustersError ?? groupsError ?? usersError
  if (error) return <ErrorNote error={error} />
  if (!clusters || !groups || !users) return <Loading />
  return (
    <div className="stack">
      <p className="quiet">{t('What a virtual cluster owns stands in the operator’s file of cells. Who may use it is granted to users and groups; “default” is everybody’s.')}</p>
      <TableCard label={t('Virtual clusters')} heads={[t('Virtual cluster'), { number: t('GPUs in use') }, { number: t('Guaranteed') }, { number: t('Share of all GPUs') }, t('Groups'), t('Users')]}>
        {Object.entries(clusters).map(([name, cluster]) => (
          <tr key={name}>
            <th scope="row">
              <Link href={`/jobs?vc=${encodeURIComponent(name)}`}>{name}</Link>
            </th>
            <td className="number">{cluster.resourcesUsed?.gpu ?? 0}</td>
            <td className="number">{cluster.resourcesGuaranteed?.gpu ?? cluster.resourcesTotal?.gpu ?? 0}</td>
            <td className="number">{`${(cluster.capacity ?? 0).toFixed(0)} %`}</td>
            <td>{groups.flatMap((group) => (group.extension?.acls?.virtualClusters?.includes(name) ? [group.groupname] : [])).join(', ')}</td>
            <td>{name === 'default' ? t('everybody') : users.flatMap((user) => (user.virtualCluster?.includes(name) ? [user.username] : [])).join(', ')}</td>
          </tr>
        ))}
      </TableCard>
    </div>
  )
}
