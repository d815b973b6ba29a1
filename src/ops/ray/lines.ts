/** Text that comes in pieces, as whole lines; what has no end yet waits. */
export class Lines {
  #rest = ''
  readonly #onLine: (line: string) => void

  constructor(onLine: (line: string) => void) {
    this.#onLine = onLine
  }

  push(text: string): void {
    const lines = (this.#rest + text).split('\n')
    this.#rest = lines.pop() ?? ''
    for (const line of lines) this.#onLine(line)
  }
}
