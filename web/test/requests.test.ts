import { QueryClient } from '@tanstack/react-query'
import { describe, expect, it, vi } from 'vitest'
import { requestsQuery } from '../src/api/requests'
import type { Schema } from '../src/api/client'
import { groupsFor, mayAsk, openFor } from '../src/lib/requests'

const request = (fields: Partial<Schema['Request']>): Schema['Request'] => ({ id: '1', kind: 'virtualCluster', status: 'open', username: 'ann', askedTime: 1, virtualCluster: 'vc1', ...fields })

describe('requests', () => {
  it('are granted by groups that grant what is asked for, and make no administrators', () => {
    const groups = [
      { groupname: 'other', extension: { acls: { virtualClusters: ['vc2'] } } },
      { groupname: 'lab', extension: { acls: { virtualClusters: ['vc2', 'vc1'] } } },
      { groupname: 'admins', extension: { acls: { virtualClusters: ['vc1'], admin: true } } },
      { groupname: 'art', extension: { acls: { virtualClusters: ['vc1'] } } },
      { groupname: 'default' },
    ]
    expect(groupsFor(request({}), groups)).toEqual(['art', 'lab'])
    expect(groupsFor(request({ virtualCluster: 'vc3' }), groups)).toEqual([])
    expect(groupsFor(request({ kind: 'account', virtualCluster: undefined }), groups)).toEqual(['art', 'lab', 'other'])
  })
  it('are open for a virtual cluster, or not', () => {
    const all = [request({ id: '2', status: 'refused' }), request({}), request({ id: '3', virtualCluster: 'vc2' })]
    expect(openFor(all, 'vc1')?.id).toBe('1')
    expect(openFor(all, 'vc3')).toBeUndefined()
    expect(openFor([request({ status: 'withdrawn' })], 'vc1')).toBeUndefined()
  })
  it('are for what one may not use yet', () => {
    expect(mayAsk(['default'], false, 'vc1')).toBe(true)
    expect(mayAsk(['default', 'vc1'], false, 'vc1')).toBe(false)
    expect(mayAsk(['default'], false, 'default')).toBe(false)
    expect(mayAsk(['default'], true, 'vc1')).toBe(false)
    expect(mayAsk(undefined, false, 'vc1')).toBe(false) // that is not known yet
  })
})

describe('the list of requests', () => {
  it('has all of them, however many there are', async () => {
    const asked: string[] = []
    vi.stubGlobal('fetch', (path: string) => {
      asked.push(path)
      const isFirst = asked.length === 1
      return Promise.resolve(Response.json({ totalCount: 2, data: [{ id: isFirst ? 'a' : 'b' }], cursor: isFirst ? 'n/1' : null }))
    })
    const { data } = await new QueryClient().fetchQuery(requestsQuery('status=open'))
    expect(asked).toEqual(['/api/v2/requests?limit=1000&cursor=&status=open', '/api/v2/requests?limit=1000&cursor=n%2F1&status=open'])
    expect(data.map(({ id }) => id)).toEqual(['a', 'b'])
    vi.unstubAllGlobals()
  })
})
