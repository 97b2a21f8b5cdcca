// Lists of the API that come in pages, each with a cursor that begins the next one; null: there is none.

export interface ListPage<Item> {
  data: Item[]
  cursor?: string | null
}

/** What `read` gives, page by page from the empty cursor on; not many more than `most`. */
export async function pagesAll<Item>(read: (cursor: string) => Promise<ListPage<Item>>, most = Infinity): Promise<Item[]> {
  const all: Item[] = []
  for (let cursor: string | null = ''; cursor !== null && all.length < most; ) {
    const page: ListPage<Item> = await read(cursor)
    for (const item of page.data) all.push(item)
    cursor = page.cursor ?? null
  }
  return all
}
