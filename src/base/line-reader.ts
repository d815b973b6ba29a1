/** Whole lines of a text that comes in pieces. */
export class LineReader {
  readonly #most: number
  #held = ''

  /** `most`: characters that are surely kept of a line that has not ended; of a longer one its beginning is forgotten. */
  constructor(most: number) {
    this.#most = most
  }

  /** Of the line that has not ended. */
  get heldLength(): number {
    return this.#held.length
  }

  /** Takes time in proportion to the text, also where it comes byte by byte. */
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
