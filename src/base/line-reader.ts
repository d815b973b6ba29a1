/** Collects a text that arrives in pieces, and returns its whole lines. */
export class LineReader {
  readonly #most: number
  #held = ''

  /** `most`: at least so many characters are kept of a line that has not ended. Of a longer one the beginning is dropped. */
  constructor(most: number) {
    this.#most = most
  }

  /** Of the line that has not ended. */
  get heldLength(): number {
    return this.#held.length
  }

  /** The time that all calls take grows with the text, however small the pieces are. */
  push(text: string): string[] {
    // Joined and searched only where a line ends.
    const lines = text.includes('\n') ? (this.#held + text).split('\n') : []
    this.#held = lines.length === 0 ? this.#held + text : (lines.pop() ?? '')
    if (this.#held.length > 2 * this.#most) this.#held = this.#held.slice(-this.#most)
    return lines
  }

  clear(): void {
    this.#held = ''
  }
}
