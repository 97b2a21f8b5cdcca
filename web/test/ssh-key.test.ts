import { spawnSync } from 'node:child_process'
import { webcrypto } from 'node:crypto'
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { isPublicKey, keyMake, keyPairOf } from '../src/lib/ssh-key'

if (!globalThis.crypto) Object.assign(globalThis, { crypto: webcrypto }) // Node 18 keeps it apart

/** Test 1 of RFC 8032. */
const EXAMPLE = { kty: 'OKP', crv: 'Ed25519', d: 'nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A', x: '11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo' }
const hasKeygen = spawnSync('ssh-keygen', ['-?']).error === undefined

/** What ssh-keygen reads out of a file of a private key. */
function read(privateKey: string) {
  const folder = mkdtempSync(join(tmpdir(), 'skep-key-'))
  try {
    const path = join(folder, 'key')
    writeFileSync(path, privateKey)
    chmodSync(path, 0o600)
    return spawnSync('ssh-keygen', ['-y', '-f', path], { encoding: 'utf8' }).stdout.trim()
  } finally {
    rmSync(folder, { recursive: true })
  }
}

describe('key pairs for ssh', () => {
  it('are written as OpenSSH writes them', () => {
    const { publicKey, privateKey } = keyPairOf(EXAMPLE, 'ann@skep', 7)
    expect(publicKey).toBe('ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAINdamAGCsQq31Uv+08lkBzoO4XLz2qYjJa8CGmj3B1Ea ann@skep')
    expect(isPublicKey(publicKey)).toBe(true)
    const lines = privateKey.trim().split('\n')
    const file = Buffer.from(lines.slice(1, -1).join(''), 'base64')
    expect(file.subarray(0, 15).toString('latin1')).toBe('openssh-key-v1\0')
    expect(lines.every((line) => line.length <= 70)).toBe(true)
    const secret = file.readUInt32BE(15 + 8 + 8 + 4 + 4 + 4 + 51)
    expect(secret % 8).toBe(0)
    expect(file.length).toBe(15 + 8 + 8 + 4 + 4 + 4 + 51 + 4 + secret)
  })
  it('must have all their parts', () => expect(() => keyPairOf({ kty: 'OKP', x: EXAMPLE.x }, '', 1)).toThrow('without all its parts'))
  it.skipIf(!hasKeygen).each(['ed25519', 'rsa'] as const)('of the kind %s are read by ssh-keygen', async (kind) => {
    const { publicKey, privateKey } = await keyMake(kind, 'ann@skep')
    expect(read(privateKey)).toBe(publicKey)
  }, 120_000) // primes take long on a busy machine
})

describe('a public key', () => {
  it.each(['ssh-rsa AAAA', 'PRIVATE KEY', 'ssh-ed25519'])('is not %s', (text) => expect(isPublicKey(text)).toBe(false))
})
