// Users from a file of comma-separated values, as OpenPAI's portal and `skep user import` read it.
import { useQueryClient } from '@tanstack/react-query'
import { useRef, useState } from 'react'
import { call } from '../../api/client'
import { t } from '../../i18n/i18n'
import { csvOf, csvRead, fileSave } from '../../lib/csv'
import { passwordNew } from '../../lib/password'
import { Button, Dialog, ErrorNote } from '../../ui/ui'

interface Import {
  line: number
  user: { username: string; password: string; email: string; admin: boolean; virtualCluster: string[]; grouplist: string[] }
  state: string
}

const CSV_HEAD = ['username', 'password', 'email', 'admin', 'virtual cluster', 'groups']

function importsOf(text: string): Import[] {
  const [head = [], ...rows] = csvRead(text)
  const column = (name: string) => head.findIndex((title) => title.trim().toLowerCase().replace(' ', '') === name)
  if (column('username') < 0 || column('password') < 0) throw new Error(t('The first line must name the columns: {columns}. The first two must be there.', { columns: CSV_HEAD.join(', ') }))
  const list = (text: string) => text.split(/[,;\s]+/).filter(Boolean)
  const at = (row: string[], name: string) => row[column(name)]?.trim() ?? ''
  return rows.map((row, index) => ({
    line: index + 2,
    user: {
      username: at(row, 'username'),
      password: at(row, 'password'),
      email: at(row, 'email'),
      admin: /^(true|yes|1)$/i.test(at(row, 'admin')),
      virtualCluster: list(at(row, 'virtualcluster')),
      grouplist: list(at(row, 'groups')),
    },
    state: '',
  }))
}

export function ImportDialog({ onClose }: { onClose: () => void }) {
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
  return (
    <Dialog wide title={t('Users from a file')} onClose={onClose}>
      <p className="quiet">{t('A table as CSV with the columns {columns}. What failed can be tried again.', { columns: CSV_HEAD.join(', ') })}</p>
      <div className="row">
        <input ref={file} type="file" accept=".csv" hidden onChange={(event) => void read(event.target.files?.[0])} />
        <Button onClick={() => file.current?.click()}>{t('Open a file …')}</Button>
        <Button onClick={() => fileSave('users.csv', 'text/csv', csvOf([CSV_HEAD, ['alice', passwordNew(), 'alice@example.org', 'false', 'default', 'default']]))}>{t('An example')}</Button>
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
                <th scope="col">{t('Groups')}</th>
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
                  <td>{row.user.grouplist.join(', ')}</td>
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
