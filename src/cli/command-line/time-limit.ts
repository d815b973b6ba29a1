/** `--timeout` of a whole verb: it aborts the verb's signal as Ctrl-C does; `isOver` tells them apart. */
import type { CliContext } from './context.ts'

export class TimeLimit implements Disposable {
  readonly #over = new AbortController()
  readonly #stopped: AbortSignal
  #timer: NodeJS.Timeout | undefined
  /** For the verb. */
  readonly context: CliContext

  constructor(context: CliContext) {
    this.#stopped = context.signal
    this.context = { ...context, signal: AbortSignal.any([context.signal, this.#over.signal]) }
  }

  begin(seconds: number): void {
    this.#timer = setTimeout(() => {
      if (!this.#stopped.aborted) this.#over.abort()
    }, seconds * 1000)
  }

  get isOver(): boolean {
    return this.#over.signal.aborted
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#timer)
  }
}
