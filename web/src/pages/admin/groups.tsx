// Groups: what they grant and to whom, for administrators of the platform.
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { useState, type FormEvent } from 'react'
import { errorOfAll } from '../../api/actions'
import { call, enc, get, type Group, type Schema } from '../../api/client'
import { clustersQuery, groupsQuery, usersQuery } from '../../api/queries'
import { templateSet, templatesQuery, type Template } from '../../api/templates'
import { t } from '../../i18n/i18n'
import { groupBefore, groupChanged, groupForm, groupIsStill, groupPatch, quotaOwn, type GroupForm } from '../../lib/groups'
import { Button, Check, Confirm, Dialog, ErrorNote, Loading, TableCard, TextField, useBusy, useUndo, useWhileThere } from '../../ui/ui'
import { Choices, namesOf } from './choices'
import { MembersDialog } from './members'
import { QuotaDialog } from './quota'

const path = (name: string) => `/api/v2/groups/${enc(name)}`

async function groupSet(name: string, fields: Partial<GroupForm>) {
  const now = await get<Group>(path(name))
  await call('PUT', '/api/v2/groups', { json: { patch: true, data: groupPatch(now, fields) } })
}

async function groupBack(name: string, changed: Partial<GroupForm>, before: Partial<GroupForm>) {
  const now = await get<Group>(path(name))
  if (!groupIsStill(now, changed)) throw new Error(t('somebody has changed {name} since.', { name }))
  await call('PUT', '/api/v2/groups', { json: { patch: true, data: groupPatch(now, before) } })
}

async function shareAgain(id: string, group: string) {
  const now = await get<Template>(`/marketplace/api/items/${enc(id)}`)
  if (!now.isPublic) await templateSet(id, { groupList: [...(now.groupList ?? []), group], ...(now.updatedAt ? { updatedAt: now.updatedAt } : {}) })
}

/** Removes it; the result makes it again as it was: with its members, its administrators, its quotas and the templates it was shown. */
async function groupRemove(name: string, templates: Template[]): Promise<() => Promise<void>> {
  const [group, members, quotas] = await Promise.all([get<Group>(path(name)), get<Schema['Members']>(`${path(name)}/userlist`), get<Schema['UserQuotas']>(`${path(name)}/quota`)])
  await call('DELETE', path(name))
  return async () => {
    await call('POST', '/api/v2/groups', { json: group })
    await call('PUT', `${path(name)}/quota`, { json: quotaOwn(quotas) })
    const failed: [string, unknown][] = [] // a user or a template that is gone meanwhile keeps no other out
    for (const { username = '', groupAdmin } of members) await call('PUT', `/api/v2/users/${enc(username)}/group`, { json: { groupname: name, admin: groupAdmin ?? false } }).catch((failure: unknown) => failed.push([username, failure]))
    for (const one of templates.filter(({ groupList }) => groupList?.includes(name))) await shareAgain(one.id, name).catch((failure: unknown) => failed.push([one.name, failure]))
    if (failed.length) throw errorOfAll(failed)
  }
}

/** Reads groups, and users whose rights come by them, again. */
function useFresh() {
  const queries = useQueryClient()
  return async () => {
    await queries.invalidateQueries({ queryKey: ['groups'] })
    await queries.invalidateQueries({ queryKey: ['users'] })
  }
}

function GroupDialog({ group, onClose }: { group: Group | null; onClose: () => void }) {
  const { data: clusters } = useQuery(clustersQuery)
  const undo = useUndo()
  const fresh = useFresh()
  const [error, setError] = useState<unknown>(null)
  const [isBusy, during] = useBusy()
  const close = useWhileThere(onClose)
  const before = groupForm(group ?? {})
  const change = async (name: string, form: GroupForm) => {
    const changed = groupChanged(group ?? {}, form)
    if (!Object.keys(changed).length) return
    await groupSet(name, changed)
    await fresh()
    undo(t('The group {name} is changed.', { name }), () => groupBack(name, changed, groupBefore(group ?? {}, changed)).finally(() => void fresh()))
  }
  const make = async (name: string, form: GroupForm) => {
    await call('POST', '/api/v2/groups', { json: { extension: {}, ...groupPatch({ groupname: name }, form) } })
    await fresh()
    undo(t('The group {name} is made.', { name }), () => call('DELETE', path(name)).finally(() => void fresh()))
  }
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault()
    const form = new FormData(event.currentTarget)
    const name = group?.groupname ?? String(form.get('groupname'))
    const all: GroupForm = { description: String(form.get('description')), externalName: String(form.get('externalName')), admin: form.has('admin'), virtualClusters: namesOf(form, 'vc') }
    setError(null)
    void during(() => (group ? change(name, all) : make(name, all)).then(close, setError))
  }
  return (
    <Dialog title={group ? t('Change {user}', { user: group.groupname ?? '' }) : t('New group')} onClose={onClose}>
      <form className="stack" onSubmit={submit}>
        {error !== null && <ErrorNote error={error} />}
        {!group && <TextField label={t('Name')} name="groupname" required pattern="[A-Za-z0-9_\-]{1,64}" hint={t('Letters, digits, _ -')} />}
        <TextField label={t('Description')} name="description" defaultValue={before.description} />
        <TextField label={t('Name elsewhere')} name="externalName" defaultValue={before.externalName} />
        {/* what is granted stands there also before the others are read, and when the cluster has them no more */}
        <Choices label={t('Virtual clusters granted')} name="vc" all={[...new Set([...Object.keys(clusters ?? {}), ...before.virtualClusters])]} chosen={before.virtualClusters} />
        <Check name="admin" defaultChecked={before.admin}>
          {t('Its members are administrators')}
        </Check>
        <div className="dialog-foot">
          <Button onClick={onClose}>{t('Cancel')}</Button>
          <Button type="submit" kind="main" disabled={isBusy}>
            {group ? t('Change') : t('Make the group')}
          </Button>
        </div>
      </form>
    </Dialog>
  )
}

