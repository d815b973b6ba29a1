/** The state that the chrome draws: at once after a key, otherwise at most ten times a second, and for at most a twentieth of the time. */
import type { Clock } from '../../base/clock.ts'
import { Emitter } from '../../base/emitter.ts'
import { ThrottledAction } from '../rows/throttled-action.ts'
import type { ConsoleState } from '../state/console-state.ts'
import type { ConsoleApp } from './console-app.ts'

const EVERY_MS = 100
/** While many hosts connect, the state changes all the time, and drawing each change would delay them. */
const SHARE = 1 / 20
const LONGEST_MS = 500

export class ThrottledChrome implements Disposable {
  readonly #app: ConsoleApp
  readonly #showing: ThrottledAction
  readonly #changes = new Emitter<void>()
  readonly #subscription: Disposable
  #shown: ConsoleState

  constructor(app: ConsoleApp, clock: Clock) {
    this.#app = app
    this.#shown = app.state
    let everyMs = EVERY_MS
    const options = {
      clock,
      get everyMs() {
        return everyMs
      },
    }
    this.#showing = new ThrottledAction(options, () => {
      const startMs = clock.now()
      this.#shown = app.state
      this.#changes.emit()
      // React draws in a microtask.
      queueMicrotask(() => {
        everyMs = Math.min(LONGEST_MS, Math.max(EVERY_MS, (clock.now() - startMs) / SHARE))
      })
    })
    this.#subscription = app.store.on(() => this.#showing.soon())
  }

  readonly subscribe = (onChange: () => void): (() => void) => {
    const listener = this.#changes.on(onChange)
    return () => listener[Symbol.dispose]()
  }

  /** The state to draw: the same object until it changes. */
  readonly state = (): ConsoleState => this.#shown

  pageInfo() {
    return this.#app.arrangement
  }

  get isIdle(): boolean {
    return this.#shown === this.#app.state
  }

  /** Shows the latest state at once. */
  showNow(): void {
    if (!this.isIdle) this.#showing.now()
  }

  [Symbol.dispose](): void {
    this.#showing[Symbol.dispose]()
    this.#subscription[Symbol.dispose]()
  }
}
