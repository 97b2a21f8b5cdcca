// Finds the texts of the portal in its sources: what a catalogue must have.

const CALL = /\bt\(\s*'((?:[^'\\]|\\.)*)'/g

export function textsOf(source: string): string[] {
  return [...source.matchAll(CALL)].map((match) => match[1]!.replace(/\\(.)/g, '$1'))
}
