// Passwords that were made for users: shown once, and saved from there.
import { useState } from 'react'
import { t } from '../../i18n/i18n'
import { csvOf, fileSave } from '../../lib/csv'
import { isAmong, type MadePassword } from '../../lib/password'
import { Button, TableCard } from '../../ui/ui'

/** Who closes the dialog without having saved them is asked once more; while they are made (`isBusy`) it stays, as nobody would see the rest. */
export function usePasswordsKept(made: MadePassword[], isBusy: boolean, onClose: () => void) {
  const [saved, setSaved] = useState<MadePassword[]>([])
  const [isWarned, setWarned] = useState(false)
  const isKept = isAmong(made, saved)
  const save = () => {
    fileSave('passwords.csv', 'text/csv', csvOf([['username', 'password'], ...made.map(({ username, password }) => [username, password])]))
    setSaved([...saved, ...made])
    setWarned(false)
  }
  const close = () => {
    if (isBusy) return
    if (isKept || isWarned) onClose()
    else setWarned(true)
  }
  return { isKept, isWarned: isWarned && !isKept, save, close }
}

export function MadePasswords({ made, kept }: { made: MadePassword[]; kept: ReturnType<typeof usePasswordsKept> }) {
  if (!made.length) return null
  return (
    <>
      <p>{t('These passwords are shown nowhere again. Give each to its user alone, by a way that others do not read.')}</p>
      <TableCard label={t('New passwords')} heads={[t('User'), t('Password')]}>
        {made.map(({ username, password }) => (
          <tr key={username}>
            <th scope="row">{username}</th>
            <td>
              <code>{password}</code>
            </td>
          </tr>
        ))}
      </TableCard>
      <div className="row">
        <Button kind={kept.isKept ? undefined : 'main'} onClick={kept.save}>
          {t('Save the passwords as CSV')}
        </Button>
      </div>
      {kept.isWarned && (
        <div className="note" data-kind="wait" role="alert">
          {t('They are not saved. To close without them, press again.')}
        </div>
      )}
    </>
  )
}
