// By what the table of a job's tasks is filtered: how they ended, and where they are.
import { useQuery } from '@tanstack/react-query'
import { pollMs, taskValuesQuery } from '../../api/queries'
import { t } from '../../i18n/i18n'
import { TASK_FILTERS_NONE, type TaskFilter } from '../../lib/task-filter'
import { ChoiceMenu, type Values } from '../../ui/choices'
import { OnceButton } from '../../ui/ui'

interface TaskFiltersProps {
  name: string
  isJobLive: boolean
  filter: TaskFilter
  change: (changes: Record<string, string | null>) => void
}

export function TaskFilters({ name, isJobLive, filter, change }: TaskFiltersProps) {
  const useOf = (kind: 'exitTypes' | 'exitCodes' | 'nodes') => (): Values => {
    const { data, error } = useQuery({ ...taskValuesQuery(name), refetchInterval: isJobLive ? pollMs : false })
    return { values: data?.[kind].map(String), error, isCut: !!data?.isCut }
  }
  const toggle = (key: string, chosen: string[]) => (value: string) => {
    const next = chosen.includes(value) ? chosen.filter((other) => other !== value) : [...chosen, value]
    change({ [key]: next.join(',') })
  }
  const isFiltered = !!filter.state || [filter.exitTypes, filter.exitCodes, filter.nodes].some((part) => part.length > 0)
  return (
    <div className="row task-filters" role="group" tabIndex={-1} aria-label={t('Filters')}>
      <ChoiceMenu label={t('Exit type')} chosen={filter.exitTypes} useValues={useOf('exitTypes')} onToggle={toggle('exitType', filter.exitTypes)} />
      <ChoiceMenu label={t('Exit code')} chosen={filter.exitCodes} useValues={useOf('exitCodes')} onToggle={toggle('exitCode', filter.exitCodes)} />
      <ChoiceMenu label={t('Node')} chosen={filter.nodes} useValues={useOf('nodes')} onToggle={toggle('node', filter.nodes)} />
      {isFiltered && (
        <OnceButton kind="plain" onClick={() => change(TASK_FILTERS_NONE)}>
          {t('Clear filters')}
        </OnceButton>
      )}
    </div>
  )
}
