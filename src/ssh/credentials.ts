/** Questions of authentication on their way to the user, and answers on their way back: asked once for all that ask the same. */
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

/** The user's side: a dialog of the console, or a question on /dev/tty. Undefined: declined. */
export interface CredentialDialog {
  ask(request: CredentialRequest, signal: AbortSignal): Promise<readonly Secret[] | undefined>
}

/** The transport's side. Undefined: declined, or there is no user to ask. */
export interface CredentialAsker {
  passphrase(keyFile: string, endpoint: Endpoint, isRetry: boolean, signal: AbortSignal): Promise<Secret | undefined>
  password(endpoint: Endpoint, isRetry: boolean, signal: AbortSignal): Promise<Secret | undefined>
  keyboardInteractive(
    endpoint: Endpoint,
    instruction: string,
    prompts: readonly CredentialPrompt[],
    isRetry: boolean,
    signal: AbortSignal,
  ): Promise<readonly Secret[] | undefined>
}
