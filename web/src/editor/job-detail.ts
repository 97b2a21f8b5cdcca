// What a job file asks for beside its roles: where data, code and output are, as OpenPAI's protocol names them.
import { isMap, isSeq } from 'yaml'
import { jobParse, text } from './document'

export interface Prerequisite {
  type: 'data' | 'script' | 'output'
  name: string
  uris: string[]
}

const isType = (type: string): type is Prerequisite['type'] => type === 'data' || type === 'script' || type === 'output'

export function prerequisitesOf(source: string): Prerequisite[] {
  const list = jobParse(source).document.get('prerequisites')
  return (isSeq(list) ? list.items : []).flatMap((item) => {
    const type = isMap(item) ? text(item.get('type')) : ''
    if (!isMap(item) || !isType(type)) return []
    const uri = item.get('uri')
    return [{ type, name: text(item.get('name')), uris: isSeq(uri) ? uri.items.map((one) => text((one as { value?: unknown }).value)) : [text(uri)].filter(Boolean) }]
  })
}
