// Users: who there is, what they may use, and changes of one or of several.
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { useMemo, useRef, useState, type FormEvent } from 'react'
import { errorOfAll, forEachWhole } from '../../api/actions'
import { ApiError, call, enc, get, type User } from '../../api/client'
import { clustersQuery, groupsQuery, usersQuery } from '../../api/queries'
import { t } from '../../i18n/i18n'
import { csvOf, fileSave } from '../../lib/csv'
import { passwordNew } from '../../lib/password'
import { USER_NAME } from '../../lib/user-name'
import { clustersOwn, fieldsBefore, fieldsChanged, userChanged, usersShown, type UserChange, type UserFields } from '../../lib/users'
import { useSearch } from '../../router'
import { useAwaited } from '../../ui/in-order'
import { Button, Check, Confirm, Dialog, Empty, ErrorNote, Loading, OnceButton, SelectField, TableCard, TextField, useBusy, useToast, useUndo, useWhileThere } from '../../ui/ui'
import { GoTo } from '../../ui/go-to'
import { Choices, namesOf } from './choices'
import { PasswordsDialog } from './passwords'
import { QuotaDialog } from './quota'
import { ImportDialog } from './user-import'

const groupsSet = (name: string, grouplist: string[]) => call('PUT', `/api/v2/users/${enc(name)}/grouplist`, { json: { grouplist } })
const fieldsSet = (data: Record<string, unknown>) => call('PUT', '/api/v2/users', { json: { patch: true, data } })

/** What was changed of a user. */
interface UserChanged {
  user: User // as it was
  fields: UserFields
  hasGroups: boolean
}

/** As it was before a change of anything but the password. Groups stand first: by them one may be an administrator again. */
async function userBack({ user, fields, hasGroups }: UserChanged) {
  const username = user.username ?? ''
  const before = fieldsBefore(user, fields)
  if (hasGroups || before.admin) await groupsSet(username, user.grouplist ?? [])
  if (before.admin && (await get<User>(`/api/v2/users/${enc(username)}`)).admin) delete before.admin
  if (Object.keys(before).length) await fieldsSet({ username, ...before })
}

function UserDialog({ user, onClose }: { user: User | null; onClose: () => void }) {
  const { data: groups } = useQuery(groupsQuery)
  const { data: clusters } = useQuery(clustersQuery)
  const queries = useQueryClient()
  const toast = useToast()
  const undo = useUndo()
  const [error, setError] = useState<unknown>(null)
  const [isBusy, during] = useBusy()
  const close = useWhileThere(onClose)
  const [name, setName] = useState(user?.username ?? '')
  const [usedName, setUsedName] = useState<string | null>(null) // which was refused, because a removed user had it
  const [password, setPassword] = useState(user ? '' : passwordNew())
  const had = user?.grouplist ?? ['default'] // what one has can be chosen also before the rest is read, or it would be taken away
  const own = user ? clustersOwn(user) : []
  const vcs = [...new Set([...Object.keys(clusters ?? {}), ...own])].filter((name) => name !== 'default') // one that the cluster has no more stays granted
  const byGroups = user && !user.admin ? (user.virtualCluster ?? []).filter((name) => name !== 'default' && !own.includes(name)) : []
  const submit = async (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault()
    const form = new FormData(event.currentTarget)
    const username = name
    const all = { email: String(form.get('email')), admin: form.has('admin'), active: form.has('active'), virtualCluster: namesOf(form, 'vc') }
    const grouplist = namesOf(form, 'group')
    try {
      if (user) {
        const fields = fieldsChanged(user, all)
        const hasGroups = grouplist.length !== had.length || !had.every((name) => grouplist.includes(name))
        if (password || Object.keys(fields).length) await fieldsSet({ username, ...fields, ...(password ? { password } : {}) })
        if (hasGroups) await groupsSet(username, grouplist)
        const back = () => userBack({ user, fields, hasGroups }).finally(() => void queries.invalidateQueries({ queryKey: ['users'] }))
        if (password) toast(t('{user} is changed.', { user: username }))
        else if (hasGroups || Object.keys(fields).length) undo(t('{user} is changed.', { user: username }), back)
      } else {
        await call('POST', '/api/v2/users', { json: { username, password, email: all.email, admin: all.admin, ...(all.admin ? {} : { virtualCluster: all.virtualCluster }), grouplist, ...(form.has('reuseName') ? { reuseName: true } : {}) } })
        toast(t('{user} is made.', { user: username }))
      }
      await queries.invalidateQueries({ queryKey: ['users'] })
      close()
    } catch (failure) {
      setError(failure)
      if (failure instanceof ApiError && failure.code === 'UsedNameError') setUsedName(username)
      void queries.invalidateQueries({ queryKey: ['users'] }) // its groups may be what failed
    }
  }
  return (
    <Dialog title={user ? t('Change {user}', { user: user.username ?? '' }) : t('New user')} onClose={onClose}>
      <form className="stack" onSubmit={(event) => void during(() => submit(event))}>
        {error !== null && <ErrorNote error={error} />}
        {!user && <TextField label={t('User name')} value={name} required pattern={USER_NAME} onChange={(event) => setName(event.target.value)} hint={t('Letters, digits, _ . -')} />}
        <TextField label={t('Mail address')} name="email" type="email" defaultValue={user?.email} />
        <TextField
          label={user ? t('New password; empty: as it was') : t('Password')}
          value={password}
          minLength={6}
          required={!user}
          onChange={(event) => setPassword(event.target.value)}
          hint={t('At least 6 characters. Copy it now: it is shown nowhere again.')}
        />
        <Choices label={t('Groups')} name="group" all={[...new Set([...(groups ?? []).map((group) => group.groupname ?? ''), ...had])]} chosen={had} />
        {vcs.length > 0 && <Choices label={t('Virtual clusters granted')} name="vc" all={vcs} chosen={own} />}
        {byGroups.length > 0 && <p className="quiet small">{t('By groups: {names}', { names: byGroups.join(', ') })}</p>}
        <Check name="admin" defaultChecked={user?.admin ?? false}>
          {t('Administrator: may use all virtual clusters and see all')}
        </Check>
        {usedName === name && <Check name="reuseName">{t('Use the name again: what the removed user left in storages becomes this one’s')}</Check>}
        {user && (
          <Check name="active" defaultChecked={user.active ?? true}>
            {t('May sign in')}
          </Check>
        )}
        <div className="dialog-foot">
          <Button onClick={onClose}>{t('Cancel')}</Button>
          <Button type="submit" kind="main" disabled={isBusy}>
            {user ? t('Change') : t('Make the user')}
          </Button>
        </div>
      </form>
    </Dialog>
  )
}

