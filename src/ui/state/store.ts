/** One store outside React: everything that the console shows is in it, and components read it through selectors. */
import { Emitter } from '../../base/emitter.ts'

export class Store<S extends object> {
  readonly #changes = new Emitter<S>()
  #state: S

  constructor(initial: S) {
    this.#state = initial
  }

  get state(): S {
    return this.#state
  }

  /** Replaces some fields; listeners run at once, and only when something changed. */
  update(patch: Partial<S>): void {
    const keys = Object.keys(patch) as (keyof S)[]
    if (keys.every((key) => Object.is(this.#state[key], patch[key]))) return
    this.#state = { ...this.#state, ...patch }
    this.#changes.emit(this.#state)
  }

  on(listener: (state: S) => void): Disposable {
    return this.#changes.on(listener)
  }
}
