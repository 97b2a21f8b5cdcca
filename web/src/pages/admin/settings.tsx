// The server's configuration as it counts now: what each key is set to, and where that comes from.
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import type { Schema } from '../../api/client'
import { settingsQuery } from '../../api/queries'
import { t } from '../../i18n/i18n'
import { Check, Empty, ErrorNote, Loading, Said, TableCard } from '../../ui/ui'

type Setting = Schema['Settings']['settings'][number]

const textOf = (value: unknown) => (Array.isArray(value) ? value.join(', ') : typeof value === 'string' ? value : JSON.stringify(value))

function Source({ setting }: { setting: Setting }) {
  if (setting.source === 'file') return <strong>{t('file, line {line}', { line: String(setting.line ?? '?') })}</strong>
  if (setting.source === 'command line') return <strong>{t('command line')}</strong>
  return <span className="quiet">{t('default')}</span>
}

function Row({ setting }: { setting: Setting }) {
  const isUnset = setting.value === null || (Array.isArray(setting.value) && !setting.value.length)
  return (
    <tr>
      <th scope="row">
        <code>{setting.key}</code>
      </th>
      <td className="anywhere">{isUnset ? <span className="quiet">–</span> : <code>{textOf(setting.value)}</code>}</td>
      <td className="nowrap">
        <Source setting={setting} />
      </td>
      <td className="small">
        <Said>{setting.help}</Said>
      </td>
    </tr>
  )
}

export default function Settings() {
  const { data, error } = useQuery(settingsQuery)
  const [text, setText] = useState('')
  const [isChanged, setChanged] = useState(false)
  if (error) return <ErrorNote error={error} />
  if (!data) return <Loading />
  const part = text.toLowerCase()
  const shown = data.settings.filter((one) => (!isChanged || one.source !== 'default') && `${one.key} ${textOf(one.value)} ${one.help}`.toLowerCase().includes(part))
  return (
    <div className="stack">
      <p className="quiet">
        {data.file ? (
          <>
            {t('The server’s file; after a change, tell the server to read it again (SIGHUP):')} <code>{data.file}</code>.{' '}
          </>
        ) : (
          `${t('The server has no configuration file: all defaults hold.')} `
        )}
        {t('A dash: not set, or the machine decides.')}
      </p>
      {data.needRestart.length > 0 && (
        <p className="note" data-kind="wait">
          {t('Changed in the file, but in force only after a restart:')} <code>{data.needRestart.join(', ')}</code>
        </p>
      )}
      <div className="row">
        <input type="search" className="input" aria-label={t('Key, value or meaning')} placeholder={t('Key, value or meaning')} value={text} onChange={(event) => setText(event.target.value)} />
        <Check checked={isChanged} onChange={(event) => setChanged(event.target.checked)}>
          {t('Only what is no default')}
        </Check>
        <span className="quiet" role="status">
          {t('{n} setting|{n} settings', { n: shown.length })}
        </span>
      </div>
      {shown.length ? (
        <TableCard label={t('Settings')} heads={[t('Setting'), t('Value'), t('Comes from'), t('What for')]}>
          {shown.map((setting) => (
            <Row key={setting.key} setting={setting} />
          ))}
        </TableCard>
      ) : (
        <div className="card">
          <Empty title={t('No setting is like this')} />
        </div>
      )}
    </div>
  )
}
