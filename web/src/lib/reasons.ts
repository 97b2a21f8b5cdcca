// Why a job waits, in the language of the reader: the parts that the server gives beside its English text, each said by its code.

export type ReasonPart = { code: string; values: Record<string, string | number> }
/** Words of the portal, or a value: names and texts that people have given are strings. */
export type ReasonPiece = { words: string } | { value: string | number }

/** null: a part has no words in this language, so that only the text can be shown. */
export function reasonPieces(parts: ReasonPart[] | null | undefined, wordsOf: (code: string) => string | null): ReasonPiece[] | null {
  const pieces: ReasonPiece[] = []
  for (const { code, values } of parts ?? []) {
    const words = wordsOf(code)
    if (words === null) return null
    words.split(/\{(\w+)\}/).forEach((part, index) => {
      if (index % 2) pieces.push({ value: values[part] ?? `{${part}}` })
      else if (part) pieces.push({ words: part })
    })
  }
  return pieces.length ? pieces : null
}
