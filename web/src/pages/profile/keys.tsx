// The person's public keys for ssh. A pair can be made here: the private key goes to a file, and nowhere else.
import { useQueryClient } from '@tanstack/react-query'
import { useState, type FormEvent } from 'react'
import { call, enc, get, type User } from '../../api/client'
import { t } from '../../i18n/i18n'
import { fileSave } from '../../lib/csv'
import { canMakeKeys, isPublicKey, keyMake, type KeyKind, type KeyPair } from '../../lib/ssh-key'
import { Button, Confirm, Copy, Dialog, Empty, ErrorNote, SelectField, TextField, useBusy, useToast, useUndo, useWhileThere } from '../../ui/ui'

interface SshKey {
  title: string
  value: string
  time?: number
}

const keysOf = (user: User) => ((user.extension as { sshKeys?: SshKey[] } | undefined)?.sshKeys ?? []).filter((key) => key.value)

/** Changes the keys as they are now: another tab may have changed them since the page was read. */
async function keysChange(user: string, change: (keys: SshKey[]) => SshKey[]) {
  const now = keysOf(await get<User>(`/api/v2/users/${enc(user)}`))
  await call('PUT', `/api/v2/users/${enc(user)}/extension`, { json: { extension: { sshKeys: change(now) } } })
}

const keyAdd = (user: string, key: SshKey) => keysChange(user, (keys) => [...keys.filter(({ value }) => value !== key.value), key])
const keyRemove = (user: string, key: SshKey) => keysChange(user, (keys) => keys.filter(({ value }) => value !== key.value))

type Asked = { kind: 'add' | 'make' } | { kind: 'remove'; key: SshKey } | null

export function Keys({ user }: { user: User }) {
  const name = user.username ?? ''
  const keys = keysOf(user)
  const queries = useQueryClient()
  const toast = useToast()
  const undo = useUndo()
  const [asked, ask] = useState<Asked>(null)
  const fresh = () => queries.invalidateQueries({ queryKey: ['users'] })
  const close = () => ask(null)
  const add = async (key: SshKey) => {
    await keyAdd(name, key)
    await fresh()
    toast(t('The key {name} is added: tasks that start from now on let it in.', { name: key.title }))
  }
  const remove = async (key: SshKey) => {
    await keyRemove(name, key)
    await fresh()
    undo(t('The key {name} is removed.', { name: key.title }), () => keyAdd(name, key).finally(() => void fresh()))
  }
  return (
    <section className="card" aria-label={t('Keys for ssh')}>
      <div className="card-head">
        <h2>{t('Keys for ssh')}</h2>
        <div className="row push">
          <Button onClick={() => ask({ kind: 'make' })}>{t('Make a key …')}</Button>
          <Button onClick={() => ask({ kind: 'add' })}>{t('Add a key …')}</Button>
        </div>
      </div>
      {!keys.length ? (
        <Empty title={t('There is no key yet')}>
          <p>{t('With a public key here you reach your tasks by ssh. Make one here, or with:')}</p>
          <code>ssh-keygen -t ed25519</code>
        </Empty>
      ) : (
        <ul className="stack">
          {keys.map((key) => (
            <li key={key.value} className="row">
              <strong lang="">{key.title}</strong>
              <code className="small clip grow" title={key.value}>
                {key.value}
              </code>
              <Copy text={key.value} label={t('Copy the key {name}', { name: key.title })} />
              <Button small kind="danger" aria-label={t('Remove the key {name}', { name: key.title })} onClick={() => ask({ kind: 'remove', key })}>
                {t('Remove')}
              </Button>
            </li>
          ))}
        </ul>
      )}
      {asked?.kind === 'add' && <AddDialog onClose={close} onSave={add} />}
      {asked?.kind === 'make' && <MakeDialog user={name} onClose={close} onSave={add} />}
      {asked?.kind === 'remove' && (
        <Confirm title={t('Remove the key {name}?', { name: asked.key.title })} action={t('Remove')} danger onClose={close} onConfirm={() => remove(asked.key)}>
          <p>{t('It opens no task that is started from now on.')}</p>
        </Confirm>
      )}
    </section>
  )
}

interface DialogProps {
  onClose: () => void
  onSave: (key: SshKey) => Promise<void>
}

