// What a running task serves on one of its ports, in a tab of its own: the server gives a way in, on an origin of the port's own.
import { useQuery } from '@tanstack/react-query'
import { useMemo, useState, type FormEvent } from 'react'
import { call, enc, type JobDetail, type Schema } from '../../api/client'
import { infoQuery, taskRowQuery } from '../../api/queries'
import { t } from '../../i18n/i18n'
import { isNamed, portName } from '../../lib/port-names'
import { TaskStates } from '../../lib/task-states'
import { Button, Dialog, Empty, ErrorNote, Loading, SelectField, TextField, useBusy, useWhileThere } from '../../ui/ui'

const SHOWN_MAX = 1000 // running tasks to choose among

interface Place {
  label: string
  offset: number
  number: string
}

/** The ports of a task, each with its number, those of TensorBoard and notebooks first, as they were asked for; ssh is no page. */
export const placesOf = (ports: Record<string, string> | undefined): Place[] =>
  Object.entries(ports ?? {})
    .filter(([label]) => label !== 'ssh')
    .sort(([a], [b]) => Number(isNamed(b)) - Number(isNamed(a)))
    .flatMap(([label, numbers]) => numbers.split(',').map((number, offset) => ({ label, offset, number })))

export default function PortDialog({ name, detail, onClose }: { name: string; detail: JobDetail; onClose: () => void }) {
  const { data: info } = useQuery(infoQuery)
  const states = useMemo(() => TaskStates.of(detail), [detail])
  const running = useMemo(() => states.numbers('RUNNING').slice(0, SHOWN_MAX), [states])
  const [chosen, setChosen] = useState(-1) // a task by its number: others end meanwhile
  const [way, setWay] = useState<string | null>(null)
  const [error, setError] = useState<unknown>(null)
  const [isBusy, during] = useBusy()
  const close = useWhileThere(onClose)
  const shown = running.includes(chosen) ? chosen : (running[0] ?? -1)
  const place = states.place(shown)
  const { data: task, isLoading } = useQuery({ ...taskRowQuery(name, place?.role ?? '', place?.index ?? 0), enabled: !!place })
  const places = placesOf(task?.containerPorts ?? undefined)
  const open = async (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault()
    const form = new FormData(event.currentTarget)
    const port = places[Number(form.get('place'))]!
    // now, as a browser opens tabs for who has just pressed something; what is shown there never gets hold of this page
    const tab = window.open('about:blank', '_blank')
    if (tab) tab.opener = null
    try {
      const { uri } = await call<Schema['WebPort']>('POST', `/api/v2/jobs/${enc(name)}/webPorts`, {
        json: { ...place!, label: port.label, offset: port.offset, path: String(form.get('path')) || '/' },
      })
      if (!/^https?:\/\//.test(uri)) throw new Error(t('The server named no address.'))
      if (!tab) {
        setWay(uri)
        return
      }
      tab.location.replace(uri)
      close()
    } catch (failure) {
      tab?.close()
      setError(failure)
    }
  }
  return (
    <Dialog title={t('Open a port')} onClose={onClose}>
      {info?.webPorts === false ? (
        <Empty title={t('The administrator has not set up web ports.')}>{t('A program that listens on a port of a task cannot be shown here.')}</Empty>
      ) : isLoading ? (
        <Loading />
      ) : !task || !places.length ? (
        <Empty title={t('No task of this job runs')}>{t('A port can be opened while its task runs.')}</Empty>
      ) : (
        <form className="stack" onSubmit={(event) => void during(() => open(event))}>
          {error !== null && <ErrorNote error={error} />}
          <p className="quiet">{t('A notebook, TensorBoard or another page that a task serves. It opens in a tab of its own, for you alone and for 8 hours at most.')}</p>
          <SelectField label={t('Task')} value={shown} onChange={(event) => setChosen(Number(event.target.value))}>
            {running.map((number) => {
              const { role, index } = states.place(number)!
              return (
                <option key={number} value={number}>
                  {role}[{index}]
                </option>
              )
            })}
          </SelectField>
          <SelectField label={t('Port')} name="place">
            {places.map(({ label, number }, index) => (
              <option key={number} value={index}>
                {portName(label)} · {number}
              </option>
            ))}
          </SelectField>
          <TextField label={t('Path')} name="path" placeholder="/" maxLength={1000} hint={t('Where it begins, such as /lab')} />
          {way && (
            <p role="status">
              <a href={way} target="_blank" rel="noopener noreferrer">
                {t('The browser opened no tab: open it here, within a minute.')}
              </a>
            </p>
          )}
          <div className="dialog-foot">
            <Button onClick={onClose}>{t('Cancel')}</Button>
            <Button type="submit" kind="main" disabled={isBusy}>
              {t('Open')}
            </Button>
          </div>
        </form>
      )}
    </Dialog>
  )
}
