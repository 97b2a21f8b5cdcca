// The commands by which one reaches a task by ssh.
import { shellWord } from './filter'

export interface SshPlace {
  job: string // USER~JOB
  host: string
  port: string
  login: string
}

const isLoopback = (host: string) => host === 'localhost' || host.endsWith('.localhost') || /^127\.|^::1$|^\[::1\]$/.test(host)

/** Does the address mean something only on the machine of the server, and is the browser elsewhere? */
export const isOnlyThere = (host: string, server: string) => isLoopback(host) && !isLoopback(server)

export const keyFileName = (job: string) => `${job.replaceAll(/[^\w.-]/g, '-')}.pem`

/**
 * `server` is where the browser found the portal: the way to an address that is only there. A task's server shows the job's key, so the job is
 * the host that ssh remembers: addresses and ports are new with every attempt, and others' later.
 */
export function sshCommand({ job, host, port, login }: SshPlace, server: string, keyFile?: string): string {
  return [
    'ssh',
    ...(keyFile ? ['-i', `~/Downloads/${shellWord(keyFile)}`, '-o IdentitiesOnly=yes'] : []),
    ...(isOnlyThere(host, server) ? ['-J', shellWord(server)] : []),
    '-o',
    shellWord(`HostKeyAlias=${job}`),
    '-o StrictHostKeyChecking=accept-new',
    '-p',
    port,
    shellWord(`${login}@${host}`),
  ].join(' ')
}

/** ssh takes no key that others may read. */
export const keyCommand = (keyFile: string) => `chmod 600 ~/Downloads/${shellWord(keyFile)}`

/** The same in PowerShell; ssh itself knows `~` there. */
export const keyCommandWindows = (keyFile: string) => `icacls "$env:USERPROFILE\\Downloads\\${keyFile}" /inheritance:r /grant:r "$($env:USERNAME):(R)"`
