// What is told of one task, and how it is named in an address: ROLE.INDEX.
import type { TaskPlace } from './task-states'

export function placeOfKey(key: string | null): TaskPlace | null {
  const match = /^(.+)\.(\d{1,5})$/.exec(key ?? '')
  return match ? { role: match[1]!, index: Number(match[2]) } : null
}

export const keyOfPlace = ({ role, index }: TaskPlace) => `${role}.${index}`

/** Of one attempt of the task; `run`: of which attempt of the job, null: of the latest one. */
export const logHref = ({ role, index }: TaskPlace, attempt: number | undefined, run: number | null) =>
  `${location.pathname}?tab=logs&role=${encodeURIComponent(role)}&index=${index}&attempt=${attempt ?? 0}${run === null ? '' : `&run=${run}`}`

/** Each port of a task with its label, in the order of the labels. */
export function portsOf(ports: Record<string, string> | null | undefined): { label: string; number: string }[] {
  return Object.entries(ports ?? {}).flatMap(([label, numbers]) => numbers.split(',').flatMap((number) => (number ? [{ label, number }] : [])))
}

/** What one copies to reach a port from another program. */
export const addressOf = (ip: string, port: string) => (ip.includes(':') ? `[${ip}]:${port}` : `${ip}:${port}`)
