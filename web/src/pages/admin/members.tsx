// Who is in a group, for administrators of the platform and of the group.
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { useState, type FormEvent } from 'react'
import { call, enc } from '../../api/client'
import { membersQuery } from '../../api/queries'
import { t } from '../../i18n/i18n'
import { Button, Dialog, Empty, ErrorNote, Loading, TableCard, TextField } from '../../ui/ui'

export function MembersDialog({ group, canMakeAdmins, onClose }: { group: string; canMakeAdmins?: boolean; onClose: () => void }) {
  const { data, error: unread } = useQuery(membersQuery(group))
  const [error, setError] = useState<unknown>(null)
  const queries = useQueryClient()
  const change = async (method: 'PUT' | 'DELETE', user: string, more: { admin?: boolean } = {}) => {
    setError(null)
    try {
      await call(method, `/api/v2/users/${enc(user)}/group`, { json: { groupname: group, ...more } })
      await queries.invalidateQueries({ queryKey: ['groups'] })
      await queries.invalidateQueries({ queryKey: ['users'] })
      return true
    } catch (failure) {
      setError(failure)
      return false
    }
  }
  const add = async (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault()
    const form = event.currentTarget
    if (await change('PUT', String(new FormData(form).get('user')).trim())) form.reset()
  }
  return (
    <Dialog wide title={t('Members of {name}', { name: group })} onClose={onClose}>
      {unread !== null && <ErrorNote error={unread} />}
      {error !== null && <ErrorNote error={error} />}
      <form className="row row-foot" onSubmit={(event) => void add(event)}>
        <TextField label={t('User name')} name="user" required pattern="[A-Za-z0-9_.\-]{1,64}" />
        <Button type="submit">{t('Add to the group')}</Button>
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
                      onClick={() => void change('PUT', username, { admin: !groupAdmin })}
                    >
                      {groupAdmin ? t('No administrator of it') : t('Administrator of it')}
                    </Button>{' '}
                  </>
                )}
                <Button small kind="danger" aria-label={t('Take out {name}', { name: username })} onClick={() => void change('DELETE', username)}>
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
