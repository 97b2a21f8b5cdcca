// Other clusters, to which the person sends jobs.
import { useQueryClient } from '@tanstack/react-query'
import { useState, type FormEvent } from 'react'
import { clusterAdd, clusterRemove, clustersOfUser } from '../../api/bound-clusters'
import type { User } from '../../api/client'
import { t } from '../../i18n/i18n'
import { uriOf, type OtherCluster } from '../../lib/transfer'
import { Button, Dialog, ErrorNote, SelectField, TextField, useBusy, useToast, useUndo, useWhileThere } from '../../ui/ui'

export function OtherClusters({ user }: { user: User }) {
  const name = user.username ?? ''
  const clusters = clustersOfUser(user)
  const [isNew, setNew] = useState(false)
  const queries = useQueryClient()
  const undo = useUndo()
  const toast = useToast()
  const fresh = () => queries.invalidateQueries({ queryKey: ['users'] })
  const remove = (cluster: OtherCluster) =>
    void clusterRemove(name, cluster.alias)
      .then(
        () => undo(t('The cluster {name} is removed.', { name: cluster.alias }), () => clusterAdd(name, cluster).finally(() => void fresh())),
        (error: unknown) => toast(error instanceof Error ? error.message : String(error), 'error'),
      )
      .finally(() => void fresh())
  return (
    <section className="card" aria-label={t('Other clusters')}>
      <div className="card-head">
        <h2>{t('Other clusters')}</h2>
        <div className="push">
          <Button onClick={() => setNew(true)}>{t('Add a cluster …')}</Button>
        </div>
      </div>
      {!clusters.length && <p className="quiet">{t('To a cluster that stands here you send your jobs from their pages.')}</p>}
      <ul className="stack-tight">
        {clusters.map((cluster) => (
          <li key={cluster.alias} className="row">
            <strong lang="">{cluster.alias}</strong>
            <a href={cluster.uri} className="anywhere" lang="" target="_blank" rel="noopener noreferrer">
              {cluster.uri}
            </a>
            <span className="tag">{cluster.kind === 'skep' ? 'Skep' : 'OpenPAI'}</span>
            <div className="push">
              <Button small kind="danger" aria-label={t('Remove the cluster {name}', { name: cluster.alias })} onClick={() => remove(cluster)}>
                {t('Remove')}
              </Button>
            </div>
          </li>
        ))}
      </ul>
      {isNew && <ClusterDialog user={name} taken={clusters.map(({ alias }) => alias)} onClose={() => setNew(false)} onDone={fresh} />}
    </section>
  )
}

function ClusterDialog({ user, taken, onClose, onDone }: { user: string; taken: string[]; onClose: () => void; onDone: () => Promise<unknown> }) {
  const [error, setError] = useState<unknown>(null)
  const [isBusy, during] = useBusy()
  const close = useWhileThere(onClose)
  const [isWrong, setWrong] = useState(false)
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault()
    const form = new FormData(event.currentTarget)
    const uri = uriOf(String(form.get('uri')))
    const alias = String(form.get('alias'))
    setWrong(!uri)
    setError(taken.includes(alias) ? new Error(t('There is a cluster {name} already.', { name: alias })) : null)
    if (!uri || taken.includes(alias)) return
    const kind = form.get('kind') === 'openpai' ? 'openpai' : 'skep'
    void during(() => clusterAdd(user, { alias, uri, kind }).then(() => onDone().then(close), setError))
  }
  return (
    <Dialog title={t('Add a cluster')} onClose={onClose}>
      <form className="stack" onSubmit={submit}>
        {error !== null && <ErrorNote error={error} />}
        <TextField label={t('Name')} name="alias" required maxLength={64} pattern="[A-Za-z0-9_.\-]+" hint={t('Letters, digits, _ . -')} />
        <TextField label={t('Address of its portal')} name="uri" required maxLength={400} placeholder="https://…" error={isWrong ? t('This is no address: it begins with https:// or http://, and has no password.') : null} />
        <SelectField label={t('Kind')} name="kind" defaultValue="skep">
          <option value="skep">Skep</option>
          <option value="openpai">OpenPAI</option>
        </SelectField>
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
