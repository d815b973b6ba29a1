/**
 * Which dialog has the keys. Dialogs that the user opened come at once; questions that come from outside (passwords, host
 * keys) wait until the user has stopped typing for a moment, so that a key meant for the hosts never answers them.
 */
import { type Clock, remainingMs } from '../../base/clock.ts'
import type { Dialog, DialogFactory } from '../dialogs/dialog.ts'

/** How long the keyboard must have been quiet before a question from outside may take it. */
export const QUIET_MS = 800

export type DialogsOptions = {
  readonly clock: Clock
  /** True: the next key belongs to something that was begun, and no question may take it. */
  isBusy(): boolean
  /** The dialog on top changed (undefined: none is open). */
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

  /** What is open came up by itself. */
  get isAsking(): boolean {
    return this.#current !== undefined && this.#isAsking
  }

  /** Opens at once, in place of one that the user had open. */
  open(make: DialogFactory): void {
    this.#current?.cancel()
    this.#show(make, false)
  }

  /** Opens when no other is open and nobody types. */
  openWhenQuiet(make: DialogFactory): void {
    this.#waiting.push(make)
    this.#advance()
  }

  /** Forgets a question that is void, whether it is shown or waits. */
  withdraw(make: DialogFactory, dialog: Dialog | undefined): void {
    const index = this.#waiting.indexOf(make)
    if (index >= 0) this.#waiting.splice(index, 1)
    dialog?.cancel()
  }

  /** The user typed something; what answers a question does not hold up the next one. */
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
