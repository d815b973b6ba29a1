/** A value that printing, logging, JSON and `util.inspect` show as a mask. Only `reveal` gives it out. */
import { inspect } from 'node:util'

const MASK = '••••'

export class Secret {
  readonly #value: string

  constructor(value: string) {
    this.#value = value
  }

  /** The secret itself. Call it at the last moment, where it is sent. */
  reveal(): string {
    return this.#value
  }

  toString(): string {
    return MASK
  }

  toJSON(): string {
    return MASK
  }

  [inspect.custom](): string {
    return MASK
  }
}
