// What each exit code means: the table by which the server judges now, with the operator's rows marked.
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { exitSpecsQuery } from '../../api/queries'
import { t } from '../../i18n/i18n'
import { Check, Empty, ErrorNote, Loading, Said, TableCard } from '../../ui/ui'

function behaviour(name: string | undefined): string {
  switch (name) {
    case 'TRANSIENT':
      return t('tried again')
    case 'TRANSIENT_CONFLICT':
      return t('tried again after a pause')
    case 'PERMANENT':
      return t('not tried again')
    default:
      return t('tried again while the job’s retries last')
  }
}

export default function ExitCodes() {
  const { data, error } = useQuery(exitSpecsQuery)
  const [text, setText] = useState('')
  const [isOwn, setOwn] = useState(false)
  if (error) return <ErrorNote error={error} />
  if (!data) return <Loading />
  const wanted = text.toLowerCase()
  const shown = data.filter((row) => (!isOwn || row.operator) && [String(row.code), row.phrase, row.type, row.reason].some((part) => part?.toLowerCase().includes(wanted)))
  return (
    <div className="stack">
      <div className="row">
        <input type="search" className="input" aria-label={t('Code, name or reason')} placeholder={t('Code, name or reason')} value={text} onChange={(event) => setText(event.target.value)} />
        <Check checked={isOwn} onChange={(event) => setOwn(event.target.checked)}>
          {t('Only the operator’s')}
        </Check>
        <span className="quiet push">{t('{n} code|{n} codes', { n: shown.length })}</span>
      </div>
      {shown.length === 0 ? (
        <div className="card">
          <Empty title={t('No row is like this')}>
            <p>{t('The operator adds rows in the file that exitRulesFile of the server’s configuration names; a reload takes them over.')}</p>
          </Empty>
        </div>
      ) : (
        <TableCard label={t('Exit codes')} heads={[{ number: t('Exit code') }, t('Name'), t('Cause'), t('What follows'), { number: t('Patterns') }, t('Reason and what to do')]}>
          {shown.map((row) => (
            <tr key={row.code}>
              <td className="number">{row.code}</td>
              <th scope="row">
                <Said>{row.phrase}</Said> {row.operator && <span className="tag">{t('the operator’s')}</span>}
              </th>
              <td>
                <Said>{row.type}</Said>
              </td>
              <td>{behaviour(row.behavior)}</td>
              <td className="number">{row.patterns}</td>
              <td className="anywhere">
                <Said>{row.reason}</Said>
                <ul className="small quiet">
                  {(row.solution ?? []).map((line) => (
                    <li key={line} lang="en">
                      {line}
                    </li>
                  ))}
                </ul>
              </td>
            </tr>
          ))}
        </TableCard>
      )}
    </div>
  )
}
