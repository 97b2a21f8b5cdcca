// Two languages: with Chinese chosen, no page and no dialog has a word of English that is ours.
import type { Page } from '@playwright/test'
import { dialogsOf, menusOf } from './dialogs'
import { expect, signIn, test } from './portal'
import { pagesOf, stageSet, visit } from './stage'

// Names, which are the same in all languages; what programs, people and the server say is marked with lang="en" or lang="", or stands in code.
const NAMES = /^(Skep|https|[Ee]d|RSA|AAAA|read|submit|usual|archived|OpenPAI|SKUs?|docker|io|YAML|CSV|JSON|GPUs?|CPUs?|SIM|MB|GB|GiB|MiB|KiB|kB|TensorBoard|Jupyter|notebook|RE2|ssh|SSH|API|Tab|Ctrl|Escape|Esc|Enter|Shift|Space|Home|End|PageUp|PageDown|English|HTTP|URL|IP|ID|id|shell|admin|ann|greta|lab|default|resnet|example|org|rate|image|main|local|crit|prod|test|oppo|dockerimage|sweep|vc|admingroup|vm|UTC|nvidia|smi|http|stdout|stderr|none|SIGHUP|export|USER|JOB|UserCommandExitWithError)$/

/** The names that people have given: what the tests before have left, also in the history. */
const given = (page: Page) =>
  page.evaluate(async () => {
    const { token } = JSON.parse(sessionStorage.getItem('skep.session') ?? '{}') as { token?: string }
    const names = new Set<string>()
    const take = (value: unknown) => {
      if (typeof value === 'string') names.add(value)
      else if (value && typeof value === 'object') Object.values(value).forEach(take)
    }
    const lists = ['jobs?limit=1000&fields=username,name', 'users?fields=username,virtualCluster', 'groups?fields=groupname,extension', 'audit?limit=1000&fields=user,subject', 'storages']
    for (const path of [...lists.map((list) => `/api/v2/${list}`), '/marketplace/api/items?fields=name,author']) {
      const reply = await fetch(path, { headers: { Authorization: `Bearer ${token}` } })
      if (!reply.ok) throw new Error(await reply.text())
      take(await reply.json())
    }
    return [...names]
  })

/** Words in Latin letters of everything that is shown or read aloud, where they stand. */
const words = (page: Page, names: string, given: string[]) =>
  page.evaluate(({ source, given }) => {
    const own = new Set(given)
    const name = new RegExp(source)
    const found = new Map<string, string>()
    const take = (text: string, element: Element) => {
      if (element.closest('[lang="en"], [lang=""], code, pre, kbd, textarea, noscript, .cm-editor, .xterm, [role="log"], svg title')) return
      for (const [word] of text.matchAll(/[A-Za-z0-9][A-Za-z0-9_.~-]*/g))
        if (!/^([0-9a-f]{8}$|PAI_)/.test(word) && !word.split('~').every((part) => own.has(part)) && !word.split(/[^A-Za-z]+/).every((part) => part.length < 2 || name.test(part))) found.set(word, `${word}: ${text.trim().slice(0, 90)} <${element.className}>`)
    }
    const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT)
    while (texts.nextNode()) take(texts.currentNode.textContent ?? '', texts.currentNode.parentElement!)
    for (const element of document.querySelectorAll('[aria-label], [title], [placeholder]'))
      for (const key of ['aria-label', 'title', 'placeholder']) take(element.getAttribute(key) ?? '', element)
    return [...found.values()]
  }, { source: names, given })

test('in Chinese no page has a word of English left', async ({ page }) => {
  test.setTimeout(900_000)
  await signIn(page)
  await stageSet(page)
  await page.evaluate(() => localStorage.setItem('skep.language', 'zh-CN'))
  await page.reload()
  const names = await given(page)
  const wrong: string[] = []
  for (const path of pagesOf('admin~resnet-49').concat(pagesOf('admin~resnet-50').filter((path) => path.includes('resnet')))) {
    await visit(page, path)
    for (const one of await words(page, NAMES.source, names)) wrong.push(`${path}: ${one}`)
  }
  expect(wrong).toEqual([])
})

test('in Chinese the portal says why a job waits, and what to do after a failure', async ({ page }) => {
  await signIn(page)
  await stageSet(page)
  await page.evaluate(() => localStorage.setItem('skep.language', 'zh-CN'))
  await page.goto('/jobs/admin~resnet-51')
  const waits = page.getByRole('region', { name: '为什么等待' })
  await expect(waits).toContainText('需要 1 × 8 个 ')
  await expect(waits).toContainText('；占用者：')
  await expect(waits.getByRole('link', { name: 'admin~resnet-50' })).toHaveAttribute('href', '/jobs/admin~resnet-50')
  await expect(waits).not.toContainText('it needs')
  await page.goto('/jobs/admin~resnet-49')
  const failed = page.getByRole('region', { name: '失败原因' })
  await expect(failed).toContainText('命令不存在或无法执行')
  await expect(failed).toContainText('请确认程序在镜像中且位于 PATH 内')
  await page.evaluate(() => localStorage.setItem('skep.language', 'en'))
  await page.goto('/jobs/admin~resnet-51')
  await expect(page.getByRole('region', { name: 'Why it waits' })).toContainText('it needs 1 x 8 ')
})

test('in Chinese no dialog and no menu has a word of English left', async ({ page }) => {
  test.setTimeout(900_000)
  await signIn(page)
  await stageSet(page)
  await page.evaluate(() => localStorage.setItem('skep.language', 'zh-CN'))
  await page.reload()
  const names = await given(page)
  const wrong: string[] = []
  for (const [path, open] of dialogsOf('zh-CN')) {
    await visit(page, path)
    await open(page)
    const dialog = page.getByRole('dialog')
    await expect(dialog).toBeVisible()
    await expect(dialog.getByText('正在载入……')).toHaveCount(0)
    const title = `${path} ${await dialog.getByRole('heading').first().innerText()}`
    for (const one of await words(page, NAMES.source, names)) wrong.push(`${title}: ${one}`)
    await page.keyboard.press('Escape')
  }
  for (const [path, name] of menusOf('zh-CN')) {
    await visit(page, path)
    await page.getByRole('button', { name, exact: true }).click()
    for (const one of await words(page, NAMES.source, names)) wrong.push(`${path} ${name}: ${one}`)
    await page.keyboard.press('Escape')
  }
  expect(wrong).toEqual([])
})
