/** What the server takes for a new user's name, as the pattern of a field has it. A name is a folder of a storage: "." and ".." are others. */
export const USER_NAME = '(?!\\.{1,2}$)[A-Za-z0-9_.\\-]{1,64}'

const whole = new RegExp(`^(?:${USER_NAME})$`)
export const isUserName = (text: string) => whole.test(text)
