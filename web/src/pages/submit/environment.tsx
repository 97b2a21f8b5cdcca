// Variables that a role's commands begin with, and those that the platform sets.
import { variableAdd, variableNameIsGood, variableRemove, variableRename, variableSet } from '../../editor/job-env'
import type { RoleForm } from '../../editor/job-file'
import { t } from '../../i18n/i18n'
import { Button, TextField } from '../../ui/ui'
import { Renamed, type Editing } from './fields'

export function Environment({ role, text, setText }: Editing & { role: RoleForm }) {
  const nameProblem = (name: string) => (variableNameIsGood(name) ? null : t('Letters, digits and _, and no digit first.'))
  return (
    <details className="small" open={role.environment.length > 0 || undefined}>
      <summary>{t('Environment variables')}</summary>
      <div className="stack">
        <p className="quiet">
          {t('They are “export” lines at the head of the commands. Another variable is filled in by its name:')} <code>$PAI_USER_NAME</code>
        </p>
        {role.environment.map(({ index, name, value }) => (
          <div className="row row-top pair" key={index}>
            <Renamed label={t('Variable')} value={name} problemOf={nameProblem} onRename={(to) => setText(variableRename(text, role.name, index, to))} />
            <TextField label={t('Value of {name}', { name })} spellCheck={false} value={value} onChange={(event) => setText(variableSet(text, role.name, index, event.target.value))} />
            <Button small kind="plain" aria-label={t('Remove {name}', { name })} onClick={() => setText(variableRemove(text, role.name, index))}>
              ✕
            </Button>
          </div>
        ))}
        <div className="row">
          <Button small onClick={() => setText(variableAdd(text, role.name))}>
            {t('Add a variable')}
          </Button>
        </div>
      </div>
    </details>
  )
}

/** The usual ones; docs/user/environment.md has all. */
export function PlatformVariables() {
  const known: [string, string][] = [
    ['PAI_JOB_NAME', t('the job, as USER~JOB')],
    ['PAI_USER_NAME', t('who submitted it')],
    ['PAI_VIRTUAL_CLUSTER', t('its virtual cluster')],
    ['PAI_TASK_ROLE_COUNT', t('how many roles it has')],
    ['PAI_TASK_ROLE_LIST', t('their names, with commas')],
    ['PAI_TASK_ROLE_TASK_COUNT_ROLE', t('how many tasks a role has')],
    ['PAI_CURRENT_TASK_ROLE_NAME', t('the role of this task')],
    ['PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX', t('its index in the role, from 0')],
    ['PAI_CURRENT_CONTAINER_PORT', t('its first port labelled “http”')],
    ['PAI_HOST_IP_ROLE_i', t('the address of task i of a role')],
    ['PAI_PORT_LIST_ROLE_i_LABEL', t('its ports of a label, with commas')],
    ['PAI_RESOURCE_ROLE', t('GPUs, CPUs, memory and shared memory of a role, with commas')],
    ['PAI_MIN_FAILED_TASK_COUNT_ROLE', t('how many failed tasks of a role end the job')],
    ['PAI_MIN_SUCCEEDED_TASK_COUNT_ROLE', t('how many succeeded tasks of a role end the job')],
  ]
  return (
    <section className="card" aria-label={t('What the platform tells tasks')}>
      <details>
        <summary>{t('What the platform tells tasks')}</summary>
        <dl className="variables small">
          {known.map(([name, meaning]) => (
            <div key={name}>
              <dt>
                <code className="anywhere">{name}</code>
              </dt>
              <dd>{meaning}</dd>
            </div>
          ))}
        </dl>
      </details>
    </section>
  )
}
