import { afterEach, expect, it, vi } from 'vitest'
import './browser'
import { logDownload } from '../src/api/logs'

afterEach(() => vi.unstubAllGlobals())

it('a log is downloaded by the browser from an address of its own, and none of it is read before', async () => {
  const asked: string[] = []
  vi.stubGlobal('fetch', (path: string) => {
    asked.push(path)
    const locations = ['stdout', 'stderr', 'all'].map((name) => ({ name, uri: `/logs/${name}?link=1.2.3` }))
    return Promise.resolve(new Response(JSON.stringify({ locations })))
  })
  const link = { href: '', download: '', click: vi.fn() }
  vi.stubGlobal('document', { createElement: () => link })
  await logDownload('/api/v2/jobs/a~b/attempts/0/logs/stderr', 'b.log')
  expect(asked).toEqual(['/api/v2/jobs/a~b/attempts/0/logs'])
  expect([link.href, link.download, link.click.mock.calls.length]).toEqual(['/logs/stderr?link=1.2.3', 'b.log', 1])
  await expect(logDownload('/api/v2/jobs/a~b/attempts/0/logs/none', 'b.log')).rejects.toThrow('no address')
})
