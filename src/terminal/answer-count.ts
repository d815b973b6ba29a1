/**
 * Counts the answers of the user's terminal to a program. Muster waits for answers that are still missing when the program ends,
 * because they would be typed into the user's shell.
 */
import { untilAborted } from '../base/abort.ts'

/** F3 with Shift, Ctrl or Alt looks as a cursor in the first row, so that answer counts as missing. */
const ANSWER = /\x1b\[(?:\?[\d;]*c|(?!1;[2-8]R)\d+;\d+R|\d+n)/g
const LONGEST = 64
/** After this time, the terminal counts as one that does not answer. */
const WAIT_MS = 1000

export class AnswerCount {
  #count = 0
  /** The last bytes, which may be the beginning of an answer. */
  #rest = ''
  #onChange = () => {}

  take(bytes: Uint8Array): void {
    const text = this.#rest + Buffer.from(bytes).toString('latin1')
    let end = Math.max(0, text.length - LONGEST)
    for (const { 0: answer, index } of text.matchAll(ANSWER)) {
      this.#count += 1
      end = Math.max(end, index + answer.length)
    }
    this.#rest = text.slice(end)
    this.#onChange()
  }

  /** Resolves when so many answers have come, or the terminal had the time to give them. */
  async reach(questions: number): Promise<void> {
    const reached = Promise.withResolvers<void>()
    this.#onChange = () => {
      if (this.#count >= questions) reached.resolve()
    }
    this.#onChange()
    await untilAborted(reached.promise, AbortSignal.timeout(WAIT_MS)).catch(() => {})
  }
}
