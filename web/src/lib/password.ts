/** One that nobody has to think up. */
export function passwordNew(): string {
  const letters = 'abcdefghjkmnpqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789'
  return Array.from(crypto.getRandomValues(new Uint32Array(16)), (value) => letters[value % letters.length]).join('')
}
