// Which users a list shows, and what a change of several does to one of them.
import type { User } from '../api/client'

export interface UserFilter {
  text: string // of the name, the mail address or a group
  group: string
  vc: string
  rights: string // admin, user, inactive; "": all
  order: string // username or email; with "-" before it downwards
}

export function usersShown(users: User[], filter: UserFilter): User[] {
  const part = filter.text.trim().toLowerCase()
  const has = (text: string | undefined) => !!text?.toLowerCase().includes(part)
  const field = filter.order.replace('-', '') === 'email' ? 'email' : 'username'
  const sign = filter.order.startsWith('-') ? -1 : 1
  return users
    .filter(
      (user) =>
        (!part || has(user.username) || has(user.email) || !!user.grouplist?.some(has)) &&
        (!filter.group || !!user.grouplist?.includes(filter.group)) &&
        (!filter.vc || !!user.virtualCluster?.includes(filter.vc)) &&
        (!filter.rights || (filter.rights === 'inactive' ? user.active === false : !!user.admin === (filter.rights === 'admin'))),
    )
    .sort((a, b) => sign * ((a[field] ?? '').localeCompare(b[field] ?? '') || (a.username ?? '').localeCompare(b.username ?? '')))
}

export interface UserChange {
  grant: string[] // virtual clusters
  revoke: string[]
  join: string[] // groups
  leave: string[]
  active: boolean | null // null: as it is
}

const changed = (before: string[], more: string[], less: string[]) => {
  const after = [...new Set([...before, ...more])].filter((name) => !less.includes(name))
  return after.length === before.length && after.every((name) => before.includes(name)) ? null : after
}

/** What a user has of themselves: what a group grants is not to become theirs, or it would stay when they leave the group. All may use "default". */
export const clustersOwn = (user: User) => (user.ownVirtualCluster ?? []).filter((name) => name !== 'default')

export interface UserFields {
  email?: string
  admin?: boolean
  active?: boolean
  virtualCluster?: string[]
}

/** Of what a form says of a user, what is not so already. Rights and clusters that come by a group are so: they are not made the user's own. */
export function fieldsChanged(user: User, form: Required<UserFields>): UserFields {
  const clusters = clustersOwn(user)
  const isSame = clusters.length === form.virtualCluster.length && clusters.every((name) => form.virtualCluster.includes(name))
  return {
    ...(form.email === (user.email ?? '') ? {} : { email: form.email }),
    ...(form.admin === (user.admin ?? false) ? {} : { admin: form.admin }),
    ...(form.active === (user.active ?? true) ? {} : { active: form.active }),
    ...(isSame || form.admin ? {} : { virtualCluster: form.virtualCluster }),
  }
}

/** What takes a change of these fields back; the others may have been changed since by somebody else. */
export function fieldsBefore(user: User, fields: UserFields): UserFields {
  return {
    ...('email' in fields ? { email: user.email ?? '' } : {}),
    ...('admin' in fields ? { admin: user.admin ?? false } : {}),
    ...('active' in fields ? { active: user.active ?? true } : {}),
    ...('virtualCluster' in fields ? { virtualCluster: clustersOwn(user) } : {}),
  }
}

/** What is to be asked of the server; null: nothing. */
export function userChanged(user: User, change: UserChange): { fields: UserFields | null; grouplist: string[] | null } {
  const clusters = user.admin ? null : changed(clustersOwn(user), change.grant, change.revoke)
  const isOther = change.active !== null && change.active !== (user.active ?? true)
  return {
    fields: clusters || isOther ? { ...(clusters ? { virtualCluster: clusters } : {}), ...(isOther ? { active: change.active! } : {}) } : null,
    grouplist: changed(user.grouplist ?? [], change.join, change.leave),
  }
}
