import { beforeEach, describe, expect, it } from 'vitest'
import './browser'
import { providerOut } from '../src/api/client'
import { signOnReturned, signOnUrl } from '../src/lib/sign-on'

const back = (query: Record<string, string>) => signOnReturned(new URLSearchParams(query))

describe('the return from the provider', () => {
  beforeEach(() => sessionStorage.removeItem('skep.sign-on'))

  it('is taken by the tab that asked, once', () => {
    const url = new URL(signOnUrl('https://skep.test/', '/jobs?a=b', 'https://skep.test'))
    expect(url.origin + url.pathname).toBe('https://skep.test/api/v2/authn/oidc/login')
    expect(url.searchParams.get('redirect_uri')).toBe('https://skep.test/sign-in')
    const reply = { user: 'ann', token: 'T', admin: 'true', from: url.searchParams.get('from')! }
    expect(back(reply)).toEqual({ session: { user: 'ann', token: 'T', admin: true, provider: 'https://skep.test/' }, from: '/jobs?a=b' })
    expect(back(reply)).toBeNull()
  })
  it('is not taken when nobody asked, or something else was asked', () => {
    expect(back({ user: 'eve', token: 'T', from: 'x' })).toBeNull()
    signOnUrl('https://skep.test', '/', 'https://skep.test')
    expect(back({ user: 'eve', token: 'T', from: '/' })).toBeNull()
    expect(back({ user: 'eve', token: 'T' })).toBeNull()
  })
  it('tells what went wrong', () => {
    expect(back({ errorMessage: 'none of the groups' })).toEqual({ error: 'none of the groups' })
    expect(back({})).toBeNull()
  })
})

describe('the way out', () => {
  it('leads by the provider, and back to the page for signing in', () =>
    expect(providerOut('https://skep.test/', 'https://other.test')).toBe('https://skep.test/api/v2/authn/oidc/logout?redirect_uri=https%3A%2F%2Fother.test%2Fsign-in'))
})
