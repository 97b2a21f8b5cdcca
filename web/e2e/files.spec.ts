// Files of storages: what the page shows and does is compared with what is on the server's disk.
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Page } from '@playwright/test'
import { ADMIN, axePath, barriers, expect, picture, signIn, tabTo, test, type, viewSet, VIEWS } from './portal'
import { ask, fetched } from './stage'

const PLACE = process.env['PORTAL_FILES'] ?? ''
test.skip(!PLACE, 'needs a server with storages of its own')

let own = '' // a folder that is there while the tests run; this file is loaded more often than that
test.beforeAll(() => {
  own = mkdtempSync(join(tmpdir(), 'skep-files-'))
})
test.afterAll(() => rmSync(own, { recursive: true, force: true }))

/** A file of this computer whose bytes tell their places. */
function local(name: string, size: number, seed = 1): string {
  const path = join(own, name)
  writeFileSync(path, Buffer.from(Uint8Array.from({ length: size }, (_, at) => (at * 31 + (at >> 8) * 17 + seed) & 255)))
  return path
}
const chosen = (page: Page) => page.getByLabel('Files to upload')
const uploadsOf = (page: Page) => page.getByRole('region', { name: 'Uploads' })
const row = (page: Page, name: string) => page.getByRole('row').filter({ hasText: name })
const folder = (page: Page) => page.locator('#folder')

/** By the arrow keys, from the row that Tab leads to. */
async function rowTo(page: Page, name: string) {
  await tabTo(page, page.locator('.file-grid [role="row"][tabindex="0"]'))
  await page.keyboard.press('Home')
  const wanted = Number(await row(page, name).getAttribute('data-index'))
  for (let at = 0; at <= wanted; at++) {
    await expect(page.locator('.file-grid [role="row"]:focus')).toHaveAttribute('data-index', String(at))
    if (at < wanted) await page.keyboard.press('ArrowDown')
  }
}

test('one goes into folders and back by the keyboard, and finds a file among thousands', async ({ page }) => {
  await page.addInitScript({ path: axePath })
  await signIn(page, ADMIN, '/storages')
  await expect(page.getByText('skep storage ls', { exact: true })).toBeVisible()
  await tabTo(page, page.getByRole('link', { name: 'Files of open' }))
  await page.keyboard.press('Enter')
  await expect(page).toHaveURL(/\/storages\/open$/)
  await tabTo(page, page.getByRole('link', { name: 'data/' }))
  await page.keyboard.press('Shift+Tab') // the box to select it
  await page.keyboard.press('Shift+Tab')
  await expect(row(page, 'data/')).toBeFocused()
  await page.keyboard.press('Enter')
  await expect(page).toHaveURL(/\?path=data$/)
  await expect(folder(page)).toBeFocused()
  await expect(folder(page)).toHaveText('data')
  await expect(page.getByText('skep storage ls open/data', { exact: true })).toBeVisible()
  await expect(row(page, 'link')).toContainText('no plain file')
  await expect(page.getByRole('button', { name: 'Download link' })).toHaveCount(0)
  await expect(row(page, 'words 模型.txt')).toContainText('13 B')
  expect(await barriers(page)).toEqual([])
  await viewSet(page, VIEWS[0])
  await page.getByRole('link', { name: 'many/' }).click()
  await expect(page.getByText('3,000 entries')).toBeVisible()
  expect(await page.getByRole('row').count()).toBeLessThan(100)
  await type(page, page.getByLabel('Go to row'), '2500')
  await page.keyboard.press('Enter')
  await expect(row(page, 'part-2499')).toBeFocused()
  await page.keyboard.press('ArrowDown')
  await expect(row(page, 'part-2500')).toBeFocused()
  await page.keyboard.press(' ')
  await expect(page.getByLabel('Select part-2500')).toBeChecked()
  await page.keyboard.press('Tab')
  await expect(page.getByLabel('Select part-2500')).toBeFocused()
  await type(page, page.getByLabel('Name, or a part of it'), '1234')
  await expect(page.getByText('1 of 3,000 entries')).toBeVisible()
  await expect(page).toHaveURL(/q=1234/) // the view has an address
  await page.reload()
  await expect(row(page, 'part-1234')).toBeVisible()
  await page.getByRole('navigation', { name: 'Folders' }).getByRole('link', { name: 'open' }).click()
  await expect(row(page, 'data/')).toBeVisible()
  await expect(folder(page)).toHaveText('open')
  await page.goto('/storages/open?path=nothing/here')
  await expect(page.getByRole('alert')).toContainText('there is no nothing')
  await page.getByRole('link', { name: 'To the folder of the storage' }).click()
  await expect(row(page, 'data/')).toBeVisible()
})

