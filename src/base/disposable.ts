/** Ownership: resources are put into a store, and the store's owner disposes of all of them, newest first. */

export class DisposableStore implements Disposable {
  readonly #disposables: Disposable[] = []
  #isDisposed = false

  /** Takes ownership. A store that is already disposed of disposes of the resource at once, so that nothing leaks. */
  own<T extends Disposable>(disposable: T): T {
    if (this.#isDisposed) disposable[Symbol.dispose]()
    else this.#disposables.push(disposable)
    return disposable
  }

  defer(onDispose: () => void): void {
    this.own({ [Symbol.dispose]: onDispose })
  }

  [Symbol.dispose](): void {
    if (this.#isDisposed) return
    this.#isDisposed = true
    for (let disposable = this.#disposables.pop(); disposable; disposable = this.#disposables.pop()) {
      disposable[Symbol.dispose]()
    }
  }
}
