import { expect, it } from 'vitest'
import { partsOf } from '../src/lib/parts'

it('the parts of the server are read, whatever state they are in', () => {
  expect(partsOf('[+] store ok: written\n[!] clock degraded: behind: 3 s\n[-] engine the cluster failed\nnot ready\n')).toEqual([
    { name: 'store', state: 'ok', text: 'written' },
    { name: 'clock', state: 'degraded', text: 'behind: 3 s' },
    { name: 'engine the cluster', state: 'failed', text: '' },
  ])
})
