/**
 * The known_hosts format of sshd(8), "SSH_KNOWN_HOSTS FILE FORMAT": markers, hashed names, patterns with `*`, `?` and
 * `!`, `[host]:port`. Pure: text in, entries out. Invalid lines are skipped, as in ssh.
 */
import { hash, randomBytes } from 'node:crypto'
import { readFileSync, statSync } from 'node:fs'
import { getOrMake } from '../../base/collections.ts'
import { printable } from '../../base/printable.ts'
import type { Endpoint } from '../host.ts'
import { matchesGlob } from '../host-name.ts'

export type KnownHostsEntry = {
  readonly file: string
  /** Counts from 1; 0: accepted in this run, and in no file. */
  readonly line: number
  readonly marker: 'none' | 'revoked' | 'cert-authority'
  /** `ssh-ed25519`, … */
  readonly keyType: string
  readonly blob: Uint8Array
  /** Whether the entry is for this lookup name (`host`, `[host]:port`, or an alias). */
  matches(name: string): boolean
}

/** Entries by their name. Hashed names cost one hash per entry, so each name is searched once. */
export class KnownHosts {
  readonly #entries: readonly KnownHostsEntry[]
  readonly #byName = new Map<string, readonly KnownHostsEntry[]>()

  constructor(entries: readonly KnownHostsEntry[]) {
    this.#entries = entries
  }

  /** In the order of the file. */
  naming(name: string): readonly KnownHostsEntry[] {
    return getOrMake(this.#byName, name, () => this.#entries.filter((entry) => entry.matches(name)))
  }
}

export function parseKnownHosts(text: string, file: string): readonly KnownHostsEntry[] {
  return text.split('\n').flatMap((line, index) => parseLine(line, file, index + 1) ?? [])
}

const MARKER = '@cert-authority'
const MARKERS = new Map<string | undefined, KnownHostsEntry['marker']>([
  ['@revoked', 'revoked'],
  [MARKER, 'cert-authority'],
])

function parseLine(line: string, file: string, number: number): KnownHostsEntry | undefined {
  const trimmed = line.trim()
  if (trimmed === '' || trimmed.startsWith('#')) return undefined
  const fields = trimmed.split(/[ \t]+/)
  const marker = fields[0]?.startsWith('@') ? MARKERS.get(fields.shift()) : 'none'
  if (marker === undefined) return undefined
  const [names, keyType, encoded] = fields
  if (names === undefined || keyType === undefined || encoded === undefined) return undefined
  if (!/^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/.test(encoded)) return undefined
  const blob = Buffer.from(encoded, 'base64')
  if (keyTypeOf(blob) !== keyType || !isWholeKey(blob)) return undefined
  const matches = names.startsWith('|') ? hashedMatcher(names) : patternMatcher(names)
  return matches === undefined ? undefined : { file, line: number, marker, keyType, blob, matches }
}

const SHA1_BYTES = 20
const SHA1_BLOCK_BYTES = 64

function hashedMatcher(field: string): KnownHostsEntry['matches'] | undefined {
  const [empty, version, salt, expected, ...rest] = field.split('|')
  if (empty !== '' || version !== '1' || salt === undefined || expected === undefined || rest.length > 0)
    return undefined
  const key = Buffer.from(salt, 'base64')
  if (key.length !== SHA1_BYTES) return undefined
  const hasher = nameHasher(key)
  return (name) => hasher(name) === expected
}

/** HMAC-SHA1 (RFC 2104) in base64. A thousand entries times hundreds of hosts: `createHmac` would take six times as long. */
function nameHasher(salt: Uint8Array): (name: string) => string {
  const inner = Buffer.alloc(SHA1_BLOCK_BYTES, 0x36)
  const outer = Buffer.alloc(SHA1_BLOCK_BYTES, 0x5c)
  for (const [index, byte] of salt.entries()) {
    inner[index] = byte ^ 0x36
    outer[index] = byte ^ 0x5c
  }
  return (name) => {
    const digest = hash('sha1', Buffer.concat([inner, Buffer.from(name.toLowerCase())]), 'buffer')
    return hash('sha1', Buffer.concat([outer, digest]), 'base64')
  }
}

function patternMatcher(field: string): KnownHostsEntry['matches'] {
  const patterns = field.toLowerCase().split(',').filter(Boolean)
  const isNegated = (pattern: string) => pattern.startsWith('!')
  return (name) => {
    const lower = name.toLowerCase()
    const hits = patterns.filter((pattern) => matchesGlob(isNegated(pattern) ? pattern.slice(1) : pattern, lower))
    return hits.length > 0 && !hits.some(isNegated)
  }
}

/** One line for a key, with its line feed. `isHashed`: the name is stored as `|1|salt|hash`. */
export function formatKnownHostsLine(name: string, blob: Uint8Array, isHashed: boolean): string {
  const salt = randomBytes(SHA1_BYTES)
  const lower = name.toLowerCase()
  const field = isHashed ? `|1|${salt.toString('base64')}|${nameHasher(salt)(lower)}` : lower
  return `${field} ${keyTypeOf(blob)} ${Buffer.from(blob).toString('base64')}\n`
}

const DEFAULT_PORT = 22

type Named = Pick<Endpoint, 'address' | 'port' | 'hostKeyAlias'>

/** `address`, `[address]:port` when the port is not 22, or the HostKeyAlias as it is. */
export function lookupNameOf({ address, port, hostKeyAlias }: Named): string {
  if (hostKeyAlias !== undefined) return hostKeyAlias
  return port === DEFAULT_PORT ? address : `[${address}]:${port}`
}

/** If the name with its port is unknown, ssh searches for the address without the port; undefined: it does not. */
export function secondLookupNameOf({ address, port, hostKeyAlias }: Named): string | undefined {
  return hostKeyAlias === undefined && port !== DEFAULT_PORT ? address : undefined
}

/** The lines of a file that name authorities; none if it cannot be read, which the check of the host key reports. */
export type ReadAuthorities = (path: string) => KnownHosts

/** Far above any known_hosts file. */
const MAX_BYTES = 64 * 1024 * 1024

export const readAuthorities: ReadAuthorities = (path) => {
  const text = textOf(path)
  const entries = text.includes(MARKER) ? parseKnownHosts(text, path) : []
  return new KnownHosts(entries.filter(({ marker }) => marker === 'cert-authority'))
}

/** Says which line names a certificate authority for this host, which only ssh can check, as a clause, or undefined. */
export function knownByAuthority(named: Named, files: readonly string[], read: ReadAuthorities): string | undefined {
  const names = [lookupNameOf(named), secondLookupNameOf(named)].filter((name) => name !== undefined)
  for (const file of files) {
    const authorities = read(file)
    const entry = names.flatMap((name) => authorities.naming(name))[0]
    if (entry !== undefined) return `its host key is signed (${MARKER} in ${printable(file)}:${entry.line})`
  }
  return undefined
}

function textOf(path: string): string {
  try {
    const found = statSync(path)
    return found.isFile() && found.size <= MAX_BYTES ? readFileSync(path, 'latin1') : ''
  } catch {
    return ''
  }
}

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
  return `SHA256:${hash('sha256', blob, 'base64').replace(/=+$/, '')}`
}

/** The name people know: `ED25519`, `ECDSA`, `RSA`. */
export function keyTypeTitle(type: string): string {
  if (type.startsWith('ecdsa-')) return 'ECDSA'
  return type.replace(/^ssh-/, '').toUpperCase()
}
