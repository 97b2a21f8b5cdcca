// Users, groups and nodes, for administrators; and the groups of those who only say who is in them.
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { lazy, Suspense, useRef, useState, type FormEvent } from 'react'
import { call, enc, sessionGet, type Group, type User } from '../api/client'
import { clustersQuery, groupsQuery, nodesQuery, userQuery, usersQuery } from '../api/queries'
import { t } from '../i18n/i18n'
import { csvOf, csvRead, fileSave } from '../lib/csv'
import { useSearch } from '../router'
import { Button, Check, Cli, Confirm, Dialog, Empty, ErrorNote, Loading, TableCard, Tabs, TextField, usePageTitle, useToast } from '../ui/ui'
import { MembersDialog } from './admin/members'
import { QuotaDialog } from './admin/quota'
import { NodeState } from './cluster'

const Audit = lazy(() => import('./admin/audit'))
const ExitCodes = lazy(() => import('./admin/exit-codes'))
const Granted = lazy(() => import('./admin/granted'))
const Settings = lazy(() => import('./admin/settings'))

const names = (form: FormData, key: string) => form.getAll(key).map(String)

function Choices({ label, name, all, chosen }: { label: string; name: string; all: string[]; chosen: string[] }) {
  return (
    <fieldset className="stack">
      <legend className="label">{label}</legend>
      <div className="row">
        {all.map((one) => (
          <Check key={one} name={name} value={one} defaultChecked={chosen.includes(one)}>
            {one}
          </Check>
        ))}
      </div>
    </fieldset>
  )
}

function passwordNew(): string {
  const letters = 'abcdefghjkmnpqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789'
  return Array.from(crypto.getRandomValues(new Uint32Array(16)), (value) => letters[value % letters.length]).join('')
}

function UserDialog({ user, onClose }: { user: User | null; onClose: () => void }) {
  const { data: groups } = useQuery(groupsQuery)
  const { data: clusters } = useQuery(clustersQuery)
  const queries = useQueryClient()
  const toast = useToast()
  const [error, setError] = useState<unknown>(null)
  const [password, setPassword] = useState(user ? '' : passwordNew())
  const submit = async (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault()
    const form = new FormData(event.currentTarget)
    const username = user?.username ?? String(form.get('username'))
    const fields = {
      username,
      email: String(form.get('email')),
      admin: form.has('admin'),
      ...(password ? { password } : {}),
      ...(form.has('admin') ? {} : { virtualCluster: names(form, 'vc') }),
    }
    try {
      if (user) {
        await call('PUT', '/api/v2/users', { json: { patch: true, data: { ...fields, active: form.has('active') } } })
        await call('PUT', `/api/v2/users/${enc(username)}/grouplist`, { json: { grouplist: names(form, 'group') } })
      } else await call('POST', '/api/v2/users', { json: { ...fields, grouplist: names(form, 'group') } })
      await queries.invalidateQueries({ queryKey: ['users'] })
      toast(user ? t('{user} is changed.', { user: username }) : t('{user} is made.', { user: username }))
      onClose()
    } catch (failure) {
      setError(failure)
    }
  }
  return (
    <Dialog title={user ? t('Change {user}', { user: user.username ?? '' }) : t('New user')} onClose={onClose}>
      <form className="stack" onSubmit={(event) => void submit(event)}>
        {error !== null && <ErrorNote error={error} />}
        {!user && <TextField label={t('User name')} name="username" required pattern="[A-Za-z0-9_.\-]{1,64}" hint={t('Letters, digits, _ . -')} />}
        <TextField label={t('Mail address')} name="email" type="email" defaultValue={user?.email} />
        <TextField
          label={user ? t('New password; empty: as it was') : t('Password')}
          value={password}
          minLength={6}
          required={!user}
          onChange={(event) => setPassword(event.target.value)}
          hint={t('At least 6 characters. Copy it now: it is shown nowhere again.')}
        />
        {groups && <Choices label={t('Groups')} name="group" all={groups.map((group) => group.groupname ?? '')} chosen={user?.grouplist ?? ['default']} />}
        {clusters && <Choices label={t('Virtual clusters granted')} name="vc" all={Object.keys(clusters)} chosen={user?.virtualCluster ?? ['default']} />}
        <Check name="admin" defaultChecked={user?.admin ?? false}>
          {t('Administrator: may use all virtual clusters and see all')}
        </Check>
        {user && (
          <Check name="active" defaultChecked={user.active ?? true}>
            {t('May sign in')}
          </Check>
        )}
        <div className="dialog-foot">
          <Button onClick={onClose}>{t('Cancel')}</Button>
          <Button type="submit" kind="main">
            {user ? t('Change') : t('Make the user')}
          </Button>
        </div>
      </form>
    </Dialog>
  )
}

