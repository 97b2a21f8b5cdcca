// Who asked for which change, and what became of it.
import { useInfiniteQuery } from '@tanstack/react-query'
import { Fragment, useState, type FormEvent } from 'react'
import { get, type Schema } from '../../api/client'
import { SELDOM_MS } from '../../api/queries'
import { languageGet, t } from '../../i18n/i18n'
import { clock } from '../../lib/format'
import { useSearch } from '../../router'
import { Button, Check, Empty, ErrorNote, Loading, Said, TableCard, TextField } from '../../ui/ui'

type AuditRecord = Schema['AuditRecord']
interface AuditPage {
  data: AuditRecord[]
  cursor: string | null
}

const PAGE = 100

/** What differs, a line each: "admin: false → true". */
export function differences(before: unknown, after: unknown): string[] {
  const old = (before ?? {}) as Record<string, unknown>
  const now = (after ?? {}) as Record<string, unknown>
  const text = (value: unknown) => (value === undefined ? '–' : typeof value === 'string' ? value : JSON.stringify(value))
  return [...new Set([...Object.keys(old), ...Object.keys(now)])].filter((key) => text(old[key]) !== text(now[key])).map((key) => `${key}: ${text(old[key])} → ${text(now[key])}`)
}

function Row({ record }: { record: AuditRecord }) {
  const [isOpen, setOpen] = useState(false)
  const lines = differences(record.before, record.after)
  return (
    <Fragment>
      <tr>
        <td className="nowrap">{clock(record.time, languageGet())}</td>
        <td>
          {record.username || t('nobody known')}
          <div className="small quiet" lang="en">
            {record.address}
          </div>
        </td>
        <td className="anywhere">
          <code>{record.route}</code>
        </td>
        <td className="anywhere">
          <Said>{[record.subjectKind, record.subject].filter(Boolean).join(' ')}</Said>
        </td>
        <td className="anywhere">
          {record.outcome === 'done' ? t('done') : <Said>{record.outcome}</Said>}
          {record.reason && <div className="small quiet" lang="en">
              {record.reason}
            </div>}
        </td>
        <td>
          {lines.length > 0 && (
            <Button small aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
              {t('What changed')}
            </Button>
          )}
        </td>
      </tr>
      {isOpen && (
        <tr>
          <td colSpan={6}>
            <ul className="mono small anywhere" lang="en">
              {lines.map((line) => (
                <li key={line}>{line}</li>
              ))}
            </ul>
          </td>
        </tr>
      )}
    </Fragment>
  )
}

export default function Audit() {
  const [search, change] = useSearch()
  const filter = new URLSearchParams()
  for (const key of ['user', 'subject', 'refused']) if (search.get(key)) filter.set(key, search.get(key)!)
  const { data, error, fetchNextPage, hasNextPage, isFetchingNextPage } = useInfiniteQuery({
    queryKey: ['audit', filter.toString()],
    queryFn: ({ pageParam, signal }) => get<AuditPage>(`/api/v2/audit?limit=${PAGE}&${filter}${pageParam ? `&cursor=${pageParam}` : ''}`, signal),
    initialPageParam: '',
    getNextPageParam: (page) => page.cursor,
    refetchInterval: ({ state }) => ((state.data?.pages.length ?? 0) > 1 ? false : SELDOM_MS), // whoever reads older ones is not moved away from them
  })
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault()
    const form = new FormData(event.currentTarget)
    change({ user: String(form.get('user')).trim(), subject: String(form.get('subject')).trim() })
  }
  const records = data?.pages.flatMap((page) => page.data) ?? []
  return (
    <>
      <form className="row row-foot" onSubmit={submit}>
        <TextField label={t('Who')} name="user" defaultValue={search.get('user') ?? ''} />
        <TextField label={t('About')} name="subject" defaultValue={search.get('subject') ?? ''} />
        <Button type="submit">{t('Search')}</Button>
        <Check checked={search.get('refused') === 'true'} onChange={(event) => change({ refused: event.target.checked ? 'true' : null })}>
          {t('Only what was refused')}
        </Check>
      </form>
      {error && <ErrorNote error={error} />}
      {!data && !error && <Loading />}
      {data && !records.length && (
        <div className="card">
          <Empty title={t('Nothing was asked for that is like this')} />
        </div>
      )}
      {records.length > 0 && (
        <TableCard label={t('Audit')} heads={[t('When'), t('Who'), t('What'), t('About'), t('Outcome'), { hidden: t('Actions') }]}>
          {records.map((record) => (
            <Row key={record.number} record={record} />
          ))}
        </TableCard>
      )}
      {hasNextPage && (
        <Button disabled={isFetchingNextPage} onClick={() => void fetchNextPage()}>
          {t('Show older ones')}
        </Button>
      )}
    </>
  )
}