/** Several at once. Undone, each has again what it had. */
function BatchDialog({ users, onClose, onDone }: { users: User[]; onClose: () => void; onDone: () => void }) {
  const { data: groups } = useQuery(groupsQuery)
  const { data: clusters } = useQuery(clustersQuery)
  const queries = useQueryClient()
  const undo = useUndo()
  const [error, setError] = useState<unknown>(null)
  const [isBusy, setBusy] = useState(false)
  const changed = useRef(new Map<string, UserChanged>()) // by all tries
  const fresh = () => queries.invalidateQueries({ queryKey: ['users'] })
  const close = () => {
    const all = changed.current
    if (all.size)
      undo(t('{n} user is changed.|{n} users are changed.', { n: all.size }), () => forEachWhole([...all.keys()], (name) => userBack(all.get(name)!), fresh))
    onClose()
  }
  const submit = async (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault()
    const form = new FormData(event.currentTarget)
    const active = form.get('active')
    const change: UserChange = {
      grant: namesOf(form, 'grant'),
      revoke: namesOf(form, 'revoke'),
      join: namesOf(form, 'join'),
      leave: namesOf(form, 'leave'),
      active: active === 'yes' ? true : active === 'no' ? false : null,
    }
    setBusy(true)
    setError(null)
    const failed: [string, unknown][] = []
    for (const user of users) {
      const name = user.username ?? ''
      const { fields, grouplist } = userChanged(user, change)
      if (!fields && !grouplist) continue
      try {
        const before = changed.current.get(name)
        if (fields) {
          await fieldsSet({ username: name, ...fields })
          changed.current.set(name, { user, fields: { ...before?.fields, ...fields }, hasGroups: before?.hasGroups ?? false })
        }
        if (grouplist) {
          await groupsSet(name, grouplist)
          changed.current.set(name, { user, fields: fields ?? before?.fields ?? {}, hasGroups: true })
        }
      } catch (failure) {
        failed.push([name, failure])
      }
    }
    await fresh()
    setBusy(false)
    if (failed.length) return setError(errorOfAll(failed))
    onDone()
    close()
  }
  const vcs = Object.keys(clusters ?? {}).filter((name) => name !== 'default')
  const all = (groups ?? []).map((group) => group.groupname ?? '')
  return (
    <Dialog wide title={t('Change {n} user|Change {n} users', { n: users.length })} onClose={close}>
      <form className="stack" onSubmit={(event) => void submit(event)}>
        {error !== null && <ErrorNote error={error} />}
        <p className="quiet anywhere">{users.map((user) => user.username).join(', ')}</p>
        {vcs.length > 0 && <Choices label={t('Grant virtual clusters')} name="grant" all={vcs} chosen={[]} />}
        {vcs.length > 0 && <Choices label={t('Take virtual clusters away')} name="revoke" all={vcs} chosen={[]} />}
        <Choices label={t('Add to groups')} name="join" all={all} chosen={[]} />
        <Choices label={t('Take out of groups')} name="leave" all={all} chosen={[]} />
        <SelectField label={t('May sign in')} name="active" hint={t('Who may not loses all tokens at once.')}>
          <option value="">{t('as it is')}</option>
          <option value="yes">{t('yes')}</option>
          <option value="no">{t('no')}</option>
        </SelectField>
        <p className="quiet small">{t('Administrators may use all virtual clusters: nothing is granted to them or taken away. What a group grants stays with its members.')}</p>
        <div className="dialog-foot">
          <Button onClick={close}>{t('Cancel')}</Button>
          <Button type="submit" kind="main" disabled={isBusy}>
            {t('Change')}
          </Button>
        </div>
      </form>
    </Dialog>
  )
}

