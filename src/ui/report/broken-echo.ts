/**
 * Lines that are typed at once where no line editor reads are echoed by the terminal as they arrive: what the first ones print, and
 * the prompts after them, stand in the middle of the echo of the others. Here the pieces of such a line are put together. Each piece
 * begins a row, apart from prompts, and the last one is the rest of its row. Pure.
 */
import { IS_PROMPT, SHORTEST_SECRET } from './asks-secret.ts'

/** Of a line for each of its pieces: a shorter one may be found in what programs print, although it was not echoed. */
const LEAST_CHARACTERS = 8

export class BrokenEcho<L extends { readonly plain: string }> {
  readonly #prompt: string
  /** The line whose beginning was found, and how much of it, in how many pieces. */
  #begun: { readonly at: number; readonly length: number; readonly pieces: number } | undefined
  /** Lines before this one were echoed: echoes come in the order of the lines. */
  #next = 0

  /** `before`: left of the cursor at the first key. */
  constructor(before: string) {
    this.#prompt = IS_PROMPT.test(before.trimEnd()) ? before : ''
  }

  /** The line whose echo ends with this row. `isOpen`: not found yet. */
  take(row: string, lines: readonly L[], isOpen: (line: L) => boolean): L | undefined {
    const text = this.#withoutPrompts(row)
    let best = { at: -1, from: 0, length: 0 }
    for (let at = this.#next; at < lines.length; at += 1) {
      const line = lines[at]
      if (line === undefined || !isOpen(line)) continue
      const begun = this.#begun?.at === at ? [this.#begun.length] : []
      for (const from of [...begun, 0]) {
        const length = sharedStart(text, line.plain.trim().slice(from))
        if (length > best.length) best = { at, from, length }
      }
    }
    const line = lines[best.at]
    if (line === undefined) return undefined
    const whole = line.plain.trim().length
    const pieces = best.from === 0 ? 1 : (this.#begun?.pieces ?? 0) + 1
    const length = best.from + best.length
    if (length === whole && best.length === text.length && whole >= leastLength(pieces)) {
      this.#begun = undefined
      this.#next = best.at + 1
      return line
    }
    if (best.length >= SHORTEST_SECRET) this.#begun = { at: best.at, length, pieces }
    return undefined
  }

  #withoutPrompts(row: string): string {
    if (this.#prompt === '') return row
    const text = row.replaceAll(this.#prompt, '')
    // Blanks at the end of a row are not known.
    const end = this.#prompt.trimEnd()
    return text.endsWith(end) ? text.slice(0, -end.length) : text
  }
}

const leastLength = (pieces: number): number => (pieces === 1 ? SHORTEST_SECRET : pieces * LEAST_CHARACTERS)

function sharedStart(one: string, other: string): number {
  let length = 0
  while (length < one.length && length < other.length && one[length] === other[length]) length += 1
  return length
}
