// What a job used over time: all its tasks, those of a role, or one.
import { useEffect, useState } from 'react'
import { enc, type JobDetail } from '../../api/client'
import { t } from '../../i18n/i18n'
import { isLive } from '../../lib/job-state'
import { TaskStates } from '../../lib/task-states'
import { navigate, useSearch } from '../../router'
import { SelectField, TextField } from '../../ui/ui'
import { UseOverTime } from '../../ui/use'

const LISTED_MAX = 500 // tasks of a role; of more, one gives the number

/** Of so many tasks that they are not listed: the number, which counts when one stops typing. */
function TaskNumber({ last, value, onValue }: { last: number; value: string; onValue: (value: string) => void }) {
  const [text, setText] = useState(value)
  useEffect(() => setText(value), [value])
  useEffect(() => {
    if (text === value) return
    const timer = setTimeout(() => onValue(text), 250)
    return () => clearTimeout(timer)
  }, [text, value])
  return (
    <TextField
      label={t('Task, 0 to {last}', { last })}
      type="number"
      min={0}
      max={last}
      placeholder={t('All of them')}
      value={text}
      onChange={({ target }) => {
        if (target.value === '' || target.validity.valid) setText(target.value)
      }}
    />
  )
}

export default function JobUse({ name, detail }: { name: string; detail: JobDetail }) {
  const [search] = useSearch()
  const roles = Object.entries(detail.taskRoles ?? {})
  const role = search.get('role') ?? ''
  const index = search.get('index') ?? ''
  const tasks = TaskStates.of(detail).countOf(role)
  const go = (nextRole: string, nextIndex: string, isReplaced = false) => {
    const next = new URLSearchParams({ tab: 'use' })
    if (nextRole) next.set('role', nextRole)
    if (nextRole && nextIndex) next.set('index', nextIndex)
    navigate(`${location.pathname}?${next}`, isReplaced)
  }
  const query = new URLSearchParams()
  if (role) query.set('role', role)
  if (role && index) query.set('index', index)
  return (
    <section className="stack" aria-label={t('Use over time')}>
      <div className="row">
        <SelectField label={t('Task role')} value={role} onChange={(event) => go(event.target.value, '')}>
          <option value="">{t('All of them')}</option>
          {roles.map(([one]) => (
            <option key={one}>{one}</option>
          ))}
        </SelectField>
        {role && tasks > LISTED_MAX && <TaskNumber key={role} last={tasks - 1} value={index} onValue={(next) => go(role, next, true)} />}
        {role && tasks > 1 && tasks <= LISTED_MAX && (
          <SelectField label={t('Task')} value={index} onChange={(event) => go(role, event.target.value)}>
            <option value="">{t('All of them')}</option>
            {Array.from({ length: tasks }, (_, one) => (
              <option key={one}>{one}</option>
            ))}
          </SelectField>
        )}
      </div>
      <UseOverTime path={`/api/v2/jobs/${enc(name)}/use${query.size ? `?${query}` : ''}`} isLive={isLive(detail.jobStatus?.state)} />
    </section>
  )
}
