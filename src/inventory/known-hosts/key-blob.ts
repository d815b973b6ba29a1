/** Public keys in SSH wire format (RFC 4253, section 6.6): which algorithm, which fingerprint. Pure. */
import { createHash } from 'node:crypto'

/** The key type that the blob names (`ssh-ed25519`), or undefined when it is no key blob. */
export function keyTypeOf(blob: Uint8Array): string | undefined {
  if (blob.length < 4) return undefined
  const length = new DataView(blob.buffer, blob.byteOffset).getUint32(0)
  if (length === 0 || length > 64 || blob.length < 4 + length) return undefined
  const name = Buffer.from(blob.buffer, blob.byteOffset + 4, length).toString('latin1')
  return /^[\x21-\x7e]+$/.test(name) ? name : undefined
}

/** Types that ssh reads in known_hosts, with the number of fields after the name of the type. */
const FIELDS: ReadonlyMap<string, number> = new Map([
  ['ssh-ed25519', 1],
  ['ssh-rsa', 2],
  ['ssh-dss', 4],
  ['ecdsa-sha2-nistp256', 2],
  ['ecdsa-sha2-nistp384', 2],
  ['ecdsa-sha2-nistp521', 2],
  ['sk-ssh-ed25519@openssh.com', 2],
  ['sk-ecdsa-sha2-nistp256@openssh.com', 3],
])
const ED25519_BYTES = 32

/** Whether the blob is a whole key of a type that ssh knows: ssh ignores others, so they do not count as a changed key. */
export function isWholeKey(blob: Uint8Array): boolean {
  const type = keyTypeOf(blob)
  const expected = type === undefined ? undefined : FIELDS.get(type)
  const fields = fieldsOf(blob)
  if (expected === undefined || fields?.length !== expected + 1) return false
  return type !== 'ssh-ed25519' || fields.at(-1)?.length === ED25519_BYTES
}

/** RequiredRSASize of ssh_config(5), unless it is set. */
export const LEAST_RSA_BITS = 1024

/** Says that an RSA key is too short, as a clause; undefined: it is long enough, or of another type. */
export function tooShortRsa(blob: Uint8Array, requiredBits = LEAST_RSA_BITS): string | undefined {
  const modulus = keyTypeOf(blob) === 'ssh-rsa' ? fieldsOf(blob)?.[2] : undefined
  if (modulus === undefined) return undefined
  const bits = BigInt(`0x0${Buffer.from(modulus).toString('hex')}`).toString(2).length
  return bits < requiredBits ? `has ${bits} bits, and RequiredRSASize asks for ${requiredBits}` : undefined
}

/** Undefined: it does not end where its last field does. */
function fieldsOf(blob: Uint8Array): readonly Uint8Array[] | undefined {
  const view = new DataView(blob.buffer, blob.byteOffset, blob.byteLength)
  const fields: Uint8Array[] = []
  let at = 0
  while (at + 4 <= blob.length) {
    const end = at + 4 + view.getUint32(at)
    fields.push(blob.subarray(at + 4, end))
    at = end
  }
  return at === blob.length ? fields : undefined
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
