/**
 * What known_hosts says about a key that a server shows: the rules of OpenSSH's check_host_key (sshconnect.c), tried
 * against ssh 9.2. Pure: it reads no file and asks nobody.
 */
import type { Endpoint } from '../../inventory/host.ts'
import type { KnownHostsEntry } from './parse.ts'

const DEFAULT_PORT = 22

export type HostKeyJudgement =
  | { readonly kind: 'known' }
  | { readonly kind: 'unknown' }
  /** Another key stands for this name, of whatever type: ssh takes that for a changed key. */
  | { readonly kind: 'changed'; readonly offending: KnownHostsEntry }
  | { readonly kind: 'revoked'; readonly entry: KnownHostsEntry }
  /** Only a certificate authority is known for the name, and the server showed a plain key. */
  | { readonly kind: 'authority-only'; readonly entry: KnownHostsEntry }

/** What the files say about a name: the entries that speak about it, in order. */
export type NamingEntries = (name: string) => readonly KnownHostsEntry[]

/** `address`, `[address]:port` when the port is not 22, or the HostKeyAlias as it is. */
export function lookupNameOf(endpoint: Endpoint): string {
  if (endpoint.hostKeyAlias !== undefined) return endpoint.hostKeyAlias
  return endpoint.port === DEFAULT_PORT ? endpoint.address : `[${endpoint.address}]:${endpoint.port}`
}

export function judgeHostKey(naming: NamingEntries, endpoint: Endpoint, key: Uint8Array): HostKeyJudgement {
  const judgement = judgeAmong(naming(lookupNameOf(endpoint)), key)
  if (judgement.kind !== 'unknown' || endpoint.hostKeyAlias !== undefined || endpoint.port === DEFAULT_PORT) {
    return judgement
  }
  // ssh then looks whether the key is known for the address without the port; anything but a match says nothing.
  const withoutPort = judgeAmong(naming(endpoint.address), key)
  return withoutPort.kind === 'known' || withoutPort.kind === 'revoked' ? withoutPort : judgement
}

function judgeAmong(entries: readonly KnownHostsEntry[], key: Uint8Array): HostKeyJudgement {
  const isSame = (entry: KnownHostsEntry) => Buffer.compare(entry.blob, key) === 0
  const revoked = entries.find((entry) => entry.marker === 'revoked' && isSame(entry))
  if (revoked !== undefined) return { kind: 'revoked', entry: revoked }
  const plain = entries.filter((entry) => entry.marker === 'none')
  if (plain.some(isSame)) return { kind: 'known' }
  const offending = plain[0]
  if (offending !== undefined) return { kind: 'changed', offending }
  const authority = entries.find((entry) => entry.marker === 'cert-authority')
  return authority === undefined ? { kind: 'unknown' } : { kind: 'authority-only', entry: authority }
}

/** Host key algorithms (RFC 8332 names included) of the keys that stand for this endpoint, in the order of the files. */
export function knownAlgorithms(naming: NamingEntries, endpoint: Endpoint): readonly string[] {
  const plain = naming(lookupNameOf(endpoint)).filter((entry) => entry.marker === 'none')
  const types = new Set(plain.map((entry) => entry.keyType))
  return [...types].flatMap((type) => (type === 'ssh-rsa' ? ['rsa-sha2-512', 'rsa-sha2-256'] : [type]))
}
