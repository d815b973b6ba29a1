/** Where the lines of a growing stream begin: a mark every so many lines, so that any line is found without reading all. */

const NEWLINE = 10
/** Lines from one mark to the next. */
const MARK_LINES = 128

export type LineBlock = { readonly firstLine: number; readonly start: number; readonly end: number }

export class LineIndex {
  /** Offsets in bytes of the lines 0, 128, 256 … */
  readonly #marks: number[] = [0]
  #breaks = 0
  #sizeBytes = 0
  #isAtStart = true

  push(bytes: Uint8Array): void {
    for (let at = bytes.indexOf(NEWLINE); at >= 0; at = bytes.indexOf(NEWLINE, at + 1)) {
      this.#breaks += 1
      if (this.#breaks % MARK_LINES === 0) this.#marks.push(this.#sizeBytes + at + 1)
    }
    this.#sizeBytes += bytes.length
    if (bytes.length > 0) this.#isAtStart = bytes[bytes.length - 1] === NEWLINE
  }

  /** With the last line, which may lack its end. */
  get lineCount(): number {
    return this.#breaks + (this.#isAtStart ? 0 : 1)
  }

  /** The bytes in which a line lies, with those before and after it. */
  blockOf(line: number): LineBlock {
    const mark = Math.floor(line / MARK_LINES)
    return {
      firstLine: mark * MARK_LINES,
      start: this.#marks[mark] ?? this.#sizeBytes,
      end: this.#marks[mark + 1] ?? this.#sizeBytes,
    }
  }
}