interface Import {
  line: number
  user: { username: string; password: string; email: string; admin: boolean; virtualCluster: string[] }
  state: string
}

const CSV_HEAD = ['username', 'password', 'email', 'admin', 'virtual cluster']

function importsOf(text: string): Import[] {
  const [head = [], ...rows] = csvRead(text)
  const column = (name: string) => head.findIndex((title) => title.trim().toLowerCase() === name)
  if (column('username') < 0 || column('password') < 0) throw new Error(t('The first line must name the columns: {columns}. The first two must be there.', { columns: CSV_HEAD.join(', ') }))
  const at = (row: string[], name: string) => row[column(name)]?.trim() ?? ''
  return rows.map((row, index) => ({
    line: index + 2,
    user: {
      username: at(row, 'username'),
      password: at(row, 'password'),
      email: at(row, 'email'),
      admin: /^(true|yes|1)$/i.test(at(row, 'admin')),
      virtualCluster: at(row, 'virtual cluster').split(/[,;\s]+/).filter(Boolean),
    },
    state: '',
  }))
}

function ImportDialog({ onClose }: { onClose: () => void }) {
  const [rows, setRows] = useState<Import[]>([])
  const [error, setError] = useState<unknown>(null)
  const [isBusy, setBusy] = useState(false)
  const queries = useQueryClient()
  const file = useRef<HTMLInputElement>(null)
  const read = async (chosen: File | undefined) => {
    setError(null)
    try {
      setRows(chosen ? importsOf(await chosen.text()) : [])
    } catch (failure) {
      setError(failure)
    }
  }
  const run = async () => {
    setBusy(true)
    const next = [...rows]
    for (const [index, row] of next.entries()) {
      if (row.state === 'ok') continue
      const { virtualCluster, ...user } = row.user
      try {
        await call('POST', '/api/v2/users', { json: { ...user, ...(virtualCluster.length ? { virtualCluster } : {}) } })
        next[index] = { ...row, state: 'ok' }
      } catch (failure) {
        next[index] = { ...row, state: failure instanceof Error ? failure.message : String(failure) }
      }
      setRows([...next])
    }
    await queries.invalidateQueries({ queryKey: ['users'] })
    setBusy(false)
  }
  return (
    <Dialog wide title={t('Users from a file')} onClose={onClose}>
      <p className="quiet">{t('A table as CSV with the columns {columns}. What failed can be tried again.', { columns: CSV_HEAD.join(', ') })}</p>
      <div className="row">
        <input ref={file} type="file" accept=".csv" hidden onChange={(event) => void read(event.target.files?.[0])} />
        <Button onClick={() => file.current?.click()}>{t('Open a file …')}</Button>
        <Button onClick={() => fileSave('users.csv', 'text/csv', csvOf([CSV_HEAD, ['alice', passwordNew(), 'alice@example.org', 'false', 'default']]))}>{t('An example')}</Button>
      </div>
      {error !== null && <ErrorNote error={error} />}
      {rows.length > 0 && (
        <div className="scroll-x" tabIndex={0} role="region" aria-label={t('Users of the file')}>
          <table>
            <thead>
              <tr>
                <th scope="col">{t('Line')}</th>
                <th scope="col">{t('User')}</th>
                <th scope="col">{t('Mail address')}</th>
                <th scope="col">{t('Virtual clusters')}</th>
                <th scope="col">{t('Result')}</th>
              </tr>
            </thead>
            <tbody>
              {rows.map((row) => (
                <tr key={row.line}>
                  <td>{row.line}</td>
                  <td>{row.user.username}</td>
                  <td>{row.user.email}</td>
                  <td>{row.user.virtualCluster.join(', ')}</td>
                  <td>{row.state === 'ok' ? `✓ ${t('made')}` : row.state}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      <div className="dialog-foot">
        <Button onClick={onClose}>{t('Close')}</Button>
        <Button kind="main" disabled={isBusy || !rows.some((row) => row.state !== 'ok')} onClick={() => void run()}>
          {t('Make the users')}
        </Button>
      </div>
    </Dialog>
  )
}

type UserAsked = { kind: 'new' } | { kind: 'import' } | { kind: 'change' | 'quota'; user: User } | { kind: 'remove'; users: User[] } | null

function Users() {
  const { data, error } = useQuery(usersQuery)
  const [asked, ask] = useState<UserAsked>(null)
  const [text, setText] = useState('')
  const [selected, setSelected] = useState<Set<string>>(new Set())
  const queries = useQueryClient()
  const toast = useToast()
  if (error) return <ErrorNote error={error} />
  if (!data) return <Loading />
  const shown = data.filter((user) => [user.username, user.email, ...(user.grouplist ?? [])].some((part) => part?.includes(text)))
  const chosen = data.filter((user) => selected.has(user.username ?? ''))
  const remove = async (users: User[]) => {
    for (const user of users) await call('DELETE', `/api/v2/users/${enc(user.username ?? '')}`)
    setSelected(new Set())
    await queries.invalidateQueries({ queryKey: ['users'] })
    toast(t('{n} user is removed.|{n} users are removed.', { n: users.length }))
  }
  return (
    <div className="stack">
      <div className="row">
        <input type="search" className="input" aria-label={t('Name, mail address or group')} placeholder={t('Name, mail address or group')} value={text} onChange={(event) => setText(event.target.value)} />
        <span className="quiet">{t('{n} user|{n} users', { n: shown.length })}</span>
        <div className="row push">
          <Button kind="danger" disabled={!chosen.length || chosen.some((user) => user.admin)} onClick={() => ask({ kind: 'remove', users: chosen })}>
            {t('Remove')}
          </Button>
          <Button onClick={() => ask({ kind: 'import' })}>{t('Users from a file')}</Button>
          <Button kind="main" onClick={() => ask({ kind: 'new' })}>
            {t('New user')}
          </Button>
        </div>
      </div>
      <TableCard label={t('Users')} heads={[{ hidden: t('Selected') }, t('User'), t('Mail address'), t('Groups'), t('Virtual clusters'), t('Rights'), { hidden: t('Actions') }]}>
        {shown.map((user) => {
          const name = user.username ?? ''
          return (
            <tr key={name}>
              <td>
                <input
                  type="checkbox"
                  aria-label={t('Select {name}', { name })}
                  checked={selected.has(name)}
                  onChange={() => {
                    const next = new Set(selected)
                    if (!next.delete(name)) next.add(name)
                    setSelected(next)
                  }}
                />
              </td>
              <th scope="row">{name}</th>
              <td>{user.email}</td>
              <td>{user.grouplist?.join(', ')}</td>
              <td>{user.virtualCluster?.join(', ')}</td>
              <td>{[user.admin && t('administrator'), user.active === false && t('may not sign in')].filter(Boolean).join(', ')}</td>
              <td className="nowrap">
                <Button small aria-label={t('Change {user}', { user: name })} onClick={() => ask({ kind: 'change', user })}>
                  {t('Change')}
                </Button>{' '}
                <Button small aria-label={t('Quotas of {name}', { name })} onClick={() => ask({ kind: 'quota', user })}>
                  {t('Quotas')}
                </Button>
              </td>
            </tr>
          )
        })}
      </TableCard>
      {asked?.kind === 'new' && <UserDialog user={null} onClose={() => ask(null)} />}
      {asked?.kind === 'change' && <UserDialog user={asked.user} onClose={() => ask(null)} />}
      {asked?.kind === 'quota' && <QuotaDialog of="users" name={asked.user.username ?? ''} canChange onClose={() => ask(null)} />}
      {asked?.kind === 'import' && <ImportDialog onClose={() => ask(null)} />}
      {asked?.kind === 'remove' && (
        <Confirm title={t('Remove {n} user?|Remove {n} users?', { n: asked.users.length })} action={t('Remove')} danger onClose={() => ask(null)} onConfirm={() => remove(asked.users)}>
          <p>{asked.users.map((user) => user.username).join(', ')}</p>
          <p>{t('Their tokens end at once. Their jobs stay; a later user of the same name would own them. To only lock somebody out, take “May sign in” away.')}</p>
        </Confirm>
      )}
    </div>
  )
}

function GroupDialog({ group, onClose }: { group: Group | null; onClose: () => void }) {
  const { data: clusters } = useQuery(clustersQuery)
  const queries = useQueryClient()
  const [error, setError] = useState<unknown>(null)
  const acls = group?.extension?.acls
  const submit = async (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault()
    const form = new FormData(event.currentTarget)
    const fields = {
      groupname: group?.groupname ?? String(form.get('groupname')),
      description: String(form.get('description')),
      externalName: String(form.get('externalName')),
      extension: { ...group?.extension, acls: { ...acls, admin: form.has('admin'), virtualClusters: names(form, 'vc') } },
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
        {clusters && <Choices label={t('Virtual clusters granted')} name="vc" all={Object.keys(clusters)} chosen={acls?.virtualClusters ?? []} />}
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
  const toast = useToast()
  const queries = useQueryClient()
  if (error) return <ErrorNote error={error} />
  if (!data) return <Loading />
  const pardon = async (name: string) => {
    try {
      await call('PUT', `/api/v2/nodes/${enc(name)}/pardon`)
      toast(t('The failures of {node} are forgotten.', { node: name }))
      await queries.invalidateQueries({ queryKey: ['nodes'] })
    } catch (failure) {
      toast(failure instanceof Error ? failure.message : String(failure), 'error')
    }
  }
  return (
    <TableCard label={t('Nodes')} heads={[t('Node'), t('State'), { number: t('Failures counted') }, { number: t('Refusals') }, t('Remarks'), { hidden: t('Actions') }]}>
      {data.data.map((node) => (
        <tr key={node.name}>
          <th scope="row">{node.name}</th>
          <td>
            <NodeState node={node} />
          </td>
          <td className="number">{(node.blame ?? 0).toFixed(1)}</td>
          <td className="number">{node.refusals}</td>
          <td className="anywhere" lang="en">
            {node.reason}
          </td>
          <td>
            <Button small aria-label={t('Pardon {node}', { node: node.name ?? '' })} disabled={!node.blame && !node.refusals && !node.avoidedUntil} onClick={() => void pardon(node.name ?? '')}>
              {t('Pardon')}
            </Button>
          </td>
        </tr>
      ))}
    </TableCard>
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
  const commands: Record<string, string> = { users: 'skep user list', groups: 'skep group list', clusters: 'skep vc; skep group list', nodes: 'skep pardon NODE', exits: 'skep exits', audit: 'skep audit', settings: 'skep admin settings' }
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
          { id: 'exits', title: t('Exit codes') },
          { id: 'audit', title: t('Audit') },
          { id: 'settings', title: t('Settings') },
        ]}
      />
      {tab === 'users' && <Users />}
      {tab === 'groups' && <Groups />}
      {tab === 'nodes' && <AdminNodes />}
      <Suspense fallback={<Loading />}>
        {tab === 'clusters' && <Granted />}
        {tab === 'exits' && <ExitCodes />}
        {tab === 'audit' && <Audit />}
        {tab === 'settings' && <Settings />}
      </Suspense>
      <Cli command={commands[tab] ?? 'skep user list'} />
    </>
  )
}
