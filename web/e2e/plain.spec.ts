// A server that places jobs without cells. Only where the test has one (tests/system/portal/test_portal_map.py).
import type { Request } from '@playwright/test'
import { expect, jobFile, running, signIn, submit, test } from './portal'
import { settled } from './stage'

test.describe('a server without cells', () => {
  test.skip(!process.env['PORTAL_PLAIN'], 'there is none')

  test('tells which jobs run on which nodes, and is not asked for cells again and again', async ({ page }) => {
    let asked = 0 // requests, not replies: one of the page before may still come when the next page has begun
    const unanswered = new Set<Request>()
    page.on('request', (request) => {
      if (!new URL(request.url()).pathname.startsWith('/v1/inspect')) return
      asked++
      unanswered.add(request)
    })
    const isAnswered = (request: Request) => void unanswered.delete(request)
    page.on('requestfinished', isAnswered)
    page.on('requestfailed', isAnswered)
    await signIn(page)
    await submit(page, jobFile('spreads', ['sleep 1000']).replace('instances: 1', 'instances: 6'))
    await running(page, 'admin~spreads')
    await page.goto('/cluster?tab=nodes')
    for (const name of ['fake0', 'fake1', 'fake2']) {
      const row = page.getByRole('row').filter({ has: page.getByRole('link', { name, exact: true }) })
      await expect(row).toContainText('admin~spreads 2 tasks')
    }
    await page.goto('/cluster')
    await expect(page.getByText('This server places jobs without cells')).toContainText('scheduling.policy')
    expect(asked).toBeGreaterThan(0)
    for (const [path, questions] of [['/', 2], ['/cluster', 2], ['/cluster?tab=nodes', 0]] as const) {
      asked = 0
      await page.goto(path)
      await settled(page)
      await expect.poll(() => asked >= questions && !unanswered.size).toBe(true)
      const answered = asked // once, or anew when a list was read again before there was an answer
      for (const again of ['first', 'second']) {
        const isRead = page.waitForResponse((reply) => reply.url().includes('/api/v2/nodes'))
        const name = `${again}-${Date.now()}`
        await submit(page, jobFile(name, ['true'])) // a change, after which lists are read again
        await isRead
        await running(page, `admin~${name}`) // it changes no more
      }
      expect(asked).toBe(answered)
    }
  })
})
