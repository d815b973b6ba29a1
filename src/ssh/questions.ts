/** Questions on the way to the user and answers on the way back: about host keys, and for secrets, asked once for all that ask the same. */
import type { Secret } from '../base/secret.ts'
import type { Endpoint } from '../inventory/host.ts'

export type CredentialPrompt = { readonly text: string; readonly isEchoed: boolean }

export type CredentialRequest = {
  readonly kind: 'passphrase' | 'password' | 'keyboard-interactive'
  /** Hosts that asked the same question so far. A passphrase names its key file in `title`. */
  readonly hosts: readonly string[]
  /** Printable, one line: `Password of root on m[8-10]`, `Passphrase of /home/u/.ssh/id_ed25519`. */
  readonly title: string
  /** What the server wrote above its prompts; printable. */
  readonly instruction: string
  readonly prompts: readonly CredentialPrompt[]
  /** The answer before was wrong for these hosts. */
  readonly isRetry: boolean
}

/** Undefined: the user declined. `nobody`: there is no user to ask. */
export type Answered<T> = T | 'nobody' | undefined

/** The user's side: a dialog of the console, or a question on /dev/tty. */
export interface CredentialDialog {
  ask(request: CredentialRequest, signal: AbortSignal): Promise<Answered<readonly Secret[]>>
}

/** The transport's side. */
export interface CredentialAsker {
  passphrase(keyFile: string, endpoint: Endpoint, isRetry: boolean, signal: AbortSignal): Promise<Answered<Secret>>
  password(endpoint: Endpoint, isRetry: boolean, signal: AbortSignal): Promise<Answered<Secret>>
  keyboardInteractive(
    endpoint: Endpoint,
    instruction: string,
    prompts: readonly CredentialPrompt[],
    isRetry: boolean,
    signal: AbortSignal,
  ): Promise<Answered<readonly Secret[]>>
}

/** The answer to the only prompt. */
export const only = (answer: Answered<readonly Secret[]>): Answered<Secret> =>
  typeof answer === 'string' ? answer : answer?.[0]

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

/** Asks the user about new keys, all that are waiting at once; resolves to the hosts whose key is accepted, undefined: nobody can be asked. */
export interface HostKeyReviewer {
  review(keys: readonly NewHostKey[], signal: AbortSignal): Promise<ReadonlySet<string> | undefined>
}
