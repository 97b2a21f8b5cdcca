// What is changed of groups and quotas, and what takes it back: nothing else, as somebody else may have changed that since.
import type { Group, Schema } from '../api/client'
import { QUOTAS, type QuotaKind } from './quota'

export interface GroupForm {
  description: string
  externalName: string
  admin: boolean
  virtualClusters: string[]
}

/** What else a group grants is changed elsewhere. */
type GroupChange = Partial<GroupForm> & { storageConfigs?: string[] }

/** As a form has it. */
export const groupForm = (group: Group): GroupForm => ({
  description: group.description ?? '',
  externalName: group.externalName ?? '',
  admin: group.extension?.acls?.admin ?? false,
  virtualClusters: group.extension?.acls?.virtualClusters ?? [],
})

const isSame = (a: GroupForm[keyof GroupForm], b: GroupForm[keyof GroupForm]) =>
  Array.isArray(a) && Array.isArray(b) ? a.length === b.length && a.every((name) => b.includes(name)) : a === b

/** The fields of `form` that the group does not have so. */
export function groupChanged(group: Group, form: GroupForm): Partial<GroupForm> {
  const before = groupForm(group)
  return Object.fromEntries((Object.keys(form) as (keyof GroupForm)[]).filter((key) => !isSame(before[key], form[key])).map((key) => [key, form[key]]))
}

/** What the group had in these fields. */
export function groupBefore(group: Group, changed: Partial<GroupForm>): Partial<GroupForm> {
  const before = groupForm(group)
  return Object.fromEntries((Object.keys(changed) as (keyof GroupForm)[]).map((key) => [key, before[key]]))
}

/** Has nobody changed these fields since they were changed so? Else they are not taken back. */
export const groupIsStill = (now: Group, changed: Partial<GroupForm>) => !Object.keys(groupChanged(now, { ...groupForm(now), ...changed })).length

/** As PUT /api/v2/groups takes it. What a group grants is one key of its extension: `now` is the group as it is. */
export function groupPatch(now: Group, { description, externalName, ...acls }: GroupChange): Group {
  return {
    groupname: now.groupname ?? '',
    ...(description === undefined ? {} : { description }),
    ...(externalName === undefined ? {} : { externalName }),
    ...(Object.keys(acls).length ? { extension: { acls: { ...now.extension?.acls, ...acls } } } : {}),
  }
}

// ---- quotas ----

export type QuotaValues = Partial<Record<QuotaKind, number | null>>

/** Whoever's own, not those of a group of theirs. */
export const quotaOwn = (quotas: Schema['UserQuotas']): QuotaValues => Object.fromEntries(QUOTAS.map((kind) => [kind, quotas[kind]?.group ? null : (quotas[kind]?.value ?? null)]))

/** Of `wanted` what is not so already, and what takes that back. */
export function quotaChanged(own: QuotaValues, wanted: QuotaValues): { change: QuotaValues; back: QuotaValues } {
  const kinds = QUOTAS.filter((kind) => wanted[kind] !== undefined && wanted[kind] !== (own[kind] ?? null))
  const of = (values: QuotaValues): QuotaValues => Object.fromEntries(kinds.map((kind) => [kind, values[kind] ?? null]))
  return { change: of(wanted), back: of(own) }
}

/** Has nobody changed these since? */
export const quotaIsStill = (now: QuotaValues, change: QuotaValues) => !Object.keys(quotaChanged(now, change).change).length
