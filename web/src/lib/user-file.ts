// A file of users, as OpenPAI's portal and `skep user import` read it.
import { csvRead } from './csv'
import { isUserName } from './user-name'

export interface UserOfFile {
  username: string
  password: string
  email: string
  admin: boolean
  virtualCluster: string[]
  grouplist: string[]
}

export interface UserRow {
  line: number
  user: UserOfFile
  isMade: boolean // the password was made here
  state: string // "": not tried yet; "ok"; else what the server has said
}

export const USER_COLUMNS = ['username', 'password', 'email', 'admin', 'virtual cluster', 'groups']

export const namesIn = (text: string) => text.split(/[,;\s]+/).filter(Boolean)

/** Null: the first line names no column "username". Who has no password in the file gets one of `passwordNew`. */
export function usersOf(text: string, passwordNew: () => string): UserRow[] | null {
  const [head = [], ...rows] = csvRead(text.replace(/^\uFEFF/, '')) // as spreadsheets begin a file
  const column = (name: string) => head.findIndex((title) => title.trim().toLowerCase().replace(' ', '') === name)
  if (column('username') < 0) return null
  const at = (row: string[], name: string) => row[column(name)]?.trim() ?? ''
  return rows.map((row, index) => ({
    line: index + 2,
    user: {
      username: at(row, 'username'),
      password: at(row, 'password') || passwordNew(),
      email: at(row, 'email'),
      admin: /^(true|yes|1)$/i.test(at(row, 'admin')),
      virtualCluster: namesIn(at(row, 'virtualcluster')),
      grouplist: namesIn(at(row, 'groups')),
    },
    isMade: !at(row, 'password'),
    state: '',
  }))
}

export type UserProblem = 'name' | 'taken' | 'password' | 'email'

const bytesOf = (text: string) => new TextEncoder().encode(text).length

/** What the server would refuse of a row, known before it is sent: the rules of a new user, and that no other row has the name. */
export function problemsOf({ line, user }: UserRow, rows: UserRow[]): UserProblem[] {
  const isMail = !user.email || (/^[^@]+@[^@]+$/.test(user.email) && /^[!-~]{3,254}$/.test(user.email) && !/["(),:;<>[\\\]]/.test(user.email))
  return [
    ...(isUserName(user.username) ? [] : ['name' as const]),
    ...(user.username && rows.some((other) => other.line !== line && other.user.username === user.username) ? ['taken' as const] : []),
    ...(bytesOf(user.password) >= 6 && bytesOf(user.password) <= 1024 ? [] : ['password' as const]),
    ...(isMail ? [] : ['email' as const]),
  ]
}

/** A row after the others, for somebody who does not stand in the file. */
export const rowNew = (rows: UserRow[], password: string): UserRow => ({
  line: Math.max(1, ...rows.map(({ line }) => line)) + 1,
  user: { username: '', password, email: '', admin: false, virtualCluster: [], grouplist: [] },
  isMade: true,
  state: '',
})

/** A row with what somebody has written in it: it is to be tried anew. An empty password is made, or stays the one that was made. */
export function rowChanged(row: UserRow, user: UserOfFile, passwordNew: () => string): UserRow {
  const password = user.password || (row.isMade ? row.user.password : passwordNew())
  return { ...row, user: { ...user, password }, isMade: !user.password, state: '' }
}
