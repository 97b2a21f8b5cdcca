// Markdown of descriptions, as a tree: headings, paragraphs, lists, quotes, code, emphasis, links. What else it has stays text.
// It never becomes HTML: pages make elements of the tree.

export type Inline = string | { kind: 'code'; text: string } | { kind: 'strong' | 'em'; parts: Inline[] } | { kind: 'link'; href: string; parts: Inline[] }

export type Block =
  | { kind: 'heading'; level: number; parts: Inline[] }
  | { kind: 'paragraph' | 'quote'; parts: Inline[] }
  | { kind: 'list'; isOrdered: boolean; items: Inline[][] }
  | { kind: 'code'; text: string }

const INLINE = /`([^`\n]+)`|\*\*([^*\n]+)\*\*|\*([^*\s][^*\n]*)\*|\b_([^_\n]+)_\b|\[([^\][\n]+)\]\(([^()\s]+)\)|(https?:\/\/[^\s<>()]*[^\s<>().,;:!?'"])/

/** Only pages of the web and mail addresses: nothing that runs. */
const isLink = (href: string) => /^(https?:\/\/|mailto:)/i.test(href)

export function inlinesOf(text: string): Inline[] {
  const parts: Inline[] = []
  let rest = text
  for (let found = INLINE.exec(rest); found; found = INLINE.exec(rest)) {
    const [all, code, strong, star, line, label, href, bare] = found
    if (found.index) parts.push(rest.slice(0, found.index))
    rest = rest.slice(found.index + all.length)
    if (code !== undefined) parts.push({ kind: 'code', text: code })
    else if (strong !== undefined) parts.push({ kind: 'strong', parts: inlinesOf(strong) })
    else if (star !== undefined || line !== undefined) parts.push({ kind: 'em', parts: inlinesOf((star ?? line)!) })
    else if (bare !== undefined) parts.push({ kind: 'link', href: bare, parts: [bare] })
    else if (isLink(href!)) parts.push({ kind: 'link', href: href!, parts: inlinesOf(label!) })
    else parts.push(all)
  }
  if (rest) parts.push(rest)
  return parts
}

const HEADING = /^(#{1,6})\s+(.*?)\s*#*$/
const ITEM = /^\s{0,8}(?:[-*+]|(\d{1,9})[.)])\s+(.*)$/
const FENCE = /^\s{0,3}(```+|~~~+)/
const isText = (line: string) => !!line.trim() && !HEADING.test(line) && !ITEM.test(line) && !FENCE.test(line) && !/^\s*>/.test(line)

export function blocksOf(source: string): Block[] {
  const lines = source.replaceAll('\r\n', '\n').split('\n')
  const blocks: Block[] = []
  const take = (goesOn: (line: string) => boolean, at: number) => {
    let end = at
    while (end < lines.length && goesOn(lines[end]!)) end++
    return end
  }
  for (let at = 0; at < lines.length; ) {
    const line = lines[at]!
    const heading = HEADING.exec(line)
    const fence = FENCE.exec(line)?.[1]
    const item = ITEM.exec(line)
    if (heading) {
      blocks.push({ kind: 'heading', level: heading[1]!.length, parts: inlinesOf(heading[2]!) })
      at++
    } else if (fence) {
      const end = take((next) => !next.trimStart().startsWith(fence), at + 1)
      blocks.push({ kind: 'code', text: lines.slice(at + 1, end).join('\n') })
      at = end + 1
    } else if (item) {
      const items: string[] = []
      const isOrdered = item[1] !== undefined
      const end = take((next) => {
        const found = ITEM.exec(next)
        if (found && (found[1] !== undefined) === isOrdered) items.push(found[2]!)
        else if (!found && isText(next)) items.push(`${items.pop()} ${next.trim()}`)
        else return false
        return true
      }, at)
      blocks.push({ kind: 'list', isOrdered, items: items.map(inlinesOf) })
      at = end
    } else if (/^\s*>/.test(line)) {
      const end = take((next) => /^\s*>/.test(next), at)
      blocks.push({ kind: 'quote', parts: inlinesOf(lines.slice(at, end).map((one) => one.replace(/^\s*>\s?/, '')).join('\n')) })
      at = end
    } else if (line.trim()) {
      const end = take(isText, at)
      blocks.push({ kind: 'paragraph', parts: inlinesOf(lines.slice(at, end).join('\n')) })
      at = end
    } else at++
  }
  return blocks
}

/** Of each block the level that a heading there has below one of `above`: none is left out on the way down, as readers by ear go by them. */
export function headingLevels(blocks: Block[], above: number): number[] {
  const top = Math.min(...blocks.map((block) => (block.kind === 'heading' ? block.level : 6)))
  let before = above
  return blocks.map((block) => (block.kind === 'heading' ? (before = Math.min(6, before + 1, block.level - top + above + 1)) : before))
}
