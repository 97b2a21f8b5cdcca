// Variables that a role's commands begin with, and those that the platform sets.
import { variableAdd, variableNameIsGood, variableRemove, variableRename, variableSet } from '../../editor/job-env'
import type { RoleForm } from '../../editor/job-file'
import { t } from '../../i18n/i18n'
import { platformVariables } from '../../lib/platform-variables'
import { Button, Copy, TextField } from '../../ui/ui'
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
            <Renamed label={t('Variable')} value={name} problemOf={nameProblem} taken={role.environment.map((one) => one.name)} onRename={(to) => setText(variableRename(text, role.name, index, to))} />
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

/** The usual ones, to be copied into commands. */
export function PlatformVariables() {
  return (
    <section className="card" aria-label={t('What the platform tells tasks')}>
      <details>
        <summary>{t('What the platform tells tasks')}</summary>
        <dl className="variables small">
          {platformVariables().map(([name, meaning]) => (
            <div key={name}>
              <dt>
                <code className="anywhere">{name}</code> <Copy text={`$${name}`} label={t('Copy: {what}', { what: `$${name}` })} />
              </dt>
              <dd>{meaning}</dd>
            </div>
          ))}
        </dl>
      </details>
    </section>
  )
}
