// The usual variables that the platform sets in each task; docs/user/environment.md has all. ROLE, LABEL and i stand for names and numbers.
import { t } from '../i18n/i18n'

export const platformVariables = (): [string, string][] => [
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

/** As they are called in a job of these roles: of the first task, and of the port that each task has. */
export const variablesOfRoles = (roles: string[]): [string, string][] =>
  platformVariables().flatMap(([name, meaning]): [string, string][] =>
    name.includes('_ROLE_i') || name.endsWith('_ROLE') ? roles.map((role) => [name.replace(/_ROLE(?=_i|$)/, `_${role}`).replace('_i', '_0').replace('_LABEL', '_http'), meaning]) : [[name, meaning]],
  )
