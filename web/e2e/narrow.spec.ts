// A window of 320 pixels: where one is can be seen in each row of links, and what has to be read stands in lines of words.
import { expect, signIn, test } from './portal'
import { pagesOf, settled, stageSet, visit } from './stage'

const READABLE_PX = 120 // a line of some words

test('in a narrow window the current link is in sight, and no column is a word wide', async ({ page }) => {
  test.setTimeout(600_000)
  await signIn(page)
  await stageSet(page)
  await page.setViewportSize({ width: 320, height: 640 })
  const wrong: string[] = []
  for (const path of [...pagesOf('admin~resnet-49'), '/jobs/admin~resnet-50']) {
    await visit(page, path)
    wrong.push(
      ...(await page.evaluate(
        ([at, readable]) => {
          const links = [...document.querySelectorAll('nav')].flatMap((nav) => {
            const [box, link] = [nav.getBoundingClientRect(), nav.querySelector('[aria-current]')?.getBoundingClientRect()]
            return link && (link.left < box.left - 1 || link.right > box.right + 1) ? [`${at}: ${nav.getAttribute('aria-label')}: the current link is out of sight`] : []
          })
          const columns = [...document.querySelectorAll('td.anywhere, th.anywhere')].flatMap((cell) => (cell.getBoundingClientRect().width < readable ? [`${at}: a column of ${cell.getBoundingClientRect().width} pixels: ${cell.textContent.slice(0, 40)}`] : []))
          return [...links, ...columns.slice(0, 3)]
        },
        [path, READABLE_PX] as const,
      )),
    )
  }
  expect(wrong).toEqual([])
})

test('a window that gets narrow keeps the current link in sight', async ({ page }) => {
  await signIn(page)
  await page.goto('/admin?tab=settings')
  await settled(page)
  await page.setViewportSize({ width: 320, height: 640 })
  for (const name of ['Pages', 'Views of the administration']) await expect(page.getByRole('navigation', { name }).locator('[aria-current]')).toBeInViewport({ ratio: 0.95 })
})
