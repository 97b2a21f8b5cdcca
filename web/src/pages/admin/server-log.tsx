// The newest lines of the server's own log, for administrators who have no shell there.
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { LOG_LEVELS, serverLogQuery, type LogLevel } from '../../api/queries'
import { languageGet, t } from '../../i18n/i18n'
import { clock } from '../../lib/format'
import { Check, Empty, ErrorNote, Loading, Said, SelectField, TableCard, TextField } from '../../ui/ui'

const SHOWN = [100, 500, 2000]

function levelName(level: LogLevel): string {
  switch (level) {
    case 'error':
      return t('Error')
    case 'warning':
      return t('Warning')
    case 'info':
      return t('Information')
    case 'debug':
      return t('Debugging')
  }
}

const LOOKS = { error: 'FAILED', warning: 'STOPPING', info: 'RUNNING', debug: 'STOPPED' } as const

export default function ServerLog() {
  const [level, setLevel] = useState<LogLevel>('debug')
  const [isFollowing, follow] = useState(true)
  const [shown, show] = useState(SHOWN[0]!)
  const [words, setWords] = useState('')
  const { data, error } = useQuery(serverLogQuery(level, isFollowing))
  const wanted = words.toLowerCase()
  const lines = (data?.lines ?? []).filter(({ part, text }) => !wanted || `${part}: ${text}`.toLowerCase().includes(wanted))
  const newest = lines.slice(-shown).reverse()
  return (
    <section className="stack" aria-label={t('Log of the server')}>
      <h2>{t('Log of the server')}</h2>
      <div className="fields">
        <SelectField label={t('At least as important as')} value={level} onChange={({ target }) => setLevel(target.value as LogLevel)}>
          {LOG_LEVELS.map((one) => (
            <option key={one} value={one}>
              {levelName(one)}
            </option>
          ))}
        </SelectField>
        <SelectField label={t('Lines at most')} value={shown} onChange={({ target }) => show(Number(target.value))}>
          {SHOWN.map((count) => (
            <option key={count}>{count}</option>
          ))}
        </SelectField>
        <TextField label={t('With these words')} type="search" value={words} onChange={({ target }) => setWords(target.value)} />
      </div>
      <Check checked={isFollowing} onChange={({ target }) => follow(target.checked)}>
        {t('Follow it')}
      </Check>
      {error && <ErrorNote error={error} />}
      {!data && !error && <Loading />}
      {data?.missed && <p className="small quiet">{t('Lines between these were gone before they could be read.')}</p>}
      {data && !newest.length && (
        <div className="card">
          <Empty title={t('No such line')}>
            <p>{t('The server has its newest 2,000 lines in memory, since it was started, at the level that its configuration names (log.level).')}</p>
          </Empty>
        </div>
      )}
      {newest.length > 0 && (
        <TableCard label={t('Newest lines')} heads={[t('Time'), t('Level'), t('Part'), t('Text')]}>
          {newest.map((line) => (
            <tr key={line.number}>
              <td className="nowrap">
                <time dateTime={new Date(line.time).toISOString()}>{clock(line.time, languageGet())}</time>
              </td>
              <td>
                <span className="state" data-state={LOOKS[line.level]}>
                  {levelName(line.level)}
                </span>
              </td>
              <td lang="en">{line.part}</td>
              <td className="anywhere">
                <Said>{line.text}</Said>
              </td>
            </tr>
          ))}
        </TableCard>
      )}
    </section>
  )
}
