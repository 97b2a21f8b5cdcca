// Escape sequences of terminals in a line of a log: colours are kept, the rest is left out. A progress bar that writes
// over itself (carriage return) shows what it showed last.

export interface Span {
  text: string
  /** Names of classes: "b" bold, "d" dim, "i" italic, "u" underlined, "f1" … "f15" and "g0" … colours */
  style: string
}

const CSI = /\x1b\[([0-9;:?]*)[ -/]*([@-~])|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[@-Z\\-_]|[\x00-\x08\x0b-\x1f\x7f]/g

interface Pen {
  bold: boolean
  dim: boolean
  italic: boolean
  underline: boolean
  fore: number
  back: number
}

const PLAIN: Pen = { bold: false, dim: false, italic: false, underline: false, fore: -1, back: -1 }

/** A colour of the 256 as one of the 16. */
function sixteenth(index: number): number {
  if (index < 16) return index
  if (index >= 232) return index < 238 ? 8 : index < 250 ? 7 : 15
  const cube = index - 16
  const [r, g, b] = [Math.floor(cube / 36), Math.floor(cube / 6) % 6, cube % 6]
  return rgb(r * 51, g * 51, b * 51)
}

function rgb(r: number, g: number, b: number): number {
  const most = Math.max(r, g, b)
  if (most < 40) return 0
  const half = most / 2
  const colour = (r > half ? 1 : 0) | (g > half ? 2 : 0) | (b > half ? 4 : 0)
  return most > 180 ? colour + 8 : colour
}

function colourOf(codes: number[], at: number): [number, number] {
  if (codes[at + 1] === 5) return [sixteenth(codes[at + 2] ?? 7), 2]
  if (codes[at + 1] === 2) return [rgb(codes[at + 2] ?? 0, codes[at + 3] ?? 0, codes[at + 4] ?? 0), 4]
  return [-1, 0]
}

function penChange(pen: Pen, parameters: string): Pen {
  const codes = parameters.split(/[;:]/).map(Number)
  let next = { ...pen }
  for (let i = 0; i < codes.length; i++) {
    const code = codes[i] ?? 0
    if (code === 0) next = { ...PLAIN }
    else if (code === 1) next.bold = true
    else if (code === 2) next.dim = true
    else if (code === 3) next.italic = true
    else if (code === 4) next.underline = true
    else if (code === 22) next.bold = next.dim = false
    else if (code === 23) next.italic = false
    else if (code === 24) next.underline = false
    else if (code >= 30 && code <= 37) next.fore = code - 30
    else if (code >= 90 && code <= 97) next.fore = code - 82
    else if (code === 39) next.fore = -1
    else if (code >= 40 && code <= 47) next.back = code - 40
    else if (code >= 100 && code <= 107) next.back = code - 92
    else if (code === 49) next.back = -1
    else if (code === 38 || code === 48) {
      const [colour, used] = colourOf(codes, i)
      if (code === 38) next.fore = colour
      else next.back = colour
      i += used
    }
  }
  return next
}

function styleOf(pen: Pen): string {
  const names = []
  if (pen.bold) names.push('b')
  if (pen.dim) names.push('d')
  if (pen.italic) names.push('i')
  if (pen.underline) names.push('u')
  if (pen.fore >= 0) names.push(`f${pen.fore}`)
  if (pen.back >= 0) names.push(`g${pen.back}`)
  return names.join(' ')
}

/** What a terminal would show of a line that writes over itself. */
function lastWritten(line: string): string {
  const end = line.endsWith('\r') ? line.length - 1 : line.length
  return line.slice(line.lastIndexOf('\r', end - 1) + 1, end)
}

export function spansOf(line: string): Span[] {
  const text = lastWritten(line)
  if (!/[\x00-\x08\x0b-\x1f\x7f]/.test(text)) return text ? [{ text, style: '' }] : []
  const spans: Span[] = []
  let pen = PLAIN
  let at = 0
  const add = (part: string) => {
    if (part) spans.push({ text: part, style: styleOf(pen) })
  }
  for (const match of text.matchAll(CSI)) {
    add(text.slice(at, match.index))
    at = match.index + match[0].length
    if (match[2] === 'm') pen = penChange(pen, match[1] ?? '')
  }
  add(text.slice(at))
  return spans
}

export const plainOf = (line: string) => spansOf(line).map((span) => span.text).join('')
