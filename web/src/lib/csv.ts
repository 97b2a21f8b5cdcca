type Value = string | number | boolean | null | undefined

/** RFC 4180. A text that a spreadsheet would take for a formula gets an apostrophe before it. */
export function csvOf(rows: Value[][]): string {
  const cell = (value: Value) => {
    let text = String(value ?? '')
    if (typeof value === 'string' && /^[=+\-@\t\r]/.test(text)) text = `'${text}`
    return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
  }
  return rows.map((row) => row.map(cell).join(',') + '\r\n').join('')
}

export function csvRead(text: string): string[][] {
  const rows: string[][] = []
  let row: string[] = []
  let cell = ''
  let isQuoted = false
  for (let i = 0; i < text.length; i++) {
    const c = text[i]!
    if (isQuoted) {
      if (c === '"' && text[i + 1] === '"') cell += text[++i]
      else if (c === '"') isQuoted = false
      else cell += c
    } else if (c === '"' && !cell) isQuoted = true
    else if (c === ',') {
      row.push(cell)
      cell = ''
    } else if (c === '\n' || c === '\r') {
      if (c === '\r' && text[i + 1] === '\n') i++
      row.push(cell)
      rows.push(row)
      row = []
      cell = ''
    } else cell += c
  }
  if (cell || row.length) rows.push([...row, cell])
  return rows.filter((one) => one.some((part) => part.trim()))
}

export function fileSave(name: string, type: string, text: string) {
  const link = document.createElement('a')
  link.href = URL.createObjectURL(new Blob([text], { type }))
  link.download = name
  link.click()
  URL.revokeObjectURL(link.href)
}
