/** Questions of the connections (passwords, new host keys) on their way to a dialog of the console. */

import type { Secret } from '../../base/secret.ts'
import { foldHostSet } from '../../inventory/host-set.ts'
import type { CredentialDialog, CredentialRequest } from '../../ssh/credentials.ts'
import type { HostKeyReviewer, NewHostKey } from '../../ssh/host-keys.ts'
import { createCredentialDialog } from '../dialogs/credential-dialog.ts'
import type { Dialog, DialogFactory } from '../dialogs/dialog.ts'
import { createHostKeyDialog } from '../dialogs/host-key-dialog.ts'
import type { Dialogs } from './dialogs.ts'

export class Questions implements CredentialDialog, HostKeyReviewer {
  readonly #bound = Promise.withResolvers<Dialogs>()
  #onWarning: ((message: string) => void) | undefined

  /** The console is there: questions that came before it are asked now. */
  bind(dialogs: Dialogs, onWarning: (message: string) => void): void {
    this.#onWarning = onWarning
    this.#bound.resolve(dialogs)
  }

  /** Something to know that is no question: a new key that could not be recorded. */
  warn(message: string): void {
    this.#onWarning?.(message)
  }

  ask(request: CredentialRequest, signal: AbortSignal): Promise<readonly Secret[] | undefined> {
    return this.#show<readonly Secret[] | undefined>(signal, undefined, (answer, report) =>
      createCredentialDialog({
        request,
        hostsText: foldHostSet(request.hosts),
        onAnswer: answer,
        onDecline: () => answer(undefined),
        ...report,
      }),
    )
  }

  review(keys: readonly NewHostKey[], signal: AbortSignal): Promise<ReadonlySet<string>> {
    return this.#show<ReadonlySet<string>>(signal, new Set(), (answer, report) =>
      createHostKeyDialog({ keys, onAnswer: answer, ...report }),
    )
  }

  async #show<T>(
    signal: AbortSignal,
    whenVoid: T,
    make: (answer: (value: T) => void, report: Parameters<DialogFactory>[0]) => Dialog,
  ): Promise<T> {
    const dialogs = await this.#bound.promise
    if (signal.aborted) return whenVoid
    return new Promise((resolve) => {
      let dialog: Dialog | undefined
      const factory: DialogFactory = (report) => {
        dialog = make(resolve, report)
        return dialog
      }
      signal.addEventListener(
        'abort',
        () => {
          resolve(whenVoid)
          dialogs.withdraw(factory, dialog)
        },
        { once: true },
      )
      dialogs.openWhenQuiet(factory)
    })
  }
}
