import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { settingsChange, settingsGet, settingsOf, settingsText } from '../src/lib/settings'

const KEY = 'skep.settings'
const stored = () => settingsOf(localStorage.getItem(KEY) ?? '{}')

/** Another tab stores what it has chosen. */
function otherTab(change: object) {
  localStorage.setItem(KEY, settingsText({ ...stored(), ...change }))
}
const told = (key: string | null) => dispatchEvent(Object.assign(new Event('storage'), { key }))

describe('settings of several tabs', () => {
  beforeEach(() => {
    vi.stubGlobal('document', { documentElement: { dataset: {} } })
    localStorage.removeItem(KEY)
    told(null)
  })
  afterEach(() => void vi.unstubAllGlobals())
  it('do not undo each other', () => {
    settingsChange({ singleKeys: false })
    otherTab({ theme: 'dark' })
    settingsChange({ screenReader: true })
    expect(stored()).toMatchObject({ singleKeys: false, theme: 'dark', screenReader: true })
    expect(settingsGet()).toMatchObject({ singleKeys: false, theme: 'dark', screenReader: true })
  })
  it('are those of the tab that chose last, at once', () => {
    otherTab({ theme: 'contrast' })
    told('something.else')
    expect(settingsGet().theme).toBe('auto')
    told(KEY)
    expect(settingsGet().theme).toBe('contrast')
    expect(document.documentElement.dataset['theme']).toBe('contrast')
  })
})
