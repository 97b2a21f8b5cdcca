import { describe, expect, it } from 'vitest'
import { folderAdd, folderRemove, folderRename, folderSet, mountPathSet, noticesSet, parameterSet, pluginIgnore, pluginSet, storageSet, userKeySet } from '../src/editor/job-extras'
import { formOf } from '../src/editor/job-file'

const FILE = `# what this is for
name: train # short
taskRoles:
  worker:
    instances: 2 # two is enough
    commands:
      - echo one # the first

# the end
`
const PLUGINS = `${FILE}extras:
  # how it is placed
  hivedScheduler: {jobPriorityClass: prod} # soon
  com.microsoft.pai.runtimeplugin:
    # to look into it
    - plugin: ssh # ours
      failurePolicy: ignore
      parameters:
        jobssh: true # between them
        userssh: {type: custom, value: ssh-ed25519 AAAA me} # mine
      taskroles: [worker]
    # code
    - plugin: git
      parameters: {repo_uri: https://example.org/code}
`
const BOARD = { port: 12345, logdir: { path: '/mnt/tensorboard' } }

describe('storages', () => {
  it('are added and taken away one by one, and nothing else changes', () => {
    const one = storageSet(FILE, 'data', true, [])
    expect(one).toContain('extras:\n  storages:\n    - name: data\n      mountPath: /mnt/data\n')
    const two = storageSet(one, 'home', true, [])
    expect(formOf(two)?.storages).toEqual([{ name: 'data', mountPath: '/mnt/data' }, { name: 'home', mountPath: '/mnt/home' }])
    expect(storageSet(two, 'home', true, [])).toBe(two)
    expect(storageSet(two, 'home', false, [])).toBe(one)
    expect(storageSet(one, 'data', false, [])).toBe(FILE)
  })
  it('keep the place that somebody gave them', () => {
    const own = `${FILE}extras:\n  storages:\n    - {name: data, mountPath: /data} # mine\n`
    expect(storageSet(storageSet(own, 'home', true, []), 'home', false, [])).toBe(own)
  })
  it('are mounted elsewhere, and at their usual place again', () => {
    const own = `${FILE}extras:\n  storages:\n    - name: data # ours\n      mountPath: /data # mine\n    - name: home\n`
    expect(mountPathSet(own, 0, '/datasets')).toBe(own.replace('/data #', '/datasets #'))
    const moved = mountPathSet(own, 1, '/home/me')
    expect(formOf(moved)?.storages[1]).toEqual({ name: 'home', mountPath: '/home/me' })
    expect(mountPathSet(moved, 1, '')).toBe(own)
    expect(mountPathSet(own, 2, '/x')).toBe(own)
  })
  it('are the default ones with an empty list, until one is chosen', () => {
    const own = `${FILE}extras:\n  storages: [] # those of my group\n`
    expect(formOf(own)).toMatchObject({ hasDefaultStorages: true, storages: [] })
    expect(formOf(FILE)?.hasDefaultStorages).toBe(false)
    expect(formOf(storageSet(own, 'data', true, ['home']))?.storages.map((one) => one.name)).toEqual(['home', 'data'])
    expect(formOf(storageSet(own, 'data', false, ['home', 'data']))?.storages.map((one) => one.name)).toEqual(['home'])
    expect(storageSet(own, 'home', false, ['home'])).toBe(`${FILE}extras: {}\n`) // the comment above stays
    expect(storageSet(own.replace('# the end', ''), 'home', false, ['home'])).toBe(FILE.replace('\n# the end\n', ''))
  })
})

describe('messages', () => {
  it('are asked for, and no more, without a trace', () => {
    for (const before of [FILE, PLUGINS]) {
      expect(formOf(before)?.notices).toEqual([])
      const on = noticesSet(before, ['failed', 'succeeded'])
      expect(on).toContain('  jobStatusChangeNotification:\n    succeeded: true\n    failed: true\n')
      expect(formOf(on)?.notices).toEqual(['succeeded', 'failed'])
      expect(noticesSet(on, ['succeeded', 'failed'])).toBe(on)
      expect(formOf(noticesSet(on, ['running', 'succeeded', 'failed']))?.notices).toEqual(['running', 'succeeded', 'failed'])
      expect(noticesSet(on, [])).toBe(before)
      expect(noticesSet(before, [])).toBe(before)
    }
  })
  it('keep the comments of the text', () => {
    const own = `${FILE}extras:\n  jobStatusChangeNotification:\n    running: true # it waits for long\n    # the night is short\n    failed: true\n    stopped: false\n`
    const off = noticesSet(own, [])
    expect(off).toContain('running: false # it waits for long')
    expect(off).toContain('# the night is short\n    failed: false')
    expect(off).not.toContain('stopped')
    expect(formOf(off)?.notices).toEqual([])
    expect(noticesSet(off, ['running', 'failed'])).toBe(own.replace('    stopped: false\n', ''))
  })
  it('are no form of what is no map', () => {
    const own = `${FILE}extras:\n  jobStatusChangeNotification: yes\n`
    expect(formOf(own)?.notices).toEqual([])
    expect(formOf(noticesSet(own, ['failed']))?.notices).toEqual(['failed'])
    expect(noticesSet(own, [])).toBe(own)
    expect(formOf(noticesSet(`${FILE}extras: {jobStatusChangeNotification: {failed: true, stopped: true}}\n`, ['failed']))?.notices).toEqual(['failed'])
  })
})

