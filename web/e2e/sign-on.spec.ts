// Login at the organisation's provider: only where the test has started one (tests/system/signon/test_portal_login.py).
import { ADMIN, expect, signIn, test } from './portal'

const provider = process.env['PORTAL_PROVIDER']

test.describe('login at the provider', () => {
  test.skip(!provider, 'there is no provider')

  test('leads back to where one wanted to go, and leaves no token in the address', async ({ page }) => {
    await page.goto('/jobs?keyword=x')
    await page.getByRole('button', { name: 'Sign in with your organisation' }).click()
    await expect(page).toHaveURL(new RegExp(`^${provider}`))
    await page.locator('input[name=login]').fill('alice')
    await page.locator('input[name=password]').fill('anything')
    await page.locator('button[type=submit]').click()
    await page.locator('button[type=submit]').click() // the provider asks whether Skep may know who it is
    await expect(page.getByRole('button', { name: 'Account of alice' })).toBeVisible()
    await expect(page).toHaveURL(/\/jobs\?keyword=x$/)
    await page.goBack()
    expect(page.url()).not.toContain('token')
  })

  test('signing out ends the session at the provider, too', async ({ page }) => {
    const enter = page.getByRole('button', { name: 'Sign in with your organisation' })
    await page.goto('/')
    await enter.click()
    await page.locator('input[name=login]').fill('alice')
    await page.locator('input[name=password]').fill('anything')
    await page.locator('button[type=submit]').click()
    await page.locator('button[type=submit]').click()
    await page.getByRole('button', { name: 'Account of alice' }).click()
    await expect(page.getByText('alice@example.org')).toBeVisible()
    await page.getByRole('button', { name: 'Sign out' }).click()
    await page.locator('button[name=logout]').click() // the provider asks
    await expect(page).toHaveURL(/\/sign-in/)
    await enter.click()
    await expect(page.locator('input[name=login]')).toBeVisible() // whoever has this browser now
  })

  test('says why somebody is refused', async ({ page }) => {
    await page.goto('/')
    await page.getByRole('button', { name: 'Sign in with your organisation' }).click()
    await page.locator('input[name=login]').fill('admin')
    await page.locator('input[name=password]').fill('anything')
    await page.locator('button[type=submit]').click()
    await page.locator('button[type=submit]').click()
    await expect(page.getByRole('alert')).toContainText('logs in with a password here')
    await signIn(page, ADMIN) // the password's way is open
  })

  test('a token that this tab did not ask for is not taken', async ({ page }) => {
    await page.goto('/sign-in?user=admin&token=stolen&admin=true&from=anything')
    await expect(page.getByLabel('Password')).toBeVisible()
    expect(await page.evaluate(() => sessionStorage.getItem('skep.session'))).toBeNull()
  })
})