type GroupAsked = { kind: 'new' } | { kind: 'change' | 'remove' | 'members' | 'quota'; group: Group } | null

export function Groups() {
  const { data, error } = useQuery(groupsQuery)
  const { data: users, isPending: areUsersAwaited } = useQuery(usersQuery) // whose names decide how wide the columns are
  const [asked, ask] = useState<GroupAsked>(null)
  const queries = useQueryClient()
  const undo = useUndo()
  const fresh = useFresh()
  if (!data) return error ? <ErrorNote error={error} /> : <Loading />
  if (areUsersAwaited) return <Loading />
  const members = (group: Group) => (users ?? []).filter((user) => user.grouplist?.includes(group.groupname ?? ''))
  const remove = async (name: string) => {
    const back = await groupRemove(name, await queries.fetchQuery({ ...templatesQuery(''), staleTime: 0 }))
    await fresh()
    undo(t('The group {name} is removed.', { name }), () => back().finally(() => void fresh()))
  }
  return (
    <div className="stack">
      {error && <ErrorNote error={error} />}
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
          <GroupRow key={group.groupname} group={group} members={members(group).map((user) => user.username ?? '')} ask={ask} />
        ))}
      </TableCard>
      {asked?.kind === 'members' && <MembersDialog group={asked.group.groupname ?? ''} canMakeAdmins onClose={() => ask(null)} />}
      {asked?.kind === 'quota' && <QuotaDialog of="groups" name={asked.group.groupname ?? ''} canChange onClose={() => ask(null)} />}
      {asked?.kind === 'new' && <GroupDialog group={null} onClose={() => ask(null)} />}
      {asked?.kind === 'change' && <GroupDialog group={asked.group} onClose={() => ask(null)} />}
      {asked?.kind === 'remove' && (
        <Confirm title={t('Remove the group {name}?', { name: asked.group.groupname ?? '' })} action={t('Remove')} danger onClose={() => ask(null)} onConfirm={() => remove(asked.group.groupname ?? '')}>
          <p>{t('{n} user loses what it grants.|{n} users lose what it grants.', { n: members(asked.group).length })}</p>
        </Confirm>
      )}
    </div>
  )
}

function GroupRow({ group, members, ask }: { group: Group; members: string[]; ask: (asked: GroupAsked) => void }) {
  const name = group.groupname ?? ''
  return (
    <tr>
      <th scope="row">
        {name} {group.extension?.acls?.admin && <span className="tag">{t('administrators')}</span>}
      </th>
      <td lang="">{group.description}</td>
      <td>{group.extension?.acls?.virtualClusters?.join(', ')}</td>
      <td>{members.join(', ')}</td>
      <td className="nowrap">
        <Button small aria-label={t('Change {user}', { user: name })} onClick={() => ask({ kind: 'change', group })}>
          {t('Change')}
        </Button>{' '}
        <Button small aria-label={t('Members of {name}', { name })} onClick={() => ask({ kind: 'members', group })}>
          {t('Members')}
        </Button>{' '}
        <Button small aria-label={t('Quotas of {name}', { name })} onClick={() => ask({ kind: 'quota', group })}>
          {t('Quotas')}
        </Button>{' '}
        <Button small kind="danger" aria-label={t('Remove {name}', { name })} onClick={() => ask({ kind: 'remove', group })}>
          {t('Remove')}
        </Button>
      </td>
    </tr>
  )
}
