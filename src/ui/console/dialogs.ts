/**
 * Decides which dialog has the keys. A dialog that the user opens appears at once; a question from outside (password, host
 * key) waits until the keyboard is quiet for a moment, so that a key meant for the hosts never answers it.
 */
import { type Clock, remainingMs } from '../../base/clock.ts'
import type { Secret } from '../../base/secret.ts'
import type { CredentialDialog, CredentialRequest, HostKeyReviewer, NewHostKey } from '../../ssh/questions.ts'
import { credentialDialog, hostKeyDialog } from '../dialogs/credential-dialog.ts'
import type { Dialog, DialogFactory, DialogReport, LookUp } from '../dialogs/dialog.ts'

/** How long the keyboard must have been quiet before a question from outside may take it. */
export const QUIET_MS = 800

export type DialogsOptions = {
  readonly clock: Clock
  /** For prompts. */
  readonly history: NonNullable<DialogReport['history']>
  readonly lookUp: LookUp
  /** True: the next key belongs to a command that was started, so no question may take it. */
  isBusy(): boolean
  /** Whether a question waits for a quiet keyboard. */
  onWaiting?(isWaiting: boolean): void
  /** Another dialog is open now (undefined: none), or its view changed. */
  onChange(dialog: Dialog | undefined): void
}

export class Dialogs implements Disposable {
  readonly #options: DialogsOptions
  readonly #waiting: DialogFactory[] = []
  #current: Dialog | undefined
  #isAsking = false
  #lastKeyMs = Number.NEGATIVE_INFINITY
  #shownMs = Number.NEGATIVE_INFINITY
  #timer: Disposable | undefined

  constructor(options: DialogsOptions) {
    this.#options = options
  }

  get current(): Dialog | undefined {
    return this.#current
  }

  /** Questions that wait for the keyboard to be quiet. */
  get waiting(): number {
    return this.#waiting.length
  }

  /** The open dialog is a question from outside. */
  get isAsking(): boolean {
    return this.#current !== undefined && this.#isAsking
  }

  /** False: the question appeared a moment ago, and a click may be meant for what was there before. */
  get takesClicks(): boolean {
    return !this.isAsking || remainingMs(this.#shownMs, QUIET_MS, this.#options.clock.now()) === 0
  }

  /** Opens at once, in place of one that the user had open. */
  open(make: DialogFactory): void {
    this.#current?.cancel()
    this.#show(make, false)
  }

  /** Opens when no other dialog is open and the keyboard is quiet. */
  openWhenQuiet(make: DialogFactory): void {
    this.#waiting.push(make)
    this.#advance()
    this.#reportWaiting()
  }

  /** Withdraws a question that is void, whether it is open or waits. */
  withdraw(make: DialogFactory, dialog: Dialog | undefined): void {
    const index = this.#waiting.indexOf(make)
    if (index >= 0) this.#waiting.splice(index, 1)
    dialog?.cancel()
    this.#reportWaiting()
  }

  /** The user typed a key. A key that answers a question does not delay the next question. */
  noteKey(): void {
    if (!this.isAsking) this.#lastKeyMs = this.#options.clock.now()
  }

  #show(make: DialogFactory, isQuestion: boolean): void {
    const { history, lookUp } = this.#options
    const dialog: Dialog = make({
      history,
      lookUp,
      onClose: () => {
        if (this.#current !== dialog) return
        this.#current = undefined
        this.#options.onChange(undefined)
        this.#advance()
      },
      onChange: () => {
        if (this.#current === dialog) this.#options.onChange(dialog)
      },
    })
    this.#current = dialog
    this.#isAsking = isQuestion
    this.#shownMs = this.#options.clock.now()
    this.#options.onChange(dialog)
  }

  #reportWaiting(): void {
    this.#options.onWaiting?.(this.#waiting.length > 0)
  }

  #advance(): void {
    if (this.#current || this.#waiting.length === 0 || this.#timer) return
    const isBusy = this.#options.isBusy()
    const waitMs = remainingMs(this.#lastKeyMs, QUIET_MS, this.#options.clock.now())
    if (waitMs === 0 && !isBusy) {
      const next = this.#waiting.shift()
      if (next) this.#show(next, true)
      return this.#reportWaiting()
    }
    this.#timer = this.#options.clock.after(isBusy ? QUIET_MS : waitMs, () => {
      this.#timer = undefined
      this.#advance()
    })
  }

  [Symbol.dispose](): void {
    this.#timer?.[Symbol.dispose]()
    this.#waiting.length = 0
    this.#current?.cancel()
  }
}

/** The console: its report must not have answers that were not shown while they were typed. */
type Asker = { readonly dialogs: Dialogs; readonly sessionLog: { noteSecret(answer: string): void } }

export class Questions implements CredentialDialog, HostKeyReviewer {
  readonly #bound = Promise.withResolvers<Dialogs>()
  #onWarning: ((message: string) => void) | undefined
  #sessionLog: Asker['sessionLog'] | undefined

  /** Questions that came before the console was open are asked now. */
  bind({ dialogs, sessionLog }: Asker, onWarning: (message: string) => void): void {
    this.#onWarning = onWarning
    this.#sessionLog = sessionLog
    this.#bound.resolve(dialogs)
  }

  /** A warning that needs no answer: a new key that could not be recorded. */
  warn(message: string): void {
    this.#onWarning?.(message)
  }

  ask(request: CredentialRequest, signal: AbortSignal): Promise<readonly Secret[] | undefined> {
    return this.#show<readonly Secret[] | undefined>(signal, undefined, (answer) =>
      credentialDialog(request, (answers) => {
        for (const [index, secret] of (answers ?? []).entries())
          if (request.prompts[index]?.isEchoed === false) this.#sessionLog?.noteSecret(secret.reveal())
        answer(answers)
      }),
    )
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
