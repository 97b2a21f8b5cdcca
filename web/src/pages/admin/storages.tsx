// Storages as administrators see them: what each is, whether it is well, which groups may use it, and how many jobs run with it.
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { useState, type FormEvent } from 'react'
import { errorOfAll } from '../../api/actions'
import { call, enc, get, type Group, type Schema } from '../../api/client'
import { groupsQuery, storageHealthQuery } from '../../api/queries'
import { t } from '../../i18n/i18n'
import { filesHref } from '../../lib/files'
import { bytes } from '../../lib/format'
import { groupPatch } from '../../lib/groups'
import { grantOf, grantSet, storageWhere, type Grant } from '../../lib/storages'
import { Link } from '../../router'
import { Button, Dialog, Empty, ErrorNote, Loading, Meter, Said, SelectField, TableCard, useBusy, useUndo, useWhileThere } from '../../ui/ui'

type Storage = Schema['StorageHealth']

const configsOf = (group: Group | undefined) => group?.extension?.acls?.storageConfigs ?? []

const groupRead = (name: string) => get<Group>(`/api/v2/groups/${enc(name)}`)
const configsPut = (now: Group, storageConfigs: string[]) => call('PUT', '/api/v2/groups', { json: { patch: true, data: groupPatch(now, { storageConfigs }) } })

/** What was done to one group: the list that it has now, and the one before. */
interface Done {
  name: string
  before: string[]
  after: string[]
}

async function grantChange(name: string, storage: string, was: Grant, grant: Grant): Promise<Done> {
  const now = await groupRead(name)
  const before = configsOf(now)
  if (grantOf(before, storage) !== was) throw new Error(t('somebody has changed {name} since.', { name }))
  const after = grantSet(before, storage, grant)
  await configsPut(now, after)
  return { name, before, after }
}

async function grantBack({ name, before, after }: Done) {
  const now = await groupRead(name)
  if (configsOf(now).join() !== after.join()) throw new Error(t('somebody has changed {name} since.', { name }))
  await configsPut(now, before)
}

/** Each of them; throws what failed when all were tried. */
async function eachOf<T>(items: T[], nameOf: (item: T) => string, action: (item: T) => Promise<unknown>) {
  const failed: [string, unknown][] = []
  for (const item of items) await action(item).catch((failure: unknown) => failed.push([nameOf(item), failure]))
  if (failed.length) throw errorOfAll(failed)
}

function GrantDialog({ storage, groups, onClose }: { storage: string; groups: Group[]; onClose: () => void }) {
  const [drawn] = useState(groups) // they may be read again while this is open
  const [error, setError] = useState<unknown>(null)
  const [isBusy, during] = useBusy()
  const close = useWhileThere(onClose)
  const queries = useQueryClient()
  const undo = useUndo()
  const fresh = () => Promise.all(['groups', 'users', 'storages'].map((key) => queries.invalidateQueries({ queryKey: [key] })))
  const submit = async (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault()
    const form = new FormData(event.currentTarget)
    const changes = drawn.flatMap((group) => {
      const name = group.groupname ?? ''
      const was = grantOf(configsOf(group), storage)
      const grant = form.get(name) as Grant
      return grant === was ? [] : [{ name, was, grant }]
    })
    const done: Done[] = []
    setError(null)
    try {
      await eachOf(
        changes,
        ({ name }) => name,
        async ({ name, was, grant }) => done.push(await grantChange(name, storage, was, grant)),
      )
      close()
    } catch (failure) {
      setError(failure)
    }
    if (!done.length) return
    await fresh()
    undo(t('Who may use {name} is changed.', { name: storage }), () => eachOf(done, ({ name }) => name, grantBack).finally(() => void fresh()))
  }
  return (
    <Dialog title={t('Groups that may use {name}', { name: storage })} onClose={onClose}>
      <form className="stack" onSubmit={(event) => void during(() => submit(event))}>
        {error !== null && <ErrorNote error={error} />}
        <p className="quiet">{t('The first storage of a group is the default of its members: a job that asks for its default storages has it. Administrators may use all storages.')}</p>
        {!drawn.length && <p>{t('There is no group.')}</p>}
        <div className="fields">
          {drawn.map((group) => (
            <SelectField key={group.groupname} label={group.groupname ?? ''} name={group.groupname ?? ''} defaultValue={grantOf(configsOf(group), storage)}>
              <option value="none">{t('may not use it')}</option>
              <option value="use">{t('may use it')}</option>
              <option value="default">{t('may use it, by default')}</option>
            </SelectField>
          ))}
        </div>
        <div className="dialog-foot">
          <Button onClick={onClose}>{t('Cancel')}</Button>
          <Button type="submit" kind="main" disabled={isBusy}>
            {t('Change')}
          </Button>
        </div>
      </form>
    </Dialog>
  )
}

