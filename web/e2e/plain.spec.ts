// A server that places jobs without cells. Only where the test has one (tests/system/portal/test_portal_map.py).
import { expect, jobFile, running, signIn, submit, test } from './portal'
import { settled } from './stage'

test.describe('a server without cells', () => {
  test.skip(!process.env['PORTAL_PLAIN'], 'there is none')

  test('tells which jobs run on which nodes, and is not asked for cells again and again', async ({ page }) => {
    let asked = 0 // requests, not replies: one of the page before may still come when the next page has begun
    page.on('request', (request) => {
      if (new URL(request.url()).pathname.startsWith('/v1/inspect')) asked++
    })
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
    for (const path of ['/', '/cluster', '/cluster?tab=nodes']) {
      asked = 0
      await page.goto(path)
      await settled(page)
      for (const again of ['first', 'second']) {
        const isRead = page.waitForResponse((reply) => reply.url().includes('/api/v2/nodes'), { timeout: 60_000 })
        await submit(page, jobFile(`${again}-${Date.now()}`, ['true'])) // a change, after which lists are read again
        await isRead
      }
      expect(asked).toBeLessThanOrEqual(2) // the page has asked once
    }
  })
})
