import type { Storage } from '../api/queries'
import { shellWord } from './filter'

/** Where it is for people who reach it from elsewhere; "": nobody has said. */
export const storageWhere = ({ data }: Pick<Storage, 'data'>) => [data?.server ?? data?.address, data?.path].filter(Boolean).join(':')

export type Grant = 'none' | 'use' | 'default'

/** Of a group whose list this is: its first storage is the default. */
export const grantOf = (configs: readonly string[], name: string): Grant => (!configs.includes(name) ? 'none' : configs[0] === name ? 'default' : 'use')

/** The list with another grant. The only storage of a group is its default in any case. */
export function grantSet(configs: readonly string[], name: string, grant: Grant): string[] {
  if (grantOf(configs, name) === grant) return [...configs]
  const others = configs.filter((one) => one !== name)
  return grant === 'none' ? others : grant === 'default' ? [name, ...others] : [...others, name]
}

/** The commands by which `user` brings the folder my-data there, from a machine that reaches it; none where nobody has said where it is. */
export function storageCommands({ name = '', type, data, share }: Pick<Storage, 'name' | 'type' | 'data' | 'share'>, user: string): string[] {
  const own = share === false ? user : '' // the folder of its user
  if (type === 'nfs' && data?.server) {
    const at = `/mnt/${name}`
    return [`sudo mkdir -p ${shellWord(at)}`, `sudo mount -t nfs ${shellWord(storageWhere({ data }))} ${shellWord(at)}`, `cp -r my-data ${shellWord(`${at}/${own}`)}`]
  }
  const parts = data?.address?.split('/').filter(Boolean) ?? []
  const [server, folder, ...below] = parts
  if (type !== 'samba' || !server || !folder) return []
  const path = [...below, own].filter(Boolean).join('/')
  return [`smbclient ${shellWord(`//${server}/${folder}`)} -U ${shellWord(user)}${path && ` -D ${shellWord(path)}`} -c 'recurse ON; prompt OFF; mput my-data'`]
}