test('a file is downloaded by a link of the browser', async ({ page }) => {
  await signIn(page, ADMIN, '/storages/open?path=data')
  const coming = page.waitForEvent('download')
  await page.getByRole('button', { name: 'Download words 模型.txt' }).click()
  const download = await coming
  expect(download.suggestedFilename()).toBe('words 模型.txt')
  expect(readFileSync((await download.path())!, 'utf8')).toBe('one two three')
})

test('files are uploaded in parts, and one that is there is replaced only after a question', async ({ page }) => {
  await page.addInitScript({ path: axePath })
  await signIn(page, ADMIN, '/storages/open')
  await page.getByRole('button', { name: 'New folder …' }).click()
  await page.getByRole('dialog').getByLabel('Name of the folder').fill('new 1')
  await page.keyboard.press('Enter')
  await page.getByRole('link', { name: 'new 1/' }).click()
  await expect(page.getByText('This folder is empty')).toBeVisible()
  await expect(page.getByText("skep storage put FILE … 'open/new 1/'")).toBeVisible()
  const parts: string[] = []
  page.on('request', (request) => {
    if (request.method() === 'PUT') parts.push(new URL(request.url()).search)
  })
  const [large, empty, third, fourth] = [local('large.bin', 3 * 1048576 + 17), local('empty', 0), local('three', 3), local('four', 4)]
  await chosen(page).setInputFiles([large, empty, third, fourth])
  await expect(uploadsOf(page).getByRole('status')).toHaveText(/4 of 4 files are uploaded/)
  for (const path of [large, empty, third, fourth]) expect(readFileSync(join(PLACE, 'open/new 1', path.slice(own.length + 1)))).toEqual(readFileSync(path))
  expect(parts.filter((one) => one.includes('offset=')).sort()).toEqual(['?offset=0', '?offset=0', '?offset=0', '?offset=1048576', '?offset=2097152', '?offset=3145728'])
  await expect(row(page, 'large.bin')).toContainText('3.0 MiB')

  // again, with other bytes: the one that is there is named before it goes
  await page.getByRole('button', { name: 'Clear what is uploaded' }).click()
  const other = local('three', 5, 9)
  await chosen(page).setInputFiles(other)
  await expect(uploadsOf(page)).toContainText('A file of this name is there already, with 3 B.')
  expect(statSync(join(PLACE, 'open/new 1/three')).size).toBe(3)
  expect(await barriers(page)).toEqual([])
  await viewSet(page, VIEWS[0])
  await tabTo(page, page.getByRole('button', { name: 'Replace three …' }))
  await page.keyboard.press('Enter')
  await expect(page.getByRole('dialog')).toContainText('open/new 1/three')
  expect(await barriers(page)).toEqual([])
  await viewSet(page, VIEWS[0])
  await page.getByRole('dialog').getByRole('button', { name: 'Replace' }).click()
  await expect(uploadsOf(page).getByRole('status')).toHaveText(/1 of 1 file is uploaded/)
  expect(readFileSync(join(PLACE, 'open/new 1/three'))).toEqual(readFileSync(other))

  // what the server takes in no case says why
  await chosen(page).setInputFiles(local('too-large', 9 * 1048576))
  await expect(uploadsOf(page)).toContainText('api.uploadMaxMB')
  expect(existsSync(join(PLACE, 'open/new 1/too-large'))).toBe(false)
})

