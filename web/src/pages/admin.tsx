// Users, groups and nodes, for administrators; and the groups of those who only say who is in them.
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { useState, type FormEvent } from 'react'
import { call, enc, sessionGet, type ClusterNode, type Group } from '../api/client'
import { clustersQuery, groupsQuery, nodesQuery, userQuery, usersQuery } from '../api/queries'
import { t } from '../i18n/i18n'
import { useSearch } from '../router'
import { later } from '../ui/later'
import { Button, Check, Cli, Confirm, Dialog, Empty, ErrorNote, Loading, TableCard, Tabs, TextField, usePageTitle } from '../ui/ui'
import { Choices, namesOf } from './admin/choices'
import { MembersDialog } from './admin/members'
import { QuotaDialog } from './admin/quota'
import { Users } from './admin/users'
import { CloseDialog, NodeActions, NodeState, Remarks } from './cluster/nodes'

const Abnormal = later(() => import('./admin/abnormal'))
const Audit = later(() => import('./admin/audit'))
const ExitCodes = later(() => import('./admin/exit-codes'))
const Granted = later(() => import('./admin/granted'))
const Settings = later(() => import('./admin/settings'))

function GroupDialog({ group, onClose }: { group: Group | null; onClose: () => void }) {
  const { data: clusters } = useQuery(clustersQuery)
  const queries = useQueryClient()
  const [error, setError] = useState<unknown>(null)
  const acls = group?.extension?.acls
  const granted = acls?.virtualClusters ?? [] // stand there also before the others are read, and when the cluster has them no more
  const submit = async (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault()
    const form = new FormData(event.currentTarget)
    const fields = {
      groupname: group?.groupname ?? String(form.get('groupname')),
      description: String(form.get('description')),
      externalName: String(form.get('externalName')),
      extension: { ...group?.extension, acls: { ...acls, admin: form.has('admin'), virtualClusters: namesOf(form, 'vc') } },
    }
    try {
      if (group) await call('PUT', '/api/v2/groups', { json: { patch: true, data: fields } })
      else await call('POST', '/api/v2/groups', { json: fields })
      await queries.invalidateQueries({ queryKey: ['groups'] })
      onClose()
    } catch (failure) {
      setError(failure)
    }
  }
  return (
    <Dialog title={group ? t('Change {user}', { user: group.groupname ?? '' }) : t('New group')} onClose={onClose}>
      <form className="stack" onSubmit={(event) => void submit(event)}>
        {error !== null && <ErrorNote error={error} />}
        {!group && <TextField label={t('Name')} name="groupname" required pattern="[A-Za-z0-9_\-]{1,64}" hint={t('Letters, digits, _ -')} />}
        <TextField label={t('Description')} name="description" defaultValue={group?.description} />
        <TextField label={t('Name elsewhere')} name="externalName" defaultValue={group?.externalName} />
        <Choices label={t('Virtual clusters granted')} name="vc" all={[...new Set([...Object.keys(clusters ?? {}), ...granted])]} chosen={granted} />
        <Check name="admin" defaultChecked={acls?.admin ?? false}>
          {t('Its members are administrators')}
        </Check>
        <div className="dialog-foot">
          <Button onClick={onClose}>{t('Cancel')}</Button>
          <Button type="submit" kind="main">
            {group ? t('Change') : t('Make the group')}
          </Button>
        </div>
      </form>
    </Dialog>
  )
}

type GroupAsked = { kind: 'new' } | { kind: 'change' | 'remove' | 'members' | 'quota'; group: Group } | null

