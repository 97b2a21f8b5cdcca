import { describe, expect, it } from 'vitest'
import { clonePath, framePath, leavingPath, pluginPath, revokerOf, submitFromOf, type Plugin } from '../src/lib/plugins'
import { pathOfOldPortal } from '../src/router'

const plugin = (id: string | null): Plugin => ({ id, title: 'P', uri: 'http://h/p.js', scope: 'submit', config: {} })
const query = (text: string) => new URLSearchParams(text)

describe('addresses of plugins', () => {
  it('are those of OpenPAI, with the rest of the query', () => {
    expect(pluginPath(query('index=1'))).toBe('/plugins/1')
    expect(pluginPath(query('op=resubmit&index=0&user=a&jobname=b'))).toBe('/plugins/0?op=resubmit&user=a&jobname=b')
    expect(pathOfOldPortal('/plugin.html', query('index=2'))).toBe('/plugins/2')
  })
  it.each(['', 'index=', 'index=-1', 'index=a', 'index=1.5'])('without an index are those of the marketplace: %s', (text) => {
    expect(pluginPath(query(text))).toBeNull()
    expect(pathOfOldPortal('/plugin.html', query(text))).toBe('/templates')
  })
  it('of the frame have what the plugin reads', () => {
    expect(framePath(1, query('op=resubmit&index=7'))).toBe('/plugin-frame.html?op=resubmit&index=1')
  })
})

describe('a token of a plugin', () => {
  const session = (user: string, token: string) => ({ user, token, admin: false })
  it('is ended by the session in which its page began', () => expect(revokerOf(session('alice', 'one'), session('alice', 'one'))).toBe('one'))
  it('is ended by the newer session of the same user, which has ended that one', () => expect(revokerOf(session('alice', 'one'), session('alice', 'two'))).toBe('two'))
  it('is never shown with another user\'s session', () => expect(revokerOf(session('alice', 'one'), session('bob', 'two'))).toBe('one'))
  it('is ended by the session before when there is none any more', () => expect(revokerOf(session('alice', 'one'), null)).toBe('one'))
  it('of nobody is nobody\'s, whoever has signed in since', () => expect(revokerOf(null, session('bob', 'two'))).toBe(''))
})

describe('a copy of a job', () => {
  it('begins in the plugin that has submitted it, when it is there', () => {
    const plugins = [plugin(null), plugin('market')]
    expect(clonePath(plugins, 'market', 'alice', 'train')).toBe('/plugins/1?op=resubmit&type=job&user=alice&jobname=train')
    expect(clonePath(plugins, 'other', 'alice', 'train')).toBeNull()
    expect(clonePath(plugins, undefined, 'alice', 'train')).toBeNull()
    expect(clonePath(plugins, '', 'alice', 'train')).toBeNull()
  })
  it.each([
    ['extras:\n  submitFrom: market\n', 'market'],
    ['extras:\n  submitFrom: "a b" # of ours\n', 'a b'],
    ["extras:\n  submitFrom: 'x'\n", 'x'],
    ['extras: {submitFrom: market, a: 1}\n', 'market'],
    ['extras: {a: 1, submitFrom: b}\n', 'b'],
    ['{"extras":\n{"submitFrom":"market"}}', 'market'],
    ['name: a\ncommands:\n  - echo submitFrom: no\n', undefined],
  ])('knows who that was: %j', (source, wanted) => expect(submitFromOf(source)).toBe(wanted))
})

describe('an address in a frame', () => {
  const frame = 'http://skep:9186/plugin-frame.html?index=0'
  it('of a page of the portal leads out of it', () => {
    expect(leavingPath('/job-detail.html?username=a&jobName=b', frame)).toBe('/job-detail.html?username=a&jobName=b')
    expect(leavingPath('http://skep:9186/jobs', frame)).toBe('/jobs')
  })
  it.each(['#part', '?index=0&type=x', 'http://other/jobs', 'https://skep:9186/jobs', 'mailto:a@b'])('%s does not', (to) => expect(leavingPath(to, frame)).toBeNull())
})
