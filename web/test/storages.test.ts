import { describe, expect, it } from 'vitest'
import { grantOf, grantSet, storageCommands, storageWhere } from '../src/lib/storages'

const NFS = { name: 'home', type: 'nfs', data: { server: 'files.example.org', path: '/export/home' } } as const
const SAMBA = { name: 'data', type: 'samba', data: { address: '//files.example.org/lab/sets' } } as const

describe('a grant of a group', () => {
  it('is the default for the first', () => expect(['a', 'b', 'c'].map((name) => grantOf(['a', 'b'], name))).toEqual(['default', 'use', 'none']))
  it('keeps the order of the others', () => {
    expect(grantSet(['a', 'b', 'c'], 'c', 'default')).toEqual(['c', 'a', 'b'])
    expect(grantSet(['a', 'b', 'c'], 'a', 'use')).toEqual(['b', 'c', 'a'])
    expect(grantSet(['a', 'b', 'c'], 'b', 'none')).toEqual(['a', 'c'])
    expect(grantSet(['a'], 'd', 'use')).toEqual(['a', 'd'])
  })
  it('changes nothing when it is so already', () => expect(grantSet(['a', 'b', 'c'], 'b', 'use')).toEqual(['a', 'b', 'c']))
  it('of the only storage is the default', () => expect(grantOf(grantSet([], 'a', 'use'), 'a')).toBe('default'))
})

describe('a storage', () => {
  it('is somewhere', () => expect([NFS, SAMBA, { data: {} }].map(storageWhere)).toEqual(['files.example.org:/export/home', '//files.example.org/lab/sets', '']))
  it('of NFS is mounted, and files are copied into it, or into the folder of the user', () => {
    expect(storageCommands(NFS, 'ann')).toEqual(['sudo mkdir -p /mnt/home', 'sudo mount -t nfs files.example.org:/export/home /mnt/home', 'cp -r my-data /mnt/home/'])
    expect(storageCommands({ ...NFS, share: false }, 'ann')[2]).toBe('cp -r my-data /mnt/home/ann')
  })
  it('of Samba takes files by its share and the folder below', () => {
    expect(storageCommands(SAMBA, 'ann')).toEqual(["smbclient //files.example.org/lab -U ann -D sets -c 'recurse ON; prompt OFF; mput my-data'"])
    expect(storageCommands({ ...SAMBA, share: false }, 'ann')[0]).toContain(' -D sets/ann ')
    expect(storageCommands({ ...SAMBA, data: { address: '//files.example.org/lab' } }, 'ann')[0]).not.toContain('-D')
  })
  it('of which nobody has said where it is has no commands', () => {
    for (const data of [{}, { address: '//files.example.org' }]) for (const type of ['nfs', 'samba', 'other'] as const) expect(storageCommands({ name: 'x', type, data }, 'ann')).toEqual([])
  })
  it('with a strange name is safe to paste', () => expect(storageCommands({ ...NFS, name: 'a; rm x' }, 'ann')[0]).toBe("sudo mkdir -p '/mnt/a; rm x'"))
})
