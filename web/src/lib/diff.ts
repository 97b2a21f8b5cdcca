// What differs between two texts, by lines.

export interface DiffLine {
  kind: 'same' | 'old' | 'new'
  text: string
}

const CELLS_MAX = 4_000_000

/** The longest common sequence of lines; texts too long for that are shown one after the other. */
export function diffLines(before: string, after: string): DiffLine[] {
  const old = before.split('\n')
  const now = after.split('\n')
  let head = 0
  while (head < old.length && head < now.length && old[head] === now[head]) head++
  let tail = 0
  while (tail < old.length - head && tail < now.length - head && old[old.length - 1 - tail] === now[now.length - 1 - tail]) tail++
  const a = old.slice(head, old.length - tail)
  const b = now.slice(head, now.length - tail)
  const same = (text: string): DiffLine => ({ kind: 'same', text })
  return [...old.slice(0, head).map(same), ...middle(a, b), ...old.slice(old.length - tail).map(same)]
}

function middle(a: string[], b: string[]): DiffLine[] {
  const result: DiffLine[] = []
  if (a.length * b.length > CELLS_MAX) return [...a.map((text) => ({ kind: 'old' as const, text })), ...b.map((text) => ({ kind: 'new' as const, text }))]
  const width = b.length + 1
  const length = new Uint32Array((a.length + 1) * width)
  for (let i = a.length - 1; i >= 0; i--)
    for (let j = b.length - 1; j >= 0; j--)
      length[i * width + j] = a[i] === b[j] ? length[(i + 1) * width + j + 1]! + 1 : Math.max(length[(i + 1) * width + j]!, length[i * width + j + 1]!)
  let i = 0
  let j = 0
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i] === b[j]) {
      result.push({ kind: 'same', text: a[i++]! })
      j++
    } else if (i < a.length && (j === b.length || length[(i + 1) * width + j]! >= length[i * width + j + 1]!)) result.push({ kind: 'old', text: a[i++]! })
    else result.push({ kind: 'new', text: b[j++]! })
  }
  return result
}