test('files are dropped on the page', async ({ page }) => {
  await signIn(page, ADMIN, '/storages/open')
  await expect(row(page, 'data/')).toBeVisible()
  await expect(folder(page)).not.toBeFocused() // a page that opens takes no focus
  const drag = (kind: string) =>
    page.evaluate((kind) => {
      const transfer = new DataTransfer()
      transfer.items.add(new File(['dropped bytes'], 'dropped.txt'))
      document.body.dispatchEvent(new DragEvent(kind, { dataTransfer: transfer, bubbles: true, cancelable: true }))
    }, kind)
  await drag('dragover')
  await expect(page.getByText('Drop what you hold to upload it to open')).toBeVisible()
  await drag('drop')
  await expect(page.getByText('Drop what you hold to upload it to open')).toHaveCount(0)
  await expect(row(page, 'dropped.txt')).toBeVisible()
  expect(readFileSync(join(PLACE, 'open/dropped.txt'), 'utf8')).toBe('dropped bytes')
})

test('an upload waits for a server that is busy, goes on where it was cut off, and is cancelled', async ({ page }) => {
  await signIn(page, ADMIN, '/storages/open')
  await expect(row(page, 'data/')).toBeVisible()
  // eight others of the same person, which the server does not exceed
  const others = await page.evaluate(async () => {
    const { token } = JSON.parse(sessionStorage.getItem('skep.session') ?? '{}') as { token?: string }
    const ids: string[] = []
    for (let i = 0; i < 8; i++) {
      const reply = await fetch('/api/v2/storages/open/uploads', { method: 'POST', headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' }, body: JSON.stringify({ path: `other-${i}`, size: 1 }) })
      ids.push(((await reply.json()) as { id: string }).id)
    }
    return ids
  })
  // and the first two parts: one is refused with a time to wait, of the other the answer is lost
  let tries = 0
  await page.route('**/uploads/*?offset=*', async (route) => {
    tries++
    const refusal = { code: 'UnavailableError', message: 'the server is ending' }
    if (tries === 1) return route.fulfill({ status: 503, headers: { 'Retry-After': '15' }, json: refusal })
    if (tries === 2) {
      await fetched(route)
      return route.abort('connectionreset')
    }
    return route.continue()
  })
  const file = local('patient.bin', 2 * 1048576 + 5)
  await chosen(page).setInputFiles(file)
  await expect(uploadsOf(page)).toContainText(/you have 8 uploads under way.*Tries again in/)
  expect(await ask(page, 'DELETE', `/api/v2/storages/open/uploads/${others[0]}`)).toBe(200)
  await expect(uploadsOf(page)).toContainText(/the server is ending.*Tries again in/)
  await expect(uploadsOf(page).getByRole('status')).toHaveText(/1 of 1 file is uploaded/)
  expect(readFileSync(join(PLACE, 'open/patient.bin'))).toEqual(readFileSync(file))
  await page.unrouteAll({ behavior: 'wait' })

  // it goes on on other pages, and nothing is left of one that is cancelled
  let release = () => {}
  const held = new Promise<void>((resolve) => (release = resolve))
  await page.route('**/uploads/*?offset=1048576', async (route) => {
    await held
    await route.continue().catch(() => undefined) // it has been given up meanwhile
  })
  await chosen(page).setInputFiles(local('given-up.bin', 3 * 1048576))
  await expect(uploadsOf(page)).toContainText('1.0 MiB of 3.0 MiB')
  await page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name: 'Home' }).click()
  await page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name: 'Storages' }).click()
  await page.getByRole('link', { name: 'Files of open' }).click()
  const ended = page.waitForResponse((reply) => reply.request().method() === 'DELETE')
  await page.getByRole('button', { name: 'Cancel the upload of given-up.bin' }).click()
  expect((await ended).status()).toBe(200)
  release()
  await expect(page.getByText('given-up.bin')).toHaveCount(0)
  expect(readdirSync(join(PLACE, 'open')).filter((name) => name.includes('given-up') || name.startsWith('.skep'))).toEqual([])
  for (const id of others.slice(1)) expect(await ask(page, 'DELETE', `/api/v2/storages/open/uploads/${id}`)).toBe(200)
})

