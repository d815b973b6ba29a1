/** A promise that is made at the first call and kept; one that was rejected is made again at the next call. */
export class KeptPromise<T> {
  readonly #make: () => Promise<T>
  #made: Promise<T> | undefined

  constructor(make: () => Promise<T>) {
    this.#make = make
  }

  /** Undefined: not asked for yet, or rejected. */
  get made(): Promise<T> | undefined {
    return this.#made
  }

  /** It is made again at the next call. */
  forget(): void {
    this.#made = undefined
  }

  get(): Promise<T> {
    if (this.#made !== undefined) return this.#made
    const made = this.#make()
    this.#made = made
    made.catch(() => {
      this.#made = undefined
    })
    return made
  }
}
