// The quotas of a user or of a group; administrators of the platform change them.
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { useState, type FormEvent } from 'react'
import { call, enc } from '../../api/client'
import { quotaQuery } from '../../api/queries'
import { t } from '../../i18n/i18n'
import { quotaChanged, quotaIsStill, quotaOwn, type QuotaValues } from '../../lib/groups'
import { QUOTAS, quotaName } from '../../lib/quota'
import { Button, Dialog, ErrorNote, Loading, TextField, useBusy, useUndo, useWhileThere } from '../../ui/ui'

export function QuotaDialog({ of, name, canChange, onClose }: { of: 'users' | 'groups'; name: string; canChange?: boolean; onClose: () => void }) {
  const query = quotaQuery(`${of}/${enc(name)}`)
  const { data: now, error: unread, isFetchedAfterMount } = useQuery({ ...query, staleTime: 0 }) // what was kept may be old
  const [data, setData] = useState<typeof now>() // what the fields began with: it may be read again while they are filled in
  if (!data && now && isFetchedAfterMount && unread === null) setData(now)
  const [error, setError] = useState<unknown>(null)
  const [isBusy, during] = useBusy()
  const close = useWhileThere(onClose)
  const queries = useQueryClient()
  const undo = useUndo()
  const set = (values: QuotaValues) => call('PUT', `/api/v2/${of}/${enc(name)}/quota`, { json: values }).finally(() => queries.invalidateQueries({ queryKey: ['quota'] }))
  const submit = async (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault()
    const form = new FormData(event.currentTarget)
    const values = QUOTAS.map((kind) => [kind, form.get(kind) === '' ? null : Number(form.get(kind))] as const)
    try {
      const { change, back } = quotaChanged(quotaOwn(data ?? {}), Object.fromEntries(values))
      if (Object.keys(change).length) {
        await set(change)
        undo(t('The quotas of {name} are changed.', { name }), async () => {
          if (!quotaIsStill(quotaOwn(await queries.fetchQuery({ ...query, staleTime: 0 })), change)) throw new Error(t('somebody has changed {name} since.', { name }))
          await set(back)
        })
      }
      close()
    } catch (failure) {
      setError(failure)
    }
  }
  const hintOf = (kind: (typeof QUOTAS)[number]) => {
    const { value, group, used } = data?.[kind] ?? {}
    const here = group && typeof value === 'number' ? t('The group {group} gives {n}.', { group, n: value }) : ''
    return [used === undefined ? '' : t('{used} used.', { used }), here].filter(Boolean).join(' ') || undefined
  }
  return (
    <Dialog title={t('Quotas of {name}', { name })} onClose={onClose}>
      {unread !== null && <ErrorNote error={unread} />}
      {!data ? (
        unread === null && <Loading />
      ) : (
        <form className="stack" onSubmit={(event) => void during(() => submit(event))}>
          {error !== null && <ErrorNote error={error} />}
          <p className="quiet">{of === 'users' ? t('Empty: the largest of the user’s groups counts, or none.') : t('Each member may have so much; empty: no limit.')}</p>
          <div className="fields">
            {QUOTAS.map((kind) => (
              <TextField
                key={kind}
                label={quotaName(kind)}
                name={kind}
                type="number"
                min={kind === 'requestsPerSecond' ? 1 : 0}
                max={1e9}
                readOnly={!canChange}
                defaultValue={data[kind]?.group ? '' : (data[kind]?.value ?? '')}
                hint={hintOf(kind)}
              />
            ))}
          </div>
          <div className="dialog-foot">
            <Button onClick={onClose}>{canChange ? t('Cancel') : t('Close')}</Button>
            {canChange && (
              <Button type="submit" kind="main" disabled={isBusy}>
                {t('Change')}
              </Button>
            )}
          </div>
        </form>
      )}
    </Dialog>
  )
}
