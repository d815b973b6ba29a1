/** A typed event source. A listener is a disposable, so it has an owner. */

export type Listener<E> = (event: E) => void

export class Emitter<E> {
  readonly #listeners = new Set<Listener<E>>()

  on(listener: Listener<E>): Disposable {
    // A separate wrapper each time, so that a function registered twice is two listeners.
    const entry: Listener<E> = (event) => listener(event)
    this.#listeners.add(entry)
    return { [Symbol.dispose]: () => this.#listeners.delete(entry) }
  }

  emit(event: E): void {
    for (const listener of this.#listeners) listener(event)
  }
}
