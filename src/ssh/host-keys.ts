/** Decides whether a server is the one it claims to be. Fails closed: what cannot be read is not 'an unknown host'. */
import type { Endpoint } from '../inventory/host.ts'

/** A key that no known_hosts file names yet, for the review of all of them together. */
export type NewHostKey = {
  readonly host: string
  /** `address` or `[address]:port`, as known_hosts will name it. */
  readonly lookupName: string
  readonly algorithm: string
  /** `SHA256:…` as ssh-keygen -l prints it. */
  readonly fingerprint: string
}

export type HostKeyVerdict =
  | { readonly ok: true }
  | { readonly ok: false; readonly reason: string; readonly hint: string }

export interface HostKeyVerifier {
  /** `key`: the server's public key blob in SSH wire format. May wait for the user. */
  verify(endpoint: Endpoint, key: Uint8Array, signal: AbortSignal): Promise<HostKeyVerdict>
  /** Host key algorithms to offer first, so that a server with several keys shows the one that is known. */
  preferredAlgorithms(endpoint: Endpoint): Promise<readonly string[]>
}

/** Asks the user about new keys, all that are waiting at once; resolves to the hosts whose key is accepted. */
export interface HostKeyReviewer {
  review(keys: readonly NewHostKey[], signal: AbortSignal): Promise<ReadonlySet<string>>
}
