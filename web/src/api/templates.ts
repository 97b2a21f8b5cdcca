// Templates, which the server keeps: job files to begin others from, private or shared.
import { queryOptions } from '@tanstack/react-query'
import { call, enc, get, type Schema } from './client'
import { pagesAll } from './pages'
import { SELDOM_MS } from './queries'

export type Template = Schema['Template']
export type TemplateWrite = Schema['TemplateWrite']

const ITEMS = '/marketplace/api/items'

/** Without what is long. */
const HEAD = 'id,name,author,summary,categories,tags,isPublic,isPrivate,groupList,status,reason,reviewer,useNumber,starNumber,starred,official,usedAt,createdAt,updatedAt'

/** All that fit: `filter` is a query string of GET /marketplace/api/items. */
export const templatesQuery = (filter: string) =>
  queryOptions({
    queryKey: ['templates', filter],
    queryFn: ({ signal }) => pagesAll<Template>((cursor) => get(`${ITEMS}?${filter}${filter ? '&' : ''}limit=200&fields=${HEAD}&cursor=${enc(cursor)}`, signal)),
    refetchInterval: SELDOM_MS,
  })

/** By its id, or author~name. */
export const templateQuery = (name: string) =>
  queryOptions({
    queryKey: ['templates', 'one', name],
    queryFn: ({ signal }) => get<Template>(`${ITEMS}/${enc(name)}`, signal),
  })

export const templateWordsQuery = (kind: 'tags' | 'categories') =>
  queryOptions({
    queryKey: ['templates', kind],
    queryFn: ({ signal }) => get<Schema['TemplateWord'][]>(`/marketplace/api/${kind}`, signal),
  })

export const templateAdd = (template: TemplateWrite) => call<Schema['TemplateChanged']>('POST', ITEMS, { json: template })
export const templateSet = (id: string, template: TemplateWrite) => call<Schema['TemplateChanged']>('PUT', `${ITEMS}/${enc(id)}`, { json: template })
export const templateRemove = (id: string) => call('DELETE', `${ITEMS}/${enc(id)}`)
export const templateUsed = (id: string) => call('POST', `${ITEMS}/${enc(id)}/use`)
export const templateStar = (id: string, isWanted: boolean) => call(isWanted ? 'PUT' : 'DELETE', `${ITEMS}/${enc(id)}/star`)
export const templateReview = (template: Template, status: 'approved' | 'rejected', reason: string) =>
  call('PUT', `${ITEMS}/${enc(template.id)}/status`, { json: { status, reason, ...(template.updatedAt ? { updatedAt: template.updatedAt } : {}) } })

export const templateOfficial = (template: Template, official: boolean) => call('PUT', `${ITEMS}/${enc(template.id)}/official`, { json: { official, ...(template.updatedAt ? { updatedAt: template.updatedAt } : {}) } })

export type TemplateVersion = Schema['TemplateVersion']

/** What it says now and said before, the newest first; for its author and administrators. */
export const templateVersionsQuery = (id: string) =>
  queryOptions({
    queryKey: ['templates', 'versions', id],
    queryFn: ({ signal }) => get<TemplateVersion[]>(`${ITEMS}/${enc(id)}/versions`, signal),
  })

export const templateVersionQuery = (id: string, version: number) =>
  queryOptions({
    queryKey: ['templates', 'versions', id, version],
    queryFn: ({ signal }) => get<TemplateVersion>(`${ITEMS}/${enc(id)}/versions/${version}`, signal),
  })

export const templateRestore = (template: Template, version: number) =>
  call<Schema['TemplateChanged']>('POST', `${ITEMS}/${enc(template.id)}/versions/${version}/restore`, { json: template.updatedAt ? { updatedAt: template.updatedAt } : {} })

/** Takes a removal back; uses, stars and earlier versions are gone, and what everyone saw waits for an approval again. */
export const templateBack = ({ id, name, summary, description, protocol, categories, tags, isPublic, groupList }: Template) =>
  templateAdd({ id, name, ...Object.fromEntries(Object.entries({ summary, description, protocol, categories, tags, isPublic, groupList }).filter(([, value]) => value !== undefined)) })
