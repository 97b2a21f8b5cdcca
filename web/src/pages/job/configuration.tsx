import { useQuery } from '@tanstack/react-query'
import { configQuery, jobPageQuery } from '../../api/queries'
import Code from '../../editor/code'
import { t } from '../../i18n/i18n'
import { fileSave } from '../../lib/csv'
import { jobJson } from '../../lib/job-json'
import { useSearch } from '../../router'
import '../../style/submit.css'
import { Diff } from '../../ui/diff'
import { Forms } from '../../ui/forms'
import { Button, Copy, ErrorNote, Loading, SelectField } from '../../ui/ui'

/** The name without a number or a time at its end: runs of one experiment share it. */
const stem = (name: string) => name.replace(/[-_.]?\d[\w-]*$/, '')

/** The job file as it was submitted, and what differs from another run's. */
export default function Configuration({ name }: { name: string }) {
  const [user = '', job = ''] = name.split('~')
  const [search, change] = useSearch()
  const other = search.get('with') ?? ''
  const { data: text, error } = useQuery(configQuery(name))
  const { data: runs } = useQuery({ ...jobPageQuery(`username=${encodeURIComponent(user)}&keyword=${encodeURIComponent(stem(job))}`, 0, 50), refetchInterval: false })
  const { data: otherText, error: otherError } = useQuery({ ...configQuery(other), enabled: !!other })
  const others = (runs?.data ?? []).filter((run) => run.name !== job)
  const submitted = runs?.data.find((run) => run.name === job)?.submissionTime ?? Infinity
  const before = others.filter((run) => (run.submissionTime ?? 0) <= submitted).reduce<(typeof others)[number] | undefined>((last, run) => (!last || (run.submissionTime ?? 0) > (last.submissionTime ?? 0) ? run : last), undefined)
  if (error) return <ErrorNote error={error} />
  if (text === undefined) return <Loading />
  const json = other ? null : jobJson(text)
  const isJson = json !== null && search.get('as') === 'json'
  const shown = isJson ? json : text
  return (
    <div className="stack">
      <div className="row row-foot">
        <SelectField label={t('Compare with')} value={other} onChange={(event) => change({ with: event.target.value })}>
          <option value="">{t('nothing')}</option>
          {others.map((run) => (
            <option key={run.name} value={`${run.username}~${run.name}`}>
              {run === before ? t('{name}, the run before', { name: run.name ?? '' }) : run.name}
            </option>
          ))}
        </SelectField>
        {before && !other && <Button onClick={() => change({ with: `${before.username}~${before.name}` })}>{t('What differs from the run before')}</Button>}
        <div className="row push">
          {json !== null && <Forms forms={['yaml', 'json']} />}
          <Copy text={shown} label={t('Copy the job file')} />
          <Button onClick={() => (isJson ? fileSave(`${job}.json`, 'application/json', shown) : fileSave(`${job}.yaml`, 'text/yaml', shown))}>{t('Save as a file')}</Button>
        </div>
      </div>
      {otherError && <ErrorNote error={otherError} />}
      {other && otherText !== undefined ? (
        <Diff before={otherText} after={text} />
      ) : (
        <div className="config-code">
          <Code text={shown} label={isJson ? t('Job file as JSON, read only') : t('Job file, read only')} />
        </div>
      )}
    </div>
  )
}
