// Somebody's text in Markdown. Its headings stand below that of the page.
import { createElement, Fragment, type ReactNode } from 'react'
import { blocksOf, headingLevels, type Block, type Inline } from '../lib/markdown'

const shown = (parts: Inline[]): ReactNode =>
  parts.map((part, index) => {
    if (typeof part === 'string') return <Fragment key={index}>{part}</Fragment>
    if (part.kind === 'code') return <code key={index}>{part.text}</code>
    if (part.kind === 'link')
      return (
        <a key={index} href={part.href} target="_blank" rel="noreferrer">
          {shown(part.parts)}
        </a>
      )
    return createElement(part.kind, { key: index }, shown(part.parts))
  })

function blockShow(block: Block, key: number, level: number): ReactNode {
  switch (block.kind) {
    case 'heading':
      return createElement(`h${level}`, { key }, shown(block.parts))
    case 'paragraph':
      return <p key={key}>{shown(block.parts)}</p>
    case 'quote':
      return <blockquote key={key}>{shown(block.parts)}</blockquote>
    case 'code':
      return (
        <pre key={key} className="code" tabIndex={0}>
          {block.text}
        </pre>
      )
    case 'list':
      return createElement(
        block.isOrdered ? 'ol' : 'ul',
        { key },
        block.items.map((item, index) => <li key={index}>{shown(item)}</li>),
      )
  }
}

export function Markdown({ text }: { text: string }) {
  const blocks = blocksOf(text)
  const levels = headingLevels(blocks, 1)
  return (
    <div className="markdown anywhere" lang="">
      {blocks.map((block, key) => blockShow(block, key, levels[key]!))}
    </div>
  )
}
