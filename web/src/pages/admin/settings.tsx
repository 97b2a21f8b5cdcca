// The server's configuration as it counts now: what each key is set to, and where that comes from.
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { settingsQuery } from '../../api/queries'
import { t } from '../../i18n/i18n'
import { fileSave } from '../../lib/csv'
import { isUnset, settingsJson, settingsYaml, type Setting } from '../../lib/settings-file'
import { Forms, useForm, type Form } from '../../ui/forms'
import { Button, Check, Copy, Empty, ErrorNote, Loading, Said, TableCard } from '../../ui/ui'

const textOf = (value: unknown) => (Array.isArray(value) ? value.join(', ') : typeof value === 'string' ? value : JSON.stringify(value))

function sourceOf(setting: Setting): string {
  if (setting.source === 'file') return t('file, line {line}', { line: String(setting.line ?? '?') })
  return setting.source === 'command line' ? t('command line') : t('default')
}

const Source = ({ setting }: { setting: Setting }) => (setting.source === 'default' ? <span className="quiet">{sourceOf(setting)}</span> : <strong>{sourceOf(setting)}</strong>)

function Row({ setting }: { setting: Setting }) {
  return (
    <tr>
      <th scope="row">
        <code>{setting.key}</code>
      </th>
      <td className="anywhere">{isUnset(setting) ? <span className="quiet">–</span> : <code>{textOf(setting.value)}</code>}</td>
      <td className="nowrap">
        <Source setting={setting} />
      </td>
      <td className="small">
        <Said>{setting.help}</Said>
      </td>
    </tr>
  )
}

/** What is shown, as a file that skepd reads. */
function AsText({ settings, form }: { settings: Setting[]; form: Form }) {
  const text = form === 'json' ? settingsJson(settings) : settingsYaml(settings, sourceOf)
  return (
    <section className="card stack" aria-label={t('Settings')}>
      <div className="row">
        <p className="quiet small">{t('What is not set has no line. Passwords are masked.')}</p>
        <div className="row push">
          <Copy text={text} label={t('Copy the settings')} />
          <Button onClick={() => fileSave(`skepd.${form}`, form === 'json' ? 'application/json' : 'text/yaml', text)}>{t('Save as a file')}</Button>
        </div>
      </div>
      <pre className="code" tabIndex={0} role="region" aria-label={form === 'json' ? t('Settings as JSON') : t('Settings as YAML')}>
        {text}
      </pre>
    </section>
  )
}

const FORMS = ['table', 'yaml', 'json'] as const

export default function Settings() {
  const form = useForm(FORMS)
  const { data, error } = useQuery(settingsQuery)
  const [text, setText] = useState('')
  const [isChanged, setChanged] = useState(false)
  if (!data) return error ? <ErrorNote error={error} /> : <Loading />
  const part = text.toLowerCase()
  const shown = data.settings.filter((one) => (!isChanged || one.source !== 'default') && `${one.key} ${textOf(one.value)} ${one.help}`.toLowerCase().includes(part))
  return (
    <div className="stack">
      {error && <ErrorNote error={error} />}
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
        <div className="push">
          <Forms forms={FORMS} />
        </div>
      </div>
      {shown.length && form !== 'table' ? (
        <AsText settings={shown} form={form} />
      ) : shown.length ? (
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
