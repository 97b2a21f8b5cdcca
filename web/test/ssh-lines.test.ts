import { describe, expect, it } from 'vitest'
import { isOnlyThere, keyCommand, keyCommandWindows, keyFileName, sshCommand } from '../src/lib/ssh-lines'

const place = { job: 'ann~train', host: '10.0.0.7', port: '15001', login: 'root' }

describe('the commands for ssh', () => {
  it('name host, port and user', () =>
    expect(sshCommand(place, 'skep.example.org')).toBe('ssh -o HostKeyAlias=ann~train -o StrictHostKeyChecking=accept-new -p 15001 root@10.0.0.7'))
  it('name the file of the key, which the agent must not be tried before', () => {
    expect(keyFileName('ann~a b/c')).toBe('ann-a-b-c.pem')
    expect(sshCommand(place, 'x', 'ann-train.pem')).toMatch(/^ssh -i ~\/Downloads\/ann-train\.pem -o IdentitiesOnly=yes /)
    expect(keyCommand('ann-train.pem')).toBe('chmod 600 ~/Downloads/ann-train.pem')
  })
  it('let nobody else read the key on Windows', () =>
    expect(keyCommandWindows('ann-train.pem')).toBe('icacls "$env:USERPROFILE\\Downloads\\ann-train.pem" /inheritance:r /grant:r "$($env:USERNAME):(R)"'))
  it('go through the server where the address is only there', () => {
    expect(sshCommand({ ...place, host: '127.0.0.1' }, 'skep.example.org')).toContain(' -J skep.example.org ')
    expect(sshCommand({ ...place, host: '127.0.0.1' }, 'localhost')).not.toContain('-J')
    expect(isOnlyThere('127.0.1.1', 'skep.localhost')).toBe(false)
  })
  it('are safe to paste', () => expect(sshCommand({ ...place, login: 'a; rm -r x' }, 'x')).toContain("'a; rm -r x@10.0.0.7'"))
})
