/** One that nobody has to think up. */
export function passwordNew(): string {
  const letters = 'abcdefghjkmnpqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789'
  return Array.from(crypto.getRandomValues(new Uint32Array(16)), (value) => letters[value % letters.length]).join('')
}

/** A password that was made for somebody, and is shown once. */
export interface MadePassword {
  username: string
  password: string
}

/** Each of these is one of those. */
export const isAmong = (these: MadePassword[], those: MadePassword[]) => these.every(({ username, password }) => those.some((one) => one.username === username && one.password === password))
