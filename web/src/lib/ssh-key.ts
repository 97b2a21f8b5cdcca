// Key pairs for ssh, made in the browser. Formats: RFC 4251 and 8709, and OpenSSH's PROTOCOL.key; the private key is not encrypted.

export type KeyKind = 'ed25519' | 'rsa'

export interface KeyPair {
  publicKey: string // one line, as in a file id_ed25519.pub
  privateKey: string // the file id_ed25519
}

const RSA_BITS = 3072 // what ssh-keygen makes

const bytesOf = (text: string) => new TextEncoder().encode(text)

function joined(parts: Uint8Array[]): Uint8Array {
  const whole = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0))
  let at = 0
  for (const part of parts) {
    whole.set(part, at)
    at += part.length
  }
  return whole
}

function number(value: number): Uint8Array {
  const bytes = new Uint8Array(4)
  new DataView(bytes.buffer).setUint32(0, value)
  return bytes
}

/** With its length before it. */
const field = (bytes: Uint8Array) => joined([number(bytes.length), bytes])
const textField = (text: string) => field(bytesOf(text))

/** A whole number above zero: no zeros before it but one where it would else be taken for a negative one. */
function wholeField(bytes: Uint8Array): Uint8Array {
  const first = bytes.findIndex((byte) => byte !== 0)
  const short = bytes.subarray(first)
  return field(short[0]! & 0x80 ? joined([new Uint8Array(1), short]) : short)
}

export const base64Of = (bytes: Uint8Array) => btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(''))

function fromBase64Url(text: string | undefined): Uint8Array {
  if (!text) throw new Error('the browser gave a key without all its parts')
  return Uint8Array.from(atob(text.replaceAll('-', '+').replaceAll('_', '/')), (letter) => letter.charCodeAt(0))
}

interface Parts {
  name: string
  shown: Uint8Array[] // of the public key, after the name
  hidden: Uint8Array[] // of the private key, after the name
}

function partsOf(key: JsonWebKey): Parts {
  if (key.kty === 'OKP') {
    const shown = fromBase64Url(key.x)
    return { name: 'ssh-ed25519', shown: [field(shown)], hidden: [field(shown), field(joined([fromBase64Url(key.d), shown]))] }
  }
  const whole = (part: string | undefined) => wholeField(fromBase64Url(part))
  return { name: 'ssh-rsa', shown: [whole(key.e), whole(key.n)], hidden: [whole(key.n), whole(key.e), whole(key.d), whole(key.qi), whole(key.p), whole(key.q)] }
}

/** `check` is any number: it only tells whether a key that was encrypted is decrypted well. */
export function keyPairOf(key: JsonWebKey, comment: string, check: number): KeyPair {
  const { name, shown, hidden } = partsOf(key)
  const open = joined([textField(name), ...shown])
  const secret = joined([number(check), number(check), textField(name), ...hidden, textField(comment)])
  const padding = Uint8Array.from({ length: (8 - (secret.length % 8)) % 8 }, (_, index) => index + 1)
  const file = joined([bytesOf('openssh-key-v1\0'), textField('none'), textField('none'), textField(''), number(1), field(open), field(joined([secret, padding]))])
  const lines = base64Of(file).match(/.{1,70}/g)!
  return {
    publicKey: `${name} ${base64Of(open)} ${comment}`,
    privateKey: ['-----BEGIN OPENSSH PRIVATE KEY-----', ...lines, '-----END OPENSSH PRIVATE KEY-----', ''].join('\n'),
  }
}

/** Browsers make keys for pages that came by https or from this machine, and for no others. */
export const canMakeKeys = () => globalThis.isSecureContext && !!globalThis.crypto?.subtle

export async function keyMake(kind: KeyKind, comment: string): Promise<KeyPair> {
  const algorithm = kind === 'rsa' ? { name: 'RSASSA-PKCS1-v1_5', modulusLength: RSA_BITS, publicExponent: Uint8Array.of(1, 0, 1), hash: 'SHA-256' } : { name: 'Ed25519' }
  const made = (await crypto.subtle.generateKey(algorithm, true, ['sign', 'verify'])) as CryptoKeyPair
  const key = await crypto.subtle.exportKey('jwk', made.privateKey)
  return keyPairOf(key, comment, crypto.getRandomValues(new Uint32Array(1))[0]!)
}

/** What is a public key for ssh, of one line. */
export const isPublicKey = (text: string) => /^(ssh-|ecdsa-|sk-)\S+ [A-Za-z0-9+/=]{40,}( .*)?$/.test(text)
