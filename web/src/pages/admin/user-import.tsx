// Users from a file of comma-separated values, as OpenPAI's portal and `skep user import` read it.
import { useQueryClient } from '@tanstack/react-query'
import { useLayoutEffect, useRef, useState } from 'react'
import { call } from '../../api/client'
import { t } from '../../i18n/i18n'
import { csvOf, fileSave } from '../../lib/csv'
import { passwordNew } from '../../lib/password'
import { problemsOf, rowChanged, rowNew, USER_COLUMNS, usersOf, type UserRow } from '../../lib/user-file'
import { Button, Dialog, ErrorNote } from '../../ui/ui'
import { MadePasswords, usePasswordsKept } from './made-passwords'
import { problemText, RowForm } from './user-row'

const ADD = 'add' // where the focus goes: to this button, or to the one of a line

export function ImportDialog({ onClose }: { onClose: () => void }) {
  const [rows, setRows] = useState<UserRow[]>([])
  const [error, setError] = useState<unknown>(null)
  const [isBusy, setBusy] = useState(false)
  const [edited, setEdited] = useState<{ line: number; isNew: boolean } | null>(null)
  const queries = useQueryClient()
  const focus = useRef<string | null>(null)
  const buttons = useRef<HTMLDivElement>(null)
  useLayoutEffect(() => {
    if (!focus.current) return
    buttons.current?.querySelector<HTMLElement>(`[data-focus="${focus.current}"]`)?.focus()
    focus.current = null
  }, [edited, rows])
  const file = useRef<HTMLInputElement>(null)
  const read = async (chosen: File | undefined) => {
    setError(null)
    try {
      const read = chosen ? usersOf(await chosen.text(), passwordNew) : []
      if (!read) throw new Error(t('The first line must name the columns: {columns}. Only the first must be there.', { columns: USER_COLUMNS.join(', ') }))
      setRows(read)
      setEdited(null)
    } catch (failure) {
      setError(failure)
    }
  }
  const isWrong = (row: UserRow) => problemsOf(row, rows).length > 0
  const left = rows.filter((row) => row.state !== 'ok' && !isWrong(row)) // what is sent: whoever is made is not sent again
  const wrong = rows.filter((row) => row.state !== 'ok' && isWrong(row)).length
  const run = async () => {
    setBusy(true)
    const next = [...rows]
    for (const row of left) {
      const { virtualCluster, grouplist, ...user } = row.user
      const index = next.indexOf(row)
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
  const add = () => {
    const row = rowNew(rows, passwordNew())
    setRows([...rows, row])
    setEdited({ line: row.line, isNew: true })
  }
  const leave = (line: number | typeof ADD, next = rows) => {
    setRows(next)
    setEdited(null)
    focus.current = String(line)
  }
  const made = rows.filter((row) => row.isMade && row.state === 'ok').map(({ user }) => user)
  const kept = usePasswordsKept(made, isBusy, onClose)
  return (
    <Dialog wide title={t('Users from a file')} onClose={kept.close}>
      <p className="quiet">
        {t('A table as CSV with these columns. Who has no password there gets one that is made here. Each row can be changed before it is sent; what failed can be corrected, and is sent again alone.')} <code>{USER_COLUMNS.join(', ')}</code>
      </p>
      <div className="stack" ref={buttons}>
        <div className="row">
          <input
            ref={file}
            type="file"
            accept=".csv"
            hidden
            onChange={(event) => {
              void read(event.target.files?.[0])
              event.target.value = '' // the same file, corrected, is read again
            }}
          />
          <Button disabled={isBusy || !kept.isKept} onClick={() => file.current?.click()}>{t('Open a file …')}</Button>
          <Button data-focus={ADD} disabled={isBusy || !!edited} onClick={add}>
            {t('Add a row')}
          </Button>
          <Button onClick={() => fileSave('users-template.csv', 'text/csv', csvOf([USER_COLUMNS, ['alice', passwordNew(), 'alice@example.org', 'false', 'default', 'default']]))}>{t('Save a template as CSV')}</Button>
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
                  <th scope="col">{t('Rights')}</th>
                  <th scope="col">{t('Result')}</th>
                  <th scope="col">
                    <span className="hidden-text">{t('Actions')}</span>
                  </th>
                </tr>
              </thead>
              <tbody>
                {rows.map((row) =>
                  edited?.line === row.line ? (
                    <tr key={row.line}>
                      <td>{row.line}</td>
                      <td colSpan={8}>
                        <RowForm
                          row={row}
                          problemsOf={(changed) => problemsOf(changed, rows)}
                          onKeep={(user) => leave(row.line, rows.map((one) => (one === row ? rowChanged(row, user, passwordNew) : one)))}
                          onCancel={() => (edited.isNew ? leave(ADD, rows.filter((one) => one !== row)) : leave(row.line))}
                        />
                      </td>
                    </tr>
                  ) : (
                    <tr key={row.line}>
                      <td>{row.line}</td>
                      <td>{row.user.username}</td>
                      <td>{row.isMade ? t('made here') : t('given')}</td>
                      <td>{row.user.email}</td>
                      <td>{row.user.virtualCluster.join(', ')}</td>
                      <td>{row.user.grouplist.join(', ')}</td>
                      <td>{row.user.admin && t('administrator')}</td>
                      <td>{row.state === 'ok' ? `✓ ${t('made')}` : [...problemsOf(row, rows).map(problemText), row.state].filter(Boolean).join(' ')}</td>
                      <td className="nowrap">
                        {row.state !== 'ok' && (
                          <>
                            <Button
                              small
                              data-focus={row.line}
                              disabled={isBusy || !!edited}
                              aria-label={t('Change line {n}: {name}', { n: row.line, name: row.user.username })}
                              onClick={() => setEdited({ line: row.line, isNew: false })}
                            >
                              {t('Change')}
                            </Button>{' '}
                            <Button small disabled={isBusy || !!edited} aria-label={t('Remove line {n}: {name}', { n: row.line, name: row.user.username })} onClick={() => leave(ADD, rows.filter((one) => one !== row))}>
                              {t('Remove')}
                            </Button>
                          </>
                        )}
                      </td>
                    </tr>
                  ),
                )}
              </tbody>
            </table>
          </div>
        )}
        {rows.length > 0 && (
          <p className="quiet" role="status">
            {t('{n} to be sent, {made} made, {wrong} to be corrected first', { n: left.length, made: rows.filter((row) => row.state === 'ok').length, wrong })}
          </p>
        )}
      </div>
      <MadePasswords made={made} kept={kept} />
      <div className="dialog-foot">
        <Button disabled={isBusy} onClick={kept.close}>{t('Close')}</Button>
        <Button kind="main" disabled={isBusy || !!edited || !left.length} onClick={() => void run()}>
          {t('Make the users')}
        </Button>
      </div>
    </Dialog>
  )
}
