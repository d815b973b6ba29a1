/** `--timeout` of a whole verb: its signal is aborted as Ctrl-C would abort it, and it is told apart afterwards. */
import type { CliContext } from './context.ts'

export class TimeLimit implements Disposable {
  readonly #over = new AbortController()
  readonly #stopped: AbortSignal
  #timer: NodeJS.Timeout | undefined
  /** What the verb gets. */
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
