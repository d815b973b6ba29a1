/**
 * Decides which dialog has the keys. A dialog that the user opens appears at once; a question from outside (password, host
 * key) waits until the keyboard is quiet for a moment, so that a key meant for the hosts never answers it.
 */
import { type Clock, remainingMs } from '../../base/clock.ts'
import type { Dialog, DialogFactory } from '../dialogs/dialog.ts'

/** How long the keyboard must have been quiet before a question from outside may take it. */
export const QUIET_MS = 800

export type DialogsOptions = {
  readonly clock: Clock
  /** True: the next key belongs to a command that was started, so no question may take it. */
  isBusy(): boolean
  /** Another dialog is open now (undefined: none), or its view changed. */
  onChange(dialog: Dialog | undefined): void
}

export class Dialogs implements Disposable {
  readonly #options: DialogsOptions
  readonly #waiting: DialogFactory[] = []
  #current: Dialog | undefined
  #isAsking = false
  #lastKeyMs = Number.NEGATIVE_INFINITY
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

  /** Opens at once, in place of one that the user had open. */
  open(make: DialogFactory): void {
    this.#current?.cancel()
    this.#show(make, false)
  }

  /** Opens when no other dialog is open and the keyboard is quiet. */
  openWhenQuiet(make: DialogFactory): void {
    this.#waiting.push(make)
    this.#advance()
  }

  /** Withdraws a question that is void, whether it is open or waits. */
  withdraw(make: DialogFactory, dialog: Dialog | undefined): void {
    const index = this.#waiting.indexOf(make)
    if (index >= 0) this.#waiting.splice(index, 1)
    dialog?.cancel()
  }

  /** The user typed a key. A key that answers a question does not delay the next question. */
  noteKey(): void {
    if (!this.isAsking) this.#lastKeyMs = this.#options.clock.now()
  }

  #show(make: DialogFactory, isQuestion: boolean): void {
    const dialog: Dialog = make({
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
    this.#options.onChange(dialog)
  }

  #advance(): void {
    if (this.#current || this.#waiting.length === 0 || this.#timer) return
    const isBusy = this.#options.isBusy()
    const waitMs = remainingMs(this.#lastKeyMs, QUIET_MS, this.#options.clock.now())
    if (waitMs === 0 && !isBusy) {
      const next = this.#waiting.shift()
      if (next) this.#show(next, true)
      return
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
