/** What known_hosts says about a key, by the rules of OpenSSH's check_host_key (sshconnect.c). Pure. */
import type { Endpoint } from '../../inventory/host.ts'
import { lookupNameOf, secondLookupNameOf } from '../../inventory/known-hosts/lookup-name.ts'
import type { KnownHostsEntry } from '../../inventory/known-hosts/parse.ts'

export type HostKeyJudgement =
  | { readonly kind: 'known' }
  | { readonly kind: 'unknown' }
  /** The name has another key, of whatever type: ssh takes that for a changed key. */
  | { readonly kind: 'changed'; readonly offending: KnownHostsEntry }
  | { readonly kind: 'revoked'; readonly entry: KnownHostsEntry }
  /** Only a certificate authority is known for the name, and the server showed a plain key. */
  | { readonly kind: 'authority-only'; readonly entry: KnownHostsEntry }

/** What the files say about a name: the entries that speak about it, in order. */
export type NamingEntries = (name: string) => readonly KnownHostsEntry[]

export function judgeHostKey(naming: NamingEntries, endpoint: Endpoint, key: Uint8Array): HostKeyJudgement {
  const judgement = judgeAmong(naming(lookupNameOf(endpoint)), key)
  const second = secondLookupNameOf(endpoint)
  if (judgement.kind !== 'unknown' || second === undefined) return judgement
  // Without the port, anything but a match says nothing.
  const withoutPort = judgeAmong(naming(second), key)
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

/** Host key algorithms (RFC 8332 names included) of the endpoint's known keys that are not revoked, for the server to show. */
export function knownAlgorithms(naming: NamingEntries, endpoint: Endpoint): readonly string[] {
  const entries = naming(lookupNameOf(endpoint))
  const good = entries.filter((entry) => judgeAmong(entries, entry.blob).kind === 'known')
  const types = new Set(good.map((entry) => entry.keyType))
  return [...types].flatMap((type) => (type === 'ssh-rsa' ? ['rsa-sha2-512', 'rsa-sha2-256'] : [type]))
}
