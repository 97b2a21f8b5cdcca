// A job goes to another cluster: its file is opened there, and submitted by the person who has an account there.
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { jobStop, tagAdd, tagRemove } from '../../api/actions'
import { clustersOfUser } from '../../api/bound-clusters'
import { sessionGet, type JobDetail } from '../../api/client'
import { configQuery, userQuery } from '../../api/queries'
import { t } from '../../i18n/i18n'
import { fileSave } from '../../lib/csv'
import { carryPath, transferOf, transferTag, type OtherCluster } from '../../lib/transfer'
import { Link } from '../../router'
import { Button, Check, Dialog, Empty, ErrorNote, Loading, SelectField, useBusy, useToast, useWhileThere } from '../../ui/ui'

/** Where the job has been sent, as its tags say. */
export function Transfers({ tags }: { tags: string[] }) {
  const transfers = tags.flatMap((tag) => transferOf(tag) ?? [])
  return transfers.map(({ kind, alias, uri }) => (
    <p key={`${kind} ${alias} ${uri}`} className="note" data-kind={kind === 'done' ? 'good' : 'wait'}>
      {kind === 'done' ? t('Transferred to another cluster:') : t('Opened in another cluster; whether it was submitted there is not known:')}{' '}
      <a href={uri} target="_blank" rel="noopener noreferrer" lang="">
        {alias}
      </a>
    </p>
  ))
}

export default function TransferDialog({ name, detail, isJobLive, onClose }: { name: string; detail: JobDetail; isJobLive: boolean; onClose: () => void }) {
  const { data: me, error: meError } = useQuery(userQuery(sessionGet()?.user ?? ''))
  const { data: file, error: fileError } = useQuery(configQuery(name))
  const error = meError ?? fileError
  const clusters = me ? clustersOfUser(me) : []
  return (
    <Dialog title={t('Transfer this job to another cluster')} onClose={onClose}>
      {error && <ErrorNote error={error} />}
      {!me || file === undefined ? (
        !error && <Loading />
      ) : !clusters.length ? (
        <>
          <Empty title={t('No other cluster is known yet')}>
            <Link href="/profile">{t('Name one in your profile')}</Link>
          </Empty>
          <div className="dialog-foot">
            <Button onClick={onClose}>{t('Close')}</Button>
          </div>
        </>
      ) : (
        <Way name={name} tags={detail.tags ?? []} file={file} clusters={clusters} isJobLive={isJobLive} onClose={onClose} />
      )}
    </Dialog>
  )
}

function Way({ name, tags, file, clusters, isJobLive, onClose }: { name: string; tags: string[]; file: string; clusters: OtherCluster[]; isJobLive: boolean; onClose: () => void }) {
  const [chosen, setChosen] = useState(0)
  const [error, setError] = useState<unknown>(null)
  const [isStop, setStop] = useState(false)
  const close = useWhileThere(onClose)
  const [isMarking, during] = useBusy()
  const queries = useQueryClient()
  const toast = useToast()
  const cluster = clusters[chosen] ?? clusters[0]!
  const { alias, uri } = cluster
  const tried = transferTag({ kind: 'tried', alias, uri })
  const done = transferTag({ kind: 'done', alias, uri })
  const path = cluster.kind === 'skep' ? carryPath(file, location.origin) : null
  const isOpened = tags.includes(tried)
  const run = (action: () => Promise<unknown>) => {
    setError(null)
    return action()
      .catch(setError)
      .finally(() => void queries.invalidateQueries({ queryKey: ['job', name] }))
  }
  const save = () => fileSave(`${name}.yaml`, 'text/yaml', file)
  const open = () => {
    window.open(uri + (path ?? '/submit.html'), '_blank', 'noopener,noreferrer')
    if (!path) save()
    if (!isOpened) void run(() => tagAdd(name, tried))
  }
  const mark = () =>
    run(async () => {
      if (!tags.includes(done)) await tagAdd(name, done)
      if (isOpened) await tagRemove(name, tried)
      if (isStop && isJobLive) await jobStop(name)
      toast(t('{name} is marked as transferred.', { name }))
      close()
    })
  return (
    <div className="stack">
      {error !== null && <ErrorNote error={error} />}
      <SelectField label={t('Cluster')} value={chosen} onChange={(event) => setChosen(Number(event.target.value))}>
        {clusters.map(({ alias, uri }, index) => (
          <option key={alias} value={index} lang="">
            {alias} · {uri}
          </option>
        ))}
      </SelectField>
      <p>
        {path
          ? t('Its job file is opened there, in a tab of its own; you look at it, choose its name and virtual cluster, and submit it with your account there.')
          : t('Its job file is saved, and the page for new jobs is opened there: import the file, choose its name and virtual cluster, and submit it with your account there.')}{' '}
        {t('Values of secrets do not go along: write them again.')}
      </p>
      <div className="row">
        <Button kind={isOpened ? undefined : 'main'} onClick={open}>
          {t('Open it there')}
        </Button>
        <Button onClick={save}>{t('Save the job file')}</Button>
      </div>
      {isOpened && (
        <>
          <p>{t('When it is submitted there:')}</p>
          {isJobLive && (
            <Check checked={isStop} onChange={(event) => setStop(event.target.checked)}>
              {t('Stop it here')}
            </Check>
          )}
        </>
      )}
      <div className="dialog-foot">
        <Button onClick={onClose}>{t('Close')}</Button>
        {isOpened && (
          <Button kind="main" disabled={isMarking} onClick={() => void during(mark)}>
            {t('Mark it as transferred')}
          </Button>
        )}
      </div>
    </div>
  )
}