test('files are renamed, moved and deleted by the keyboard', async ({ page }) => {
  await page.addInitScript({ path: axePath })
  await signIn(page, ADMIN, '/storages/open')
  await chosen(page).setInputFiles([local('first', 10), local('second', 20)])
  await expect(row(page, 'second')).toBeVisible()
  await page.getByRole('button', { name: 'Clear what is uploaded' }).click()
  await rowTo(page, 'first')
  await tabTo(page, page.getByRole('button', { name: 'Rename or move first' }))
  await page.keyboard.press('Enter')
  const dialog = page.getByRole('dialog')
  await expect(dialog.getByLabel('New name, with its folders')).toHaveValue('first')
  expect(await barriers(page)).toEqual([])
  await viewSet(page, VIEWS[0])
  await dialog.getByLabel('New name, with its folders').fill('second')
  await page.keyboard.press('Enter')
  await expect(dialog.getByRole('alert')).toContainText('second is there already')
  await dialog.getByLabel('New name, with its folders').fill('data/moved')
  await page.keyboard.press('Enter')
  await expect(row(page, 'first')).toHaveCount(0)
  expect(statSync(join(PLACE, 'open/data/moved')).size).toBe(10)
  await expect(page.getByText('first is data/moved now.')).toBeVisible()
  await page.keyboard.press('u')
  await expect(row(page, 'first')).toBeVisible()

  await rowTo(page, 'first')
  await page.keyboard.press(' ')
  await page.getByLabel('Select second').check()
  await tabTo(page, page.getByRole('button', { name: 'Delete 2 selected …' }))
  await page.keyboard.press('Enter')
  await expect(dialog).toContainText('open/first')
  await expect(dialog).toContainText('open/second 20 B')
  await expect(dialog).toContainText('Nothing brings it back.')
  expect(await barriers(page)).toEqual([])
  await viewSet(page, VIEWS[0])
  await tabTo(page, dialog.getByRole('button', { name: 'Delete' }))
  await page.keyboard.press('Enter')
  await expect(dialog).toHaveCount(0)
  await expect(row(page, 'second')).toHaveCount(0)
  await expect(folder(page)).toBeFocused() // the button is gone with its rows
  expect(existsSync(join(PLACE, 'open/first'))).toBe(false)
  await page.getByRole('button', { name: 'Delete data', exact: true }).click()
  await dialog.getByRole('button', { name: 'Delete' }).click()
  await expect(dialog.getByRole('alert')).toContainText('the folder data is not empty')
})

test('a read-only storage, one of folders of users, and one that is elsewhere say so', async ({ page }) => {
  await page.addInitScript({ path: axePath })
  await signIn(page, ADMIN, '/storages/fixed?path=results')
  await expect(page.getByText('This storage is read-only')).toBeVisible()
  await expect(page.getByRole('button', { name: 'Download model.pt' })).toBeVisible()
  for (const name of ['Upload files …', 'New folder …', 'Rename or move model.pt', 'Delete model.pt']) await expect(page.getByRole('button', { name })).toHaveCount(0)
  await expect(page.getByText('skep storage put')).toHaveCount(0)
  expect(await barriers(page)).toEqual([])
  await viewSet(page, VIEWS[0])
  await page.goto('/storages/home')
  await expect(page.getByText('This is your own folder')).toBeVisible()
  await page.getByText('How files get to home').click()
  await expect(page.getByText('sudo mount -t nfs')).toBeVisible()
  await page.goto('/storages/claimed')
  await expect(page.getByText('The files of claimed cannot be shown here')).toBeVisible()
  await expect(page.getByText('claim of Kubernetes')).toBeVisible()
  expect(await barriers(page)).toEqual([])
  await viewSet(page, VIEWS[0])
  await page.goto('/storages/none')
  await expect(page.getByRole('alert')).toContainText('Storage none is not found')
})

test('the profile and the form for jobs lead there, and the form is not lost', async ({ page, context }) => {
  await signIn(page, ADMIN, '/profile')
  await page.getByRole('region', { name: 'Storages' }).getByRole('link', { name: 'Files of open' }).click()
  await expect(page).toHaveURL(/\/storages\/open$/)
  await page.goto('/submit')
  const coming = context.waitForEvent('page')
  await page.getByRole('link', { name: 'Files of open, in a tab of their own' }).click()
  const other = await coming
  await expect(other.getByRole('heading', { name: 'Files of open' })).toBeVisible() // nobody has to sign in again
  await expect(page).toHaveURL(/\/submit/)
})

