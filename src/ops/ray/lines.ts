/** Splits text that arrives in pieces into whole lines; an unfinished line is kept up to a limit. */
export class Lines {
  /** Of the unfinished line. */
  #pieces: string[] = []
  #length = 0
  #isTooLong = false
  #isStopped = false
  readonly #onLine: (line: string) => void
  readonly #onTooLong: () => void
  readonly #mostLength: number

  /** A line of more than `mostLength` characters is dropped; `onTooLong` is called once for it, as soon as it is that long. */
  constructor(onLine: (line: string) => void, onTooLong: () => void, mostLength = MOST_LENGTH) {
    this.#onLine = onLine
    this.#onTooLong = onTooLong
    this.#mostLength = mostLength
  }

  push(text: string): void {
    if (this.#isStopped) return
    let from = 0
    for (let end = text.indexOf('\n'); end >= 0; end = text.indexOf('\n', from)) {
      this.#take(text.slice(from, end))
      const line = this.#pieces.join('')
      const isWhole = !this.#isTooLong
      this.#pieces = []
      this.#length = 0
      this.#isTooLong = false
      if (isWhole) this.#onLine(line)
      if (this.#isStopped) return
      from = end + 1
    }
    this.#take(text.slice(from))
  }

  /** Drops the rest and everything that comes later. */
  stop(): void {
    this.#isStopped = true
    this.#pieces = []
  }

  #take(piece: string): void {
    this.#length += piece.length
    if (this.#length <= this.#mostLength) {
      if (piece !== '') this.#pieces.push(piece)
      return
    }
    if (this.#isTooLong) return
    this.#isTooLong = true
    this.#pieces = []
    this.#onTooLong()
  }
}

const MOST_LENGTH = 64_000_000

export const TOO_LONG = `it sent a line of more than ${MOST_LENGTH / 1e6} MB`
