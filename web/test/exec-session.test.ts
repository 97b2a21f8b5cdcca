import { describe, expect, it } from 'vitest'
import { inputMessages } from '../src/lib/exec-session'

describe('what is typed', () => {
  it('is sent behind the number of its channel', () => {
    expect(inputMessages(new Uint8Array([108, 115]))).toEqual([new Uint8Array([0, 108, 115])])
    expect(inputMessages(new Uint8Array())).toEqual([])
  })
  it('never fills more than the server takes in one message', () => {
    const pasted = Uint8Array.from({ length: 100_000 }, (_, at) => at % 251)
    const messages = inputMessages(pasted)
    expect(messages.every((message) => message[0] === 0 && message.length <= 64 << 10)).toBe(true)
    expect(messages.flatMap((message) => [...message.subarray(1)])).toEqual([...pasted])
  })
})