test('a picture for the guide', async ({ page }) => {
  test.skip(!process.env['PORTAL_PICTURES'], 'only when somebody wants one')
  await signIn(page, ADMIN, '/storages/open?path=data')
  await page.route('**/uploads/*?offset=1048576', () => undefined)
  await chosen(page).setInputFiles([local('checkpoint-12.pt', 4 * 1048576), local('labels.csv', 5200)])
  await expect(uploadsOf(page)).toContainText('1.0 MiB of 4.0 MiB')
  await expect(row(page, 'labels.csv')).toBeVisible()
  for (const view of VIEWS.slice(0, 3)) {
    await viewSet(page, view)
    await picture(page, `${view.width === 320 ? 'narrow/' : view.theme === 'dark' ? 'dark/' : ''}files`)
  }
})

test('in Chinese all of it is Chinese', async ({ page }) => {
  await signIn(page, ADMIN, '/storages/open?path=data')
  await expect(row(page, 'link')).toBeVisible()
  await page.evaluate(() => localStorage.setItem('skep.language', 'zh-CN'))
  await page.reload()
  await page.locator('input[type=file]').first().setInputFiles([local('卷', 3), local('大', 9 * 1048576)])
  await expect(page.getByRole('button', { name: '重新上传 大' })).toBeVisible()
  await picture(page, 'files-zh')
  const english = () =>
    page.evaluate(() => {
      const found: string[] = []
      const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT)
      while (texts.nextNode()) {
        const text = texts.currentNode.textContent ?? ''
        if (/[a-z]{2}/i.test(text.replace(/Skep|admin|open|data|KiB|MiB|words|link/g, '')) && !texts.currentNode.parentElement!.closest('[lang="en"], [lang=""], code, kbd, noscript')) found.push(text)
      }
      return found
    })
  expect(await english()).toEqual([])
  for (const open of ['新建文件夹……', '重命名或移动 link', '删除 link']) {
    await page.getByRole('button', { name: open }).click()
    await expect(page.getByRole('dialog')).toBeVisible()
    expect(await english(), open).toEqual([])
    await page.keyboard.press('Escape')
    await expect(page.getByRole('dialog')).toHaveCount(0)
  }
})

test('a folder is uploaded with all that is in it, or not at all when a name in it cannot be stored', async ({ page }) => {
  await signIn(page, ADMIN, '/storages/open')
  await expect(row(page, 'data/')).toBeVisible()
  const tree = join(own, 'lab 模型')
  mkdirSync(join(tree, 'src/deep'), { recursive: true })
  writeFileSync(join(tree, 'src/deep/a.c'), 'int a;')
  writeFileSync(join(tree, 'read me'), 'all of it')
  await expect(page.getByRole('button', { name: 'Upload a folder …' })).toBeVisible()
  await page.getByLabel('Folder to upload').setInputFiles(tree)
  await expect(uploadsOf(page).getByRole('status')).toHaveText(/2 of 2 files are uploaded/)
  expect(readFileSync(join(PLACE, 'open/lab 模型/src/deep/a.c'), 'utf8')).toBe('int a;')
  expect(readFileSync(join(PLACE, 'open/lab 模型/read me'), 'utf8')).toBe('all of it')
  await expect(row(page, 'lab 模型/')).toBeVisible()

  // a folder that is there takes more, and what has the name of a file is asked about
  writeFileSync(join(tree, 'more'), 'later')
  await page.getByLabel('Folder to upload').setInputFiles(tree)
  await expect(uploadsOf(page)).toContainText('A file of this name is there already')
  await expect.poll(() => existsSync(join(PLACE, 'open/lab 模型/more'))).toBe(true)

  writeFileSync(join(tree, 'bad\u0001name'), '')
  writeFileSync(join(tree, 'good'), '')
  await page.getByLabel('Folder to upload').setInputFiles(tree)
  await expect(page.getByRole('alert')).toContainText('Nothing was uploaded: lab 模型/bad\\u0001name: a name has a control character')
  expect(existsSync(join(PLACE, 'open/lab 模型/good'))).toBe(false)
  await page.getByRole('alert').getByRole('button', { name: 'Close' }).click()
  await expect(page.getByRole('alert')).toHaveCount(0)
})
