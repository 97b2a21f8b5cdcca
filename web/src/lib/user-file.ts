// A file of users, as OpenPAI's portal and `skep user import` read it.
import { csvRead } from './csv'

export interface UserRow {
  line: number
  user: { username: string; password: string; email: string; admin: boolean; virtualCluster: string[]; grouplist: string[] }
  isMade: boolean // the password was made here
  state: string // "": not tried yet; "ok"; else what the server has said
}

export const USER_COLUMNS = ['username', 'password', 'email', 'admin', 'virtual cluster', 'groups']

/** Null: the first line names no column "username". Who has no password in the file gets one of `passwordNew`. */
export function usersOf(text: string, passwordNew: () => string): UserRow[] | null {
  const [head = [], ...rows] = csvRead(text)
  const column = (name: string) => head.findIndex((title) => title.trim().toLowerCase().replace(' ', '') === name)
  if (column('username') < 0) return null
  const list = (text: string) => text.split(/[,;\s]+/).filter(Boolean)
  const at = (row: string[], name: string) => row[column(name)]?.trim() ?? ''
  return rows.map((row, index) => ({
    line: index + 2,
    user: {
      username: at(row, 'username'),
      password: at(row, 'password') || passwordNew(),
      email: at(row, 'email'),
      admin: /^(true|yes|1)$/i.test(at(row, 'admin')),
      virtualCluster: list(at(row, 'virtualcluster')),
      grouplist: list(at(row, 'groups')),
    },
    isMade: !at(row, 'password'),
    state: '',
  }))
}
