/** Errors in Muster's own code while it draws, or handles a key or an event: the Log shows them, and the console continues, since shells depend on it. */
import { inspect } from 'node:util'
import type { Clock } from '../../base/clock.ts'
import { shortageOf } from '../../base/errors.ts'
import type { PageContext } from '../state/console-state.ts'

/** The first lines of an error and its stack. */
const LINES = 3
/** The Log names no more errors than this: one whose words change each time would fill it. */
const MOST_NAMED = 100
/** After more uncaught errors than this within `WINDOW_MS`, the console counts as unusable. */
const MOST_UNCAUGHT = 10
const WINDOW_MS = 10_000

export class Faults {
  readonly #context: Pick<PageContext, 'log' | 'notice'>
  readonly #clock: Clock
  readonly #named = new Set<string>()
  #uncaughtMs: readonly number[] = []

  constructor(context: Pick<PageContext, 'log' | 'notice'>, clock: Clock) {
    this.#context = context
    this.#clock = clock
  }

  /** For a caught error. The Log shows each error once, however often it happens. */
  readonly note = (error: unknown): void => {
    const lines = inspect(error, { colors: false }).split('\n')
    const text = `error in Muster: ${
      shortageOf(error) ??
      lines
        .slice(0, LINES)
        .map((line) => line.trim())
        .join(' ')
    }`
    try {
      if (!this.#named.has(text) && this.#named.size < MOST_NAMED) {
        this.#named.add(text)
        this.#context.log('', text, 'error')
      }
      this.#context.notice('error in Muster: everything continues; the Log (6) has the details', 'error')
    } catch {
      // The error may have broken the Log or the notices themselves.
    }
  }

  /** For an uncaught error. Returns whether the console can still be used. */
  noteUncaught(error: unknown): boolean {
    const nowMs = this.#clock.now()
    this.#uncaughtMs = [...this.#uncaughtMs, nowMs].filter((ms) => nowMs - ms < WINDOW_MS).slice(-MOST_UNCAUGHT - 1)
    this.note(error)
    return this.#uncaughtMs.length <= MOST_UNCAUGHT
  }
}
