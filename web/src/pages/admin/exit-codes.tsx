// What each exit code means: the table by which the server judges now, with the operator's rows marked.
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import type { Schema } from '../../api/client'
import { exitSpecsQuery } from '../../api/queries'
import { exitWords, t } from '../../i18n/i18n'
import { Check, Empty, ErrorNote, ExitText, Loading, Said, TableCard } from '../../ui/ui'

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

/** What a rule looks for, as its file has it; long lists are folded. */
function Conditions({ all }: { all: Record<string, unknown>[] }) {
  if (!all.length) return <span className="quiet">–</span>
  const list = (
    <ol className="small mono stack-tight" lang="en">
      {all.map((conditions, index) => (
        <li key={index}>
          {Object.entries(conditions).map(([key, value]) => (
            <div key={key}>
              {key}: {typeof value === 'string' ? value : JSON.stringify(value)}
            </div>
          ))}
        </li>
      ))}
    </ol>
  )
  if (all.length === 1) return list
  return (
    <details>
      <summary>{t('{n} pattern|{n} patterns', { n: all.length })}</summary>
      {list}
    </details>
  )
}

const isIn = (row: Schema['ExitRow'], wanted: string) =>
  [String(row.code), row.phrase, row.type, row.reason, exitWords(row.reason ?? ''), ...(row.conditions ?? []).map((one) => JSON.stringify(one))].some((part) => part?.toLowerCase().includes(wanted))

export default function ExitCodes() {
  const { data, error } = useQuery(exitSpecsQuery)
  const [text, setText] = useState('')
  const [isOwn, setOwn] = useState(false)
  if (!data) return error ? <ErrorNote error={error} /> : <Loading />
  const wanted = text.toLowerCase()
  const shown = data.filter((row) => (!isOwn || row.operator) && isIn(row, wanted))
  return (
    <div className="stack">
      {error && <ErrorNote error={error} />}
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
        <TableCard label={t('Exit codes')} heads={[{ number: t('Exit code') }, t('Name'), t('Cause'), t('What follows'), t('Patterns'), t('Reason and what to do')]}>
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
              <td className="anywhere">
                <Conditions all={row.conditions ?? []} />
              </td>
              <td className="anywhere">
                <ExitText text={row.reason ?? ''} />
                <ul className="small quiet">
                  {(row.solution ?? []).map((line) => (
                    <li key={line}>
                      <ExitText text={line} />
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
