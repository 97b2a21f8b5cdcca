// Users from a file of comma-separated values, as OpenPAI's portal and `skep user import` read it.
import { useQueryClient } from '@tanstack/react-query'
import { useRef, useState } from 'react'
import { call } from '../../api/client'
import { t } from '../../i18n/i18n'
import { csvOf, fileSave } from '../../lib/csv'
import { passwordNew } from '../../lib/password'
import { USER_COLUMNS, usersOf, type UserRow } from '../../lib/user-file'
import { Button, Dialog, ErrorNote } from '../../ui/ui'
import { MadePasswords, usePasswordsKept } from './made-passwords'

export function ImportDialog({ onClose }: { onClose: () => void }) {
  const [rows, setRows] = useState<UserRow[]>([])
  const [error, setError] = useState<unknown>(null)
  const [isBusy, setBusy] = useState(false)
  const queries = useQueryClient()
  const file = useRef<HTMLInputElement>(null)
  const read = async (chosen: File | undefined) => {
    setError(null)
    try {
      const read = chosen ? usersOf(await chosen.text(), passwordNew) : []
      if (!read) throw new Error(t('The first line must name the columns: {columns}. Only the first must be there.', { columns: USER_COLUMNS.join(', ') }))
      setRows(read)
    } catch (failure) {
      setError(failure)
    }
  }
  const run = async () => {
    setBusy(true)
    const next = [...rows]
    for (const [index, row] of next.entries()) {
      if (row.state === 'ok') continue
      const { virtualCluster, grouplist, ...user } = row.user
      try {
        await call('POST', '/api/v2/users', { json: { ...user, ...(virtualCluster.length ? { virtualCluster } : {}), ...(grouplist.length ? { grouplist } : {}) } })
        next[index] = { ...row, state: 'ok' }
      } catch (failure) {
        next[index] = { ...row, state: failure instanceof Error ? failure.message : String(failure) }
      }
      setRows([...next])
    }
    await queries.invalidateQueries({ queryKey: ['users'] })
    setBusy(false)
  }
  const made = rows.filter((row) => row.isMade && row.state === 'ok').map(({ user }) => user)
  const kept = usePasswordsKept(made, isBusy, onClose)
  return (
    <Dialog wide title={t('Users from a file')} onClose={kept.close}>
      <p className="quiet">
        {t('A table as CSV with these columns. Who has no password there gets one that is made here. What failed can be tried again.')} <code>{USER_COLUMNS.join(', ')}</code>
      </p>
      <div className="row">
        <input ref={file} type="file" accept=".csv" hidden onChange={(event) => void read(event.target.files?.[0])} />
        <Button disabled={isBusy || !kept.isKept} onClick={() => file.current?.click()}>{t('Open a file …')}</Button>
        <Button onClick={() => fileSave('users.csv', 'text/csv', csvOf([USER_COLUMNS, ['alice', passwordNew(), 'alice@example.org', 'false', 'default', 'default']]))}>{t('An example')}</Button>
      </div>
      {error !== null && <ErrorNote error={error} />}
      {rows.length > 0 && (
        <div className="scroll-x" tabIndex={0} role="region" aria-label={t('Users of the file')}>
          <table>
            <thead>
              <tr>
                <th scope="col">{t('Line')}</th>
                <th scope="col">{t('User')}</th>
                <th scope="col">{t('Password')}</th>
                <th scope="col">{t('Mail address')}</th>
                <th scope="col">{t('Virtual clusters')}</th>
                <th scope="col">{t('Groups')}</th>
                <th scope="col">{t('Result')}</th>
              </tr>
            </thead>
            <tbody>
              {rows.map((row) => (
                <tr key={row.line}>
                  <td>{row.line}</td>
                  <td>{row.user.username}</td>
                  <td>{row.isMade ? t('made here') : t('of the file')}</td>
                  <td>{row.user.email}</td>
                  <td>{row.user.virtualCluster.join(', ')}</td>
                  <td>{row.user.grouplist.join(', ')}</td>
                  <td>{row.state === 'ok' ? `✓ ${t('made')}` : row.state}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      <MadePasswords made={made} kept={kept} />
      <div className="dialog-foot">
        <Button disabled={isBusy} onClick={kept.close}>{t('Close')}</Button>
        <Button kind="main" disabled={isBusy || !rows.some((row) => row.state !== 'ok')} onClick={() => void run()}>
          {t('Make the users')}
        </Button>
      </div>
    </Dialog>
  )
}
