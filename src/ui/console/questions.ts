/** Questions of the connections (passwords, new host keys) on their way to a dialog of the console. */
import type { Secret } from '../../base/secret.ts'
import type { CredentialDialog, CredentialRequest, HostKeyReviewer, NewHostKey } from '../../ssh/questions.ts'
import { credentialDialog } from '../dialogs/credential-dialog.ts'
import type { Dialog, DialogFactory } from '../dialogs/dialog.ts'
import { hostKeyDialog } from '../dialogs/host-key-dialog.ts'
import type { Dialogs } from './dialogs.ts'

export class Questions implements CredentialDialog, HostKeyReviewer {
  readonly #bound = Promise.withResolvers<Dialogs>()
  #onWarning: ((message: string) => void) | undefined

  /** Questions that came before the console was open are asked now. */
  bind(dialogs: Dialogs, onWarning: (message: string) => void): void {
    this.#onWarning = onWarning
    this.#bound.resolve(dialogs)
  }

  /** A warning that needs no answer: a new key that could not be recorded. */
  warn(message: string): void {
    this.#onWarning?.(message)
  }

  ask(request: CredentialRequest, signal: AbortSignal): Promise<readonly Secret[] | undefined> {
    return this.#show<readonly Secret[] | undefined>(signal, undefined, (answer) => credentialDialog(request, answer))
  }

  review(keys: readonly NewHostKey[], signal: AbortSignal): Promise<ReadonlySet<string>> {
    return this.#show<ReadonlySet<string>>(signal, new Set(), (answer) => hostKeyDialog(keys, answer))
  }

  async #show<T>(signal: AbortSignal, whenVoid: T, make: (answer: (value: T) => void) => DialogFactory): Promise<T> {
    const dialogs = await this.#bound.promise
    if (signal.aborted) return whenVoid
    return new Promise((resolve) => {
      let dialog: Dialog | undefined
      const factory: DialogFactory = (report) => {
        dialog = make(resolve)(report)
        return dialog
      }
      const withdraw = (): void => {
        resolve(whenVoid)
        dialogs.withdraw(factory, dialog)
      }
      signal.addEventListener('abort', withdraw, { once: true })
      dialogs.openWhenQuiet(factory)
    })
  }
}