const PAGE = 100

type UserAsked = { kind: 'new' } | { kind: 'import' } | { kind: 'change' | 'quota'; user: User } | { kind: 'remove' | 'batch' | 'passwords'; users: User[] } | null

export function Users() {
  const { data, error } = useQuery(usersQuery)
  const { data: groups, isLoading: areGroupsMissing } = useQuery(groupsQuery)
  const { data: clusters, isLoading: areClustersMissing } = useQuery(clustersQuery)
  const isAwaited = useAwaited(!areGroupsMissing && !areClustersMissing) // the filters are as wide as what they offer
  const [search, change] = useSearch()
  const [asked, ask] = useState<UserAsked>(null)
  const [selected, setSelected] = useState<Set<string>>(new Set())
  const queries = useQueryClient()
  const toast = useToast()
  const filter = { text: search.get('q') ?? '', group: search.get('group') ?? '', vc: search.get('vc') ?? '', rights: search.get('rights') ?? '', order: search.get('order') ?? 'username' }
  const key = JSON.stringify(filter)
  const shown = useMemo(() => usersShown(data ?? [], filter), [data, key])
  if (!data) return error ? <ErrorNote error={error} /> : <Loading />
  if (isAwaited) return <Loading />
  const last = Math.max(0, Math.ceil(shown.length / PAGE) - 1)
  const page = Math.min(last, Math.max(0, Number(search.get('page') ?? 1) - 1 || 0))
  const rows = shown.slice(page * PAGE, (page + 1) * PAGE)
  const chosen = data.filter((user) => selected.has(user.username ?? ''))
  const set = (changes: Record<string, string | null>) => change({ page: null, ...changes })
  const remove = async (users: User[]) => {
    const names = users.map((user) => user.username ?? '')
    const gone = (name: string) =>
      call('DELETE', `/api/v2/users/${enc(name)}`).catch((failure: unknown) => {
        if (!(failure instanceof ApiError && failure.status === 404)) throw failure // somebody else, or the try before, has removed them
      })
    await forEachWhole(names, gone, () => queries.invalidateQueries({ queryKey: ['users'] }))
    setSelected(new Set())
    toast(t('{n} user is removed.|{n} users are removed.', { n: users.length }))
  }
  const save = () =>
    fileSave(
      'users.csv',
      'text/csv',
      csvOf([
        ['username', 'email', 'admin', 'virtualCluster', 'groups', 'active'],
        ...shown.map((user) => [user.username, user.email, user.admin, clustersOwn(user).join(','), user.grouplist?.join(','), user.active]),
      ]),
    )
  const sorted = (title: string, field: string) => ({
    sort: title,
    direction: filter.order === field ? ('ascending' as const) : filter.order === `-${field}` ? ('descending' as const) : undefined,
    onSort: () => set({ order: filter.order === field ? `-${field}` : field === 'username' ? null : field }),
  })
  const isAllChosen = rows.length > 0 && rows.every((user) => selected.has(user.username ?? ''))
  const select = (users: User[], isSelected: boolean) => {
    const next = new Set(selected)
    for (const user of users) if (isSelected) next.add(user.username ?? '')
      else next.delete(user.username ?? '')
    setSelected(next)
  }
  return (
    <div className="stack">
      {error && <ErrorNote error={error} />}
      <div className="row row-foot" role="search">
        <TextField label={t('Name, mail address or group')} type="search" value={filter.text} onChange={(event) => set({ q: event.target.value || null })} />
        <SelectField label={t('Group')} value={filter.group} onChange={(event) => set({ group: event.target.value || null })}>
          <option value="">{t('all')}</option>
          {groups?.map((group) => <option key={group.groupname}>{group.groupname}</option>)}
        </SelectField>
        <SelectField label={t('Virtual cluster')} value={filter.vc} onChange={(event) => set({ vc: event.target.value || null })}>
          <option value="">{t('all')}</option>
          {Object.keys(clusters ?? {}).map((name) => (
            <option key={name}>{name}</option>
          ))}
        </SelectField>
        <SelectField label={t('Rights')} value={filter.rights} onChange={(event) => set({ rights: event.target.value || null })}>
          <option value="">{t('all')}</option>
          <option value="admin">{t('administrator')}</option>
          <option value="user">{t('no administrator')}</option>
          <option value="inactive">{t('may not sign in')}</option>
        </SelectField>
      </div>
      <div className="row">
        <span className="quiet" role="status">
          {t('{n} user|{n} users', { n: shown.length })}
          {chosen.length > 0 && ` · ${t('{n} selected', { n: chosen.length })}`}
        </span>
        <div className="row push">
          <Button disabled={!chosen.length} onClick={() => ask({ kind: 'batch', users: chosen })}>
            {t('Change the selected')}
          </Button>
          <Button disabled={!chosen.length} onClick={() => ask({ kind: 'passwords', users: chosen })}>
            {t('New passwords')}
          </Button>
          <Button kind="danger" disabled={!chosen.length || chosen.some((user) => user.admin)} onClick={() => ask({ kind: 'remove', users: chosen })}>
            {t('Remove')}
          </Button>
          <Button disabled={!shown.length} onClick={save}>
            {t('Save as CSV')}
          </Button>
          <Button onClick={() => ask({ kind: 'import' })}>{t('Users from a file')}</Button>
          <Button kind="main" onClick={() => ask({ kind: 'new' })}>
            {t('New user')}
          </Button>
        </div>
      </div>
      {!rows.length ? (
        <div className="card">
          <Empty title={t('No user fits these filters')}>
            <OnceButton onClick={() => set({ q: null, group: null, vc: null, rights: null })}>{t('Clear filters')}</OnceButton>
          </Empty>
        </div>
      ) : (
        <TableCard
          label={t('Users')}
          heads={[
            { check: t('Select all on this page'), isChecked: isAllChosen, onCheck: () => select(rows, !isAllChosen) },
            sorted(t('User'), 'username'),
            sorted(t('Mail address'), 'email'),
            t('Groups'),
            t('Virtual clusters'),
            t('Rights'),
            { hidden: t('Actions') },
          ]}
        >
          {rows.map((user) => {
            const name = user.username ?? ''
            return (
              <tr key={name}>
                <td>
                  <input type="checkbox" aria-label={t('Select {name}', { name })} checked={selected.has(name)} onChange={() => select([user], !selected.has(name))} />
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
      )}
      {last > 0 && (
        <nav className="row" aria-label={t('Pages of users')}>
          <Button disabled={page === 0} onClick={() => change({ page: page > 1 ? String(page) : null })}>
            {t('Before')}
          </Button>
          <span role="status">{t('{from} to {to} of {n}', { from: page * PAGE + 1, to: page * PAGE + rows.length, n: shown.length })}</span>
          <Button disabled={page === last} onClick={() => change({ page: String(page + 2) })}>
            {t('After')}
          </Button>
          <GoTo label={t('Go to page')} max={last + 1} onGo={(number) => change({ page: number > 1 ? String(number) : null })} />
        </nav>
      )}
      {asked?.kind === 'new' && <UserDialog user={null} onClose={() => ask(null)} />}
      {asked?.kind === 'change' && <UserDialog user={asked.user} onClose={() => ask(null)} />}
      {asked?.kind === 'batch' && <BatchDialog users={asked.users} onClose={() => ask(null)} onDone={() => setSelected(new Set())} />}
      {asked?.kind === 'passwords' && <PasswordsDialog users={asked.users} onClose={() => ask(null)} />}
      {asked?.kind === 'quota' && <QuotaDialog of="users" name={asked.user.username ?? ''} canChange onClose={() => ask(null)} />}
      {asked?.kind === 'import' && <ImportDialog onClose={() => ask(null)} />}
      {asked?.kind === 'remove' && (
        <Confirm title={t('Remove {n} user?|Remove {n} users?', { n: asked.users.length })} action={t('Remove')} danger onClose={() => ask(null)} onConfirm={() => remove(asked.users)}>
          <p>{asked.users.map((user) => user.username).join(', ')}</p>
          <p>{t('Their tokens end at once. Their jobs stay. As long as they are there, nobody else can have the name; afterwards an administrator may give it again, and with it what they left in storages. To only lock somebody out, take “May sign in” away.')}</p>
        </Confirm>
      )}
    </div>
  )
}
