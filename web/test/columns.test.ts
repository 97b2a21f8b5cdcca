import { describe, expect, it } from 'vitest'
import { COLUMN_IDS, COLUMNS_DEFAULT, columnsRead, layoutOf, WIDTH_MAX, WIDTH_MIN, widthClamp, widthOf, widthsRead } from '../src/lib/columns'
import { jobsPath, settingsOf, settingsText } from '../src/lib/settings'

describe('the layout of columns', () => {
  it('shares what is left, but with columns of which somebody has said the width', () => {
    expect(layoutOf(['state', 'user'], {})).toEqual({ template: '34px minmax(160px, 1.6fr) 118px minmax(70px, 0.6fr)', minPx: 34 + 160 + 118 + 70 })
    expect(layoutOf(['state', 'user'], { name: 300, user: 90, tags: 500 })).toEqual({ template: '34px 300px 118px 90px', minPx: 34 + 300 + 118 + 90 })
  })
  it('has limits', () => {
    expect([widthClamp(-5), widthClamp(99.4), widthClamp(1e9)]).toEqual([WIDTH_MIN, 99, WIDTH_MAX])
    expect([widthOf('name', {}), widthOf('name', { name: 200 })]).toEqual([160, 200])
  })
})

describe('choices of columns that were stored', () => {
  it('have the columns that came later and are shown by default', () => {
    expect(columnsRead(['user', 'state'], undefined)).toEqual(['user', 'state', 'actions'])
    expect(columnsRead(COLUMNS_DEFAULT, undefined)).toEqual(COLUMNS_DEFAULT)
  })
  it('stay as they are when all columns were there to choose from', () => {
    expect(columnsRead(['user'], COLUMN_IDS)).toEqual(['user'])
    expect(columnsRead([], COLUMN_IDS)).toEqual([])
  })
  it('lack what is no column any more', () => expect(columnsRead(['user', 'colour', 5], COLUMN_IDS)).toEqual(['user']))
  it('are the default when they are no choice', () => expect([columnsRead(undefined, undefined), columnsRead('user', undefined)]).toEqual([COLUMNS_DEFAULT, COLUMNS_DEFAULT]))
})

describe('widths that were stored', () => {
  it('are those of columns, within the limits', () => expect(widthsRead({ name: 300.4, state: 1, colour: 50, user: '90', vc: null })).toEqual({ name: 300, state: WIDTH_MIN }))
  it('are none when they are no widths', () => expect([widthsRead(undefined), widthsRead(null), widthsRead('x')]).toEqual([{}, {}, {}]))
})

describe('settings', () => {
  it('of an older portal are taken over', () => {
    const read = settingsOf('{"theme": "dark", "columns": ["state", "tags"]}')
    expect(read).toMatchObject({ theme: 'dark', columns: ['state', 'tags', 'actions'], widths: {}, singleKeys: true })
  })
  it('come back as they were stored', () => {
    const chosen = { ...settingsOf('{}'), columns: ['tags' as const], widths: { name: 200 } }
    expect(settingsOf(settingsText(chosen))).toEqual(chosen)
  })
})

describe('the first way to the list of jobs', () => {
  it('shows ordinary users their own jobs, and administrators all', () => {
    expect(jobsPath({ user: 'ann', admin: false })).toBe('/jobs?user=@me')
    expect(jobsPath({ user: 'root', admin: true })).toBe('/jobs')
  })
})
