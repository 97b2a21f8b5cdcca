// What GET /readyz?verbose says of the server's own parts: a line for each, such as "[+] store ok: written".

export interface Part {
  name: string
  state: 'ok' | 'degraded' | 'failed'
  text: string
}

const STATES: Record<string, Part['state']> = { '+': 'ok', '!': 'degraded', '-': 'failed' }

export function partsOf(text: string): Part[] {
  return text.split('\n').flatMap((line) => {
    const match = /^\[([+!-])\] (.+?) (?:ok|degraded|failed)(?:: (.*))?$/.exec(line)
    return match ? [{ name: match[2]!, state: STATES[match[1]!]!, text: match[3] ?? '' }] : []
  })
}