function Groups() {
  const { data, error } = useQuery(groupsQuery)
  const { data: users } = useQuery(usersQuery)
  const [asked, ask] = useState<GroupAsked>(null)
  const queries = useQueryClient()
  if (error) return <ErrorNote error={error} />
  if (!data) return <Loading />
  const members = (group: Group) => (users ?? []).filter((user) => user.grouplist?.includes(group.groupname ?? ''))
  return (
    <div className="stack">
      <div className="row">
        <span className="quiet">{t('{n} group|{n} groups', { n: data.length })}</span>
        <div className="push">
          <Button kind="main" onClick={() => ask({ kind: 'new' })}>
            {t('New group')}
          </Button>
        </div>
      </div>
      <TableCard label={t('Groups')} heads={[t('Group'), t('Description'), t('Virtual clusters'), t('Members'), { hidden: t('Actions') }]}>
        {data.map((group) => (
          <tr key={group.groupname}>
            <th scope="row">
              {group.groupname} {group.extension?.acls?.admin && <span className="tag">{t('administrators')}</span>}
            </th>
            <td lang="">{group.description}</td>
            <td>{group.extension?.acls?.virtualClusters?.join(', ')}</td>
            <td>
              {members(group)
                .map((user) => user.username)
                .join(', ')}
            </td>
            <td className="nowrap">
              <Button small aria-label={t('Change {user}', { user: group.groupname ?? '' })} onClick={() => ask({ kind: 'change', group })}>
                {t('Change')}
              </Button>{' '}
              <Button small aria-label={t('Members of {name}', { name: group.groupname ?? '' })} onClick={() => ask({ kind: 'members', group })}>
                {t('Members')}
              </Button>{' '}
              <Button small aria-label={t('Quotas of {name}', { name: group.groupname ?? '' })} onClick={() => ask({ kind: 'quota', group })}>
                {t('Quotas')}
              </Button>{' '}
              <Button small kind="danger" aria-label={t('Remove {name}', { name: group.groupname ?? '' })} onClick={() => ask({ kind: 'remove', group })}>
                {t('Remove')}
              </Button>
            </td>
          </tr>
        ))}
      </TableCard>
      {asked?.kind === 'members' && <MembersDialog group={asked.group.groupname ?? ''} canMakeAdmins onClose={() => ask(null)} />}
      {asked?.kind === 'quota' && <QuotaDialog of="groups" name={asked.group.groupname ?? ''} canChange onClose={() => ask(null)} />}
      {asked?.kind === 'new' && <GroupDialog group={null} onClose={() => ask(null)} />}
      {asked?.kind === 'change' && <GroupDialog group={asked.group} onClose={() => ask(null)} />}
      {asked?.kind === 'remove' && (
        <Confirm
          title={t('Remove the group {name}?', { name: asked.group.groupname ?? '' })}
          action={t('Remove')}
          danger
          onClose={() => ask(null)}
          onConfirm={async () => {
            await call('DELETE', `/api/v2/groups/${enc(asked.group.groupname ?? '')}`)
            await queries.invalidateQueries({ queryKey: ['groups'] })
          }}
        >
          <p>{t('{n} user loses what it grants.|{n} users lose what it grants.', { n: members(asked.group).length })}</p>
        </Confirm>
      )}
    </div>
  )
}

function AdminNodes() {
  const { data, error } = useQuery(nodesQuery)
  const [closing, setClosing] = useState<ClusterNode | null>(null)
  if (error) return <ErrorNote error={error} />
  if (!data) return <Loading />
  return (
    <>
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
  if (error) return <ErrorNote error={error} />
  if (!me || !groups) return <Loading />
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
  const commands: Record<string, string> = { users: 'skep user list', groups: 'skep group list', clusters: 'skep vc; skep group list', nodes: 'skep drain --reason WHY NODE', abnormal: 'skep list --state WAITING,RUNNING --order retries,DESC', exits: 'skep exits', audit: 'skep audit', settings: 'skep admin settings' }
  return (
    <>
      <Tabs
        name="tab"
        label={t('Views of the administration')}
        tabs={[
          { id: 'users', title: t('Users') },
          { id: 'groups', title: t('Groups') },
          { id: 'clusters', title: t('Virtual clusters') },
          { id: 'nodes', title: t('Nodes') },
          { id: 'abnormal', title: t('Abnormal jobs') },
          { id: 'exits', title: t('Exit codes') },
          { id: 'audit', title: t('Audit') },
          { id: 'settings', title: t('Settings') },
        ]}
      />
      {tab === 'users' && <Users />}
      {tab === 'groups' && <Groups />}
      {tab === 'nodes' && <AdminNodes />}
      {tab === 'abnormal' && <Abnormal />}
      {tab === 'clusters' && <Granted />}
      {tab === 'exits' && <ExitCodes />}
      {tab === 'audit' && <Audit />}
      {tab === 'settings' && <Settings />}
      <Cli command={commands[tab] ?? 'skep user list'} />
    </>
  )
}
