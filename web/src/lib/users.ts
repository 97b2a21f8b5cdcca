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

/** What is to be asked of the server; null: nothing. */
export function userChanged(user: User, change: UserChange): { fields: { virtualCluster?: string[]; active?: boolean } | null; grouplist: string[] | null } {
  const clusters = user.admin ? null : changed(user.virtualCluster ?? [], change.grant, change.revoke)
  const isOther = change.active !== null && change.active !== (user.active ?? true)
  return {
    fields: clusters || isOther ? { ...(clusters ? { virtualCluster: clusters } : {}), ...(isOther ? { active: change.active! } : {}) } : null,
    grouplist: changed(user.grouplist ?? [], change.join, change.leave),
  }
}