function State({ health }: { health: Storage['health'] }) {
  const [word, look] = {
    unseen: [t('not looked at yet'), 'WAITING'],
    well: [t('Healthy'), 'SUCCEEDED'],
    unwritable: [t('Not writable'), 'STOPPING'],
    absent: [t('Its folder is not there'), 'FAILED'],
    silent: [t('Does not answer'), 'FAILED'],
    elsewhere: [t('not on the server'), 'STOPPED'],
  }[health.state] as [string, string]
  return (
    <>
      <span className="state" data-state={look}>
        {word}
      </span>
      {health.message && (
        <div className="small anywhere">
          <Said>{health.message}</Said>
        </div>
      )}
    </>
  )
}

function Disk({ health: { totalBytes: total, freeBytes: free = 0 } }: { health: Storage['health'] }) {
  if (!total) return <>–</>
  return <Meter label={t('{n} free', { n: bytes(free) })} used={total - free} total={total} text={bytes(total)} />
}

function Permission({ storage: { share, readOnly, rootSquash } }: { storage: Storage }) {
  return <>{[readOnly ? t('read only') : t('read and write'), share ? t('all of it') : t('the folder of its user'), rootSquash && t('root is the owner of the folder')].filter(Boolean).join(', ')}</>
}

function Groups({ groups, storage }: { groups: Group[]; storage: string }) {
  return groups
    .filter((group) => configsOf(group).includes(storage))
    .map((group) => (
      <div key={group.groupname}>
        {group.groupname} {grantOf(configsOf(group), storage) === 'default' && <span className="tag">{t('default')}</span>}
      </div>
    ))
}

export default function Storages() {
  const { data, error: unread } = useQuery(storageHealthQuery)
  const { data: groups, error: groupsError } = useQuery(groupsQuery)
  const [asked, ask] = useState<string | null>(null)
  const error = unread ?? groupsError
  if (!data || !groups) return error ? <ErrorNote error={error} /> : <Loading />
  if (!data.storages.length)
    return (
      <div className="card">
        <Empty title={t('No storage is configured')}>
          <p>{t('The operator names storages in the configuration of the server (storages); a reload makes them known.')}</p>
        </Empty>
      </div>
    )
  return (
    <div className="stack">
      {error && <ErrorNote error={error} />}
      <p className="quiet">{t('What a storage is stands in the configuration of the server, which a reload reads again. Which groups may use it is said here.')}</p>
      <TableCard label={t('Storages')} heads={[t('Name'), t('State'), t('Kind'), t('Where it is'), t('What a job sees'), t('Disk'), t('Groups'), { number: t('Jobs that run with it') }, { hidden: t('Actions') }]}>
        {data.storages.map((storage) => (
          <tr key={storage.name}>
            <th scope="row">
              <Link href={filesHref(storage.name)} aria-label={t('Files of {name}', { name: storage.name })}>
                {storage.name}
              </Link>
            </th>
            <td>
              <State health={storage.health} />
            </td>
            <td lang="en">{storage.type}</td>
            <td className="anywhere">
              {storage.directory && <code>{storage.directory}</code>}
              {storage.claim && <div>{t('claim {name}', { name: storage.claim })}</div>}
              <div className="small quiet" lang="">{storageWhere({ data: storage })}</div>
            </td>
            <td>
              <Permission storage={storage} />
            </td>
            <td>
              <Disk health={storage.health} />
            </td>
            <td>
              <Groups groups={groups} storage={storage.name} />
            </td>
            <td className="number">{storage.jobs}</td>
            <td>
              <Button small aria-label={t('Groups that may use {name} …', { name: storage.name })} onClick={() => ask(storage.name)}>
                {t('Groups …')}
              </Button>
            </td>
          </tr>
        ))}
      </TableCard>
      {data.jobsNotRead > 0 && <p className="small quiet">{t('Of the jobs that run the newest {read} were looked at, and {n} was not.|Of the jobs that run the newest {read} were looked at, and {n} were not.', { read: data.jobsRead, n: data.jobsNotRead })}</p>}
      {asked !== null && <GrantDialog storage={asked} groups={groups} onClose={() => ask(null)} />}
    </div>
  )
}
