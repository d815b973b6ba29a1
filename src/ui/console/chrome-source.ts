/** The state that the chrome draws: at once after a key, otherwise at most ten times a second. */
import { type Clock, remainingMs } from '../../base/clock.ts'
import { Emitter } from '../../base/emitter.ts'
import type { ChromeSource } from '../components/chrome.tsx'
import type { ConsoleState } from '../state/console-state.ts'
import type { ConsoleApp } from './console-app.ts'

const EVERY_MS = 100

export class ThrottledChrome implements ChromeSource, Disposable {
  readonly #app: ConsoleApp
  readonly #clock: Clock
  readonly #changes = new Emitter<void>()
  readonly #subscription: Disposable
  #shown: ConsoleState
  #lastMs = Number.NEGATIVE_INFINITY
  #timer: Disposable | undefined

  constructor(app: ConsoleApp, clock: Clock) {
    this.#app = app
    this.#clock = clock
    this.#shown = app.state
    this.#subscription = app.store.on(() => this.#plan())
  }

  readonly subscribe = (onChange: () => void): (() => void) => {
    const listener = this.#changes.on(onChange)
    return () => listener[Symbol.dispose]()
  }

  readonly state = (): ConsoleState => this.#shown

  pageInfo() {
    return this.#app.arrangement
  }

  get isIdle(): boolean {
    return this.#shown === this.#app.state
  }

  /** Shows the latest state at once. */
  showNow(): void {
    if (this.isIdle) return
    this.#timer?.[Symbol.dispose]()
    this.#timer = undefined
    this.#lastMs = this.#clock.now()
    this.#shown = this.#app.state
    this.#changes.emit()
  }

  #plan(): void {
    if (this.#timer) return
    const waitMs = remainingMs(this.#lastMs, EVERY_MS, this.#clock.now())
    this.#timer = this.#clock.after(waitMs, () => {
      this.#timer = undefined
      this.showNow()
    })
  }

  [Symbol.dispose](): void {
    this.#timer?.[Symbol.dispose]()
    this.#subscription[Symbol.dispose]()
  }
}