describe('a plugin', () => {
  it('is switched on, and off again without a trace', () => {
    for (const before of [FILE, PLUGINS, `${FILE}extras:\n  timeLimitSeconds: 60 # short\n`]) {
      const on = pluginSet(before, 'tensorboard', BOARD)
      expect(formOf(on)?.tensorboard).toEqual({ isFailureIgnored: false, roles: [], port: '12345', folders: [['path', '/mnt/tensorboard']] })
      expect(pluginSet(on, 'tensorboard', BOARD)).toBe(on)
      expect(pluginSet(on, 'tensorboard', null)).toBe(before)
    }
    expect(pluginSet(FILE, 'ssh', { jobssh: true })).toContain('extras:\n  com.microsoft.pai.runtimeplugin:\n    - plugin: ssh\n      parameters:\n        jobssh: true\n')
  })
  it('leaves the others when it goes', () => {
    const off = pluginSet(PLUGINS, 'ssh', null)
    expect(formOf(off)?.ssh).toBeNull()
    for (const kept of ['# how it is placed', '# soon', '# code\n    - plugin: git', '# two is enough']) expect(off).toContain(kept)
  })
  it('shows what the text says', () => {
    expect(formOf(PLUGINS)).toMatchObject({ ssh: { isJob: true, hasBarrier: false, barrierMinutes: '', key: 'ssh-ed25519 AAAA me', isFailureIgnored: true, roles: ['worker'] }, tensorboard: null })
    expect(formOf(FILE)?.ssh).toBeNull()
    const bare = `${FILE}extras:\n  com.microsoft.pai.runtimeplugin:\n    - plugin: tensorboard\n    - plugin: ssh\n      parameters: {userssh: ssh-rsa AAAA}\n      taskRoles: [worker]\n`
    expect(formOf(bare)).toMatchObject({ tensorboard: { port: '', folders: [] }, ssh: { key: 'ssh-rsa AAAA', isJob: false, roles: ['worker'] } })
    expect(formOf(bare.replace('ssh-rsa AAAA', '{type: none, value: ssh-rsa AAAA}'))?.ssh?.key).toBe('')
  })
  it('changes by one parameter alone', () => {
    expect(parameterSet(PLUGINS, 'ssh', 'jobssh', false)).toBe(PLUGINS.replace('jobssh: true', 'jobssh: false'))
    const barrier = parameterSet(PLUGINS, 'ssh', 'sshbarrierTimeout', 5)
    expect(formOf(barrier)?.ssh?.barrierMinutes).toBe('5')
    expect(parameterSet(barrier, 'ssh', 'sshbarrierTimeout', null)).toBe(PLUGINS)
    expect(pluginIgnore(PLUGINS, 'ssh', false)).toBe(PLUGINS.replace('      failurePolicy: ignore\n', ''))
    expect(formOf(pluginIgnore(PLUGINS, 'ssh', true))?.ssh?.isFailureIgnored).toBe(true)
    expect(parameterSet(FILE, 'ssh', 'jobssh', true)).toBe(FILE)
    expect(parameterSet('a: [', 'ssh', 'jobssh', true)).toBe('a: [')
  })
  it('takes a key as a map, and one of before OpenPAI 1.0 as it was', () => {
    expect(userKeySet(PLUGINS, 'ssh-rsa BBBB')).toBe(PLUGINS.replace('ssh-ed25519 AAAA me', 'ssh-rsa BBBB'))
    expect(userKeySet(PLUGINS, '')).toBe(PLUGINS.replace('        userssh: {type: custom, value: ssh-ed25519 AAAA me} # mine\n', ''))
    const on = pluginSet(FILE, 'ssh', { jobssh: true })
    const keyed = userKeySet(on, 'ssh-rsa CCCC')
    expect(keyed).toContain('userssh:\n          type: custom\n          value: ssh-rsa CCCC\n')
    expect(userKeySet(keyed, '')).toBe(on)
    const old = `${FILE}extras:\n  com.microsoft.pai.runtimeplugin:\n    - {plugin: ssh, parameters: {userssh: ssh-rsa AAAA}} # old\n`
    expect(userKeySet(old, 'ssh-rsa B')).toBe(old.replace('AAAA', 'B'))
  })
  it('has its folders added, named, moved and removed', () => {
    const on = pluginSet(FILE, 'tensorboard', BOARD)
    const two = folderAdd(on, '/mnt/tensorboard')
    expect(formOf(two)?.tensorboard?.folders).toEqual([['path', '/mnt/tensorboard'], ['path2', '/mnt/tensorboard']])
    expect(formOf(folderSet(folderRename(two, 'path2', 'second'), 'second', '/logs'))?.tensorboard?.folders[1]).toEqual(['second', '/logs'])
    expect(folderRename(two, 'path2', 'path')).toBe(two)
    expect(folderRemove(two, 'path2')).toBe(on)
    const bare = `${FILE}extras:\n  com.microsoft.pai.runtimeplugin:\n    - plugin: tensorboard\n`
    expect(formOf(folderAdd(bare, '/logs'))?.tensorboard?.folders).toEqual([['path', '/logs']])
  })
})
