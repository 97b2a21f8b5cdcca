// Users, groups and nodes, for administrators; and the groups of those who only say who is in them.
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { sessionGet, type ClusterNode } from '../api/client'
import { groupsQuery, nodesQuery, userQuery } from '../api/queries'
import { t } from '../i18n/i18n'
import { useSearch } from '../router'
import { later } from '../ui/later'
import { Button, Cli, Empty, ErrorNote, Loading, TableCard, Tabs, usePageTitle } from '../ui/ui'
import { Groups } from './admin/groups'
import { MembersDialog } from './admin/members'
import { QuotaDialog } from './admin/quota'
import { Users } from './admin/users'
import { CloseDialog, NodeActions, NodeState, Remarks } from './cluster/nodes'

const Abnormal = later(() => import('./admin/abnormal'))
const Audit = later(() => import('./admin/audit'))
const ExitCodes = later(() => import('./admin/exit-codes'))
const Granted = later(() => import('./admin/granted'))
const Requests = later(() => import('./admin/requests'))
const Services = later(() => import('./admin/services'))
const Storages = later(() => import('./admin/storages'))
const Settings = later(() => import('./admin/settings'))

function AdminNodes() {
  const { data, error } = useQuery(nodesQuery)
  const [closing, setClosing] = useState<ClusterNode | null>(null)
  if (!data) return error ? <ErrorNote error={error} /> : <Loading />
  return (
    <>
      {error && <ErrorNote error={error} />}
      <TableCard label={t('Nodes')} heads={[t('Node'), t('State'), { number: t('Failures counted') }, { number: t('Refusals') }, t('Remarks'), { hidden: t('Actions') }]}>
        {data.data.map((node) => (
          <tr key={node.name}>
            <th scope="row">{node.name}</th>
            <td>
              <NodeState node={node} />
            </td>
            <td className="number">{(node.blame ?? 0).toFixed(1)}</td>
            <td className="number">{node.refusals}</td>
            <td className="anywhere small">
              <Remarks node={node} />
            </td>
            <td>
              <NodeActions node={node} onClose={() => setClosing(node)} />
            </td>
          </tr>
        ))}
      </TableCard>
      {closing && <CloseDialog node={closing} onClose={() => setClosing(null)} />}
    </>
  )
}

/** For who is no administrator of the platform, but says who is in some groups. */
function MyGroups() {
  const { data: me, error: meError } = useQuery(userQuery(sessionGet()?.user ?? ''))
  const { data: groups, error: groupsError } = useQuery(groupsQuery)
  const error = meError ?? groupsError
  const [asked, ask] = useState<{ kind: 'members' | 'quota'; name: string } | null>(null)
  if (!me || !groups) return error ? <ErrorNote error={error} /> : <Loading />
  if (!me.adminOfGroups?.length)
    return (
      <div className="card">
        <Empty title={t('This page is for administrators')}>
          <p>{t('An administrator of the platform can make you the administrator of a group.')}</p>
        </Empty>
      </div>
    )
  return (
    <div className="stack">
      {error && <ErrorNote error={error} />}
      <p className="quiet">{t('You say who is in these groups. What a group grants, and its quotas, are set by administrators of the platform.')}</p>
      <TableCard label={t('Groups')} heads={[t('Group'), t('Description'), t('Virtual clusters'), { hidden: t('Actions') }]}>
        {me.adminOfGroups.map((name) => {
          const group = groups.find((one) => one.groupname === name)
          return (
            <tr key={name}>
              <th scope="row">{name}</th>
              <td lang="">{group?.description}</td>
              <td>{group?.extension?.acls?.virtualClusters?.join(', ')}</td>
              <td className="nowrap">
                <Button small aria-label={t('Members of {name}', { name })} onClick={() => ask({ kind: 'members', name })}>
                  {t('Members')}
                </Button>{' '}
                <Button small aria-label={t('Quotas of {name}', { name })} onClick={() => ask({ kind: 'quota', name })}>
                  {t('Quotas')}
                </Button>
              </td>
            </tr>
          )
        })}
      </TableCard>
      {asked?.kind === 'members' && <MembersDialog group={asked.name} onClose={() => ask(null)} />}
      {asked?.kind === 'quota' && <QuotaDialog of="groups" name={asked.name} onClose={() => ask(null)} />}
    </div>
  )
}

export default function Admin() {
  usePageTitle(t('Administration'))
  return (
    <div className="page">
      <h1>{t('Administration')}</h1>
      {sessionGet()?.admin ? (
        <AdminTabs />
      ) : (
        <>
          <MyGroups />
          <Cli command="skep group join GROUP USER" />
        </>
      )}
    </div>
  )
}

function AdminTabs() {
  const [search] = useSearch()
  const tab = search.get('tab') ?? 'users'
  const commands: Record<string, string> = { users: 'skep user list', groups: 'skep group list', clusters: 'skep vc; skep group list', requests: 'skep request list --status open', storages: 'skep admin storages', nodes: 'skep drain --reason WHY NODE', services: 'curl "$SKEP_SERVER/readyz?verbose"; skep nodes -o wide; skep admin log -f', abnormal: 'skep list --state WAITING,RUNNING --order retries,DESC', exits: 'skep exits', audit: 'skep audit', settings: 'skep admin settings' }
  return (
    <>
      <Tabs
        name="tab"
        label={t('Views of the administration')}
        tabs={[
          { id: 'users', title: t('Users') },
          { id: 'groups', title: t('Groups') },
          { id: 'clusters', title: t('Virtual clusters') },
          { id: 'requests', title: t('Requests') },
          { id: 'storages', title: t('Storages') },
          { id: 'nodes', title: t('Nodes') },
          { id: 'services', title: t('Services') },
          { id: 'abnormal', title: t('Abnormal jobs') },
          { id: 'exits', title: t('Exit codes') },
          { id: 'audit', title: t('Audit') },
          { id: 'settings', title: t('Settings') },
        ]}
      />
      {tab === 'users' && <Users />}
      {tab === 'groups' && <Groups />}
      {tab === 'requests' && <Requests />}
      {tab === 'storages' && <Storages />}
      {tab === 'nodes' && <AdminNodes />}
      {tab === 'services' && <Services />}
      {tab === 'abnormal' && <Abnormal />}
      {tab === 'clusters' && <Granted />}
      {tab === 'exits' && <ExitCodes />}
      {tab === 'audit' && <Audit />}
      {tab === 'settings' && <Settings />}
      <Cli command={commands[tab] ?? 'skep user list'} />
    </>
  )
}