function AddDialog({ onClose, onSave }: DialogProps) {
  const [error, setError] = useState<unknown>(null)
  const [isBusy, during] = useBusy()
  const close = useWhileThere(onClose)
  const [isWrong, setWrong] = useState(false)
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault()
    const form = new FormData(event.currentTarget)
    const value = String(form.get('value')).trim()
    setError(null)
    setWrong(!isPublicKey(value))
    if (isPublicKey(value)) void during(() => onSave({ title: String(form.get('title')), value, time: Date.now() }).then(close, setError))
  }
  return (
    <Dialog title={t('Add a key')} onClose={onClose}>
      <form className="stack" onSubmit={submit}>
        {error !== null && <ErrorNote error={error} />}
        <TextField label={t('Name')} name="title" required />
        <TextField label={t('Public key')} name="value" required placeholder="ssh-ed25519 AAAA…" error={isWrong ? t('This is no public key: it begins with ssh- or ecdsa-, and stands in a file that ends with .pub.') : null} />
        <div className="dialog-foot">
          <Button onClick={onClose}>{t('Cancel')}</Button>
          <Button type="submit" kind="main" disabled={isBusy}>
            {t('Add')}
          </Button>
        </div>
      </form>
    </Dialog>
  )
}

/** The public key can be added only when the private one has been saved: nobody could use it else. */
export function MakeDialog({ user, onClose, onSave }: DialogProps & { user: string }) {
  const [error, setError] = useState<unknown>(null)
  const [isBusy, setBusy] = useState(false)
  const [made, setMade] = useState<{ title: string; pair: KeyPair } | null>(null)
  const [isSaved, setSaved] = useState(false)
  const close = useWhileThere(onClose)
  const run = (action: Promise<unknown>) => {
    setError(null)
    setBusy(true)
    action.catch(setError).finally(() => setBusy(false))
  }
  const make = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault()
    const form = new FormData(event.currentTarget)
    const title = String(form.get('title'))
    run(keyMake(form.get('kind') as KeyKind, `${user}@${title}`).then((pair) => setMade({ title, pair })))
  }
  if (!canMakeKeys())
    return (
      <Dialog title={t('Make a key')} onClose={onClose}>
        <Empty title={t('This browser makes no keys here')}>
          <p>{t('Browsers make keys only for pages that came by https. Make one with:')}</p>
          <code>ssh-keygen -t ed25519</code>
        </Empty>
        <div className="dialog-foot">
          <Button onClick={onClose}>{t('Close')}</Button>
        </div>
      </Dialog>
    )
  return (
    <Dialog title={t('Make a key')} onClose={onClose}>
      {error !== null && <ErrorNote error={error} />}
      {made ? (
        <>
          <p>{t('Save the private key now: it is in this page alone, and gone with it. It is sent to nobody.')}</p>
          <pre className="code" tabIndex={0} aria-label={t('Public key')}>
            {made.pair.publicKey}
          </pre>
          <p className="quiet small">
            {t('Then put it where ssh finds it:')} <code>{`install -m 600 ~/Downloads/${made.title} ~/.ssh/${made.title}`}</code>
          </p>
          <div className="dialog-foot">
            <Button onClick={onClose}>{t('Cancel')}</Button>
            <Button
              kind={isSaved ? undefined : 'main'}
              onClick={() => {
                fileSave(made.title, 'application/x-pem-file', made.pair.privateKey)
                setSaved(true)
              }}
            >
              {t('Save the private key')}
            </Button>
            <Button kind={isSaved ? 'main' : undefined} disabled={!isSaved || isBusy} onClick={() => run(onSave({ title: made.title, value: made.pair.publicKey, time: Date.now() }).then(close))}>
              {t('Add the public key')}
            </Button>
          </div>
        </>
      ) : (
        <form className="stack" onSubmit={make}>
          <TextField label={t('Name')} name="title" required defaultValue="skep" maxLength={64} pattern="[A-Za-z0-9_\-]+" hint={t('Also of the file of the private key. Letters, digits, _ -')} />
          <SelectField label={t('Kind')} name="kind" defaultValue="ed25519">
            <option value="ed25519">Ed25519</option>
            <option value="rsa">{t('RSA, 3,072 bits, for old ssh clients')}</option>
          </SelectField>
          <div className="dialog-foot">
            <Button onClick={onClose}>{t('Cancel')}</Button>
            <Button type="submit" kind="main" disabled={isBusy}>
              {t('Make the key')}
            </Button>
          </div>
        </form>
      )}
    </Dialog>
  )
}
