// Who is in a group, for administrators of the platform and of the group.
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { useState, type FormEvent } from 'react'
import { call, enc } from '../../api/client'
import { membersQuery } from '../../api/queries'
import { t } from '../../i18n/i18n'
import { USER_NAME } from '../../lib/user-name'
import { Button, Dialog, Empty, ErrorNote, Loading, TableCard, TextField, useBusy, useUndo } from '../../ui/ui'

export function MembersDialog({ group, canMakeAdmins, onClose }: { group: string; canMakeAdmins?: boolean; onClose: () => void }) {
  const { data, error: unread } = useQuery(membersQuery(group))
  const [error, setError] = useState<unknown>(null)
  const [isBusy, during] = useBusy()
  const queries = useQueryClient()
  const undo = useUndo()
  const fresh = async () => {
    await queries.invalidateQueries({ queryKey: ['groups'] })
    await queries.invalidateQueries({ queryKey: ['users'] })
  }
  const ask = (method: 'PUT' | 'DELETE', user: string, more: { admin?: boolean } = {}) => call(method, `/api/v2/users/${enc(user)}/group`, { json: { groupname: group, ...more } })
  /** What was done, and what takes it back; who is in the group already has not been added. */
  const change = async (text: string, action: () => Promise<unknown>, back: (() => Promise<unknown>) | null) => {
    setError(null)
    try {
      await action()
      await fresh()
      if (back) undo(text, () => back().finally(() => void fresh()))
    } catch (failure) {
      setError(failure)
    }
  }
  const add = async (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault()
    const form = event.currentTarget
    const typed = () => String(new FormData(form).get('user')).trim()
    const user = typed()
    const isMember = data?.some(({ username }) => username === user)
    const put = async () => {
      await ask('PUT', user)
      if (typed() === user) form.reset() // else the next one is being typed
    }
    await during(() => change(t('{user} is in the group {group}.', { user, group }), put, isMember ? null : () => ask('DELETE', user)))
  }
  return (
    <Dialog wide title={t('Members of {name}', { name: group })} onClose={onClose}>
      {unread !== null && <ErrorNote error={unread} />}
      {error !== null && <ErrorNote error={error} />}
      <form className="row row-foot" onSubmit={(event) => void add(event)}>
        <TextField label={t('User name')} name="user" required pattern={USER_NAME} />
        <Button type="submit" disabled={isBusy}>
          {t('Add to the group')}
        </Button>
      </form>
      {!data ? (
        unread === null && <Loading />
      ) : data.length === 0 ? (
        <Empty title={t('Nobody is in this group')} />
      ) : (
        <TableCard label={t('Members')} heads={[t('User'), t('Rights'), { hidden: t('Actions') }]}>
          {data.map(({ username = '', clusterAdmin, groupAdmin }) => (
            <tr key={username}>
              <th scope="row">{username}</th>
              <td>{[clusterAdmin && t('administrator'), groupAdmin && t('administrator of the group')].filter(Boolean).join(', ')}</td>
              <td className="nowrap">
                {canMakeAdmins && (
                  <>
                    <Button
                      small
                      aria-label={groupAdmin ? t('No administrator of it: {name}', { name: username }) : t('Administrator of it: {name}', { name: username })}
                      onClick={() => void change(t('{user} is changed.', { user: username }), () => ask('PUT', username, { admin: !groupAdmin }), () => ask('PUT', username, { admin: groupAdmin ?? false }))}
                    >
                      {groupAdmin ? t('No administrator of it') : t('Administrator of it')}
                    </Button>{' '}
                  </>
                )}
                <Button small kind="danger" aria-label={t('Take out {name}', { name: username })} onClick={() => void change(t('{user} is taken out of the group {group}.', { user: username, group }), () => ask('DELETE', username), () => ask('PUT', username, canMakeAdmins ? { admin: groupAdmin ?? false } : {}))}>
                  {t('Take out')}
                </Button>
              </td>
            </tr>
          ))}
        </TableCard>
      )}
      <div className="dialog-foot">
        <Button kind="main" onClick={onClose}>
          {t('Close')}
        </Button>
      </div>
    </Dialog>
  )
}
