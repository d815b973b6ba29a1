/**
 * Public keys in SSH wire format (RFC 4253 section 6.6): which algorithm, which fingerprint. Only reads bytes; whether a
 * key is the right one is decided elsewhere.
 */
import { createHash } from 'node:crypto'

/** The key type that the blob names (`ssh-ed25519`), or undefined when it is no key blob. */
export function keyTypeOf(blob: Uint8Array): string | undefined {
  if (blob.length < 4) return undefined
  const length = new DataView(blob.buffer, blob.byteOffset).getUint32(0)
  if (length === 0 || length > 64 || blob.length < 4 + length) return undefined
  const name = Buffer.from(blob.buffer, blob.byteOffset + 4, length).toString('latin1')
  return /^[\x21-\x7e]+$/.test(name) ? name : undefined
}

/** `SHA256:…` as `ssh-keygen -l` prints it. */
export function fingerprintOf(blob: Uint8Array): string {
  return `SHA256:${createHash('sha256').update(blob).digest('base64').replace(/=+$/, '')}`
}

/** The name people know: `ED25519`, `ECDSA`, `RSA`. */
export function keyTypeTitle(type: string): string {
  if (type.startsWith('ecdsa-')) return 'ECDSA'
  return type.replace(/^ssh-/, '').toUpperCase()
}
