/**
 * Whether a line editor has drawn a paste of several rows. Of a paste that is taller than the screen, editors draw the last rows over
 * each other, or leave out the first ones, and they draw all of it again when the terminal gets another size. So what counts is the
 * order in which visible text was printed, and that some row of it stands. Blanks do not count: editors wrap and indent. Pure.
 */

const BLANKS = /\s+/gu
/** Of a longer paste, only parts are searched. */
const MOST_CHARACTERS = 32 * 1024
/** What an interpreter draws before the lines after the first one. */
const CONTINUES = /^\.{3}:?(?=[^.:]|$)/
/** A line editor draws few pieces of what is typed beside a paste. */
const MOST_OTHERS = 100
/** Editors draw a paste more than once, with colours and moves. */
const BYTES_PER_CHARACTER = 4

const visible = (text: string): string => text.replace(BLANKS, '')

export class PastedEcho {
  readonly #text: string
  /** Its first and its last two lines: an answer to a question is a single line. */
  readonly #pairs: readonly string[]
  readonly #ends: ReadonlySet<string>
  readonly #prompt: string
  /** No line looks as if it began with the prompt of an interpreter. */
  readonly #isPlain: boolean
  #drawn = ''
  /** Since the cursor was moved. */
  #piece = ''
  #isWhole = false
  #isPart = false
  /** Pieces that are not of the paste. */
  readonly #others = new Set<string>()

  /** `lines`: without blank ones; `prompt`: left of the cursor at the first key. */
  constructor(lines: readonly string[], prompt: string) {
    const shown = lines.map(visible)
    this.#text = shown.join('')
    this.#pairs = [shown.slice(0, 2).join(''), shown.slice(-2).join('')]
    this.#ends = new Set([this.#text, ...this.#pairs].map((text) => Array.from(text).at(-1) ?? ''))
    this.#prompt = visible(prompt)
    this.#isPlain = !shown.some((line) => line.startsWith('..'))
  }

  /** Of output, what it takes to find the paste. */
  get mostBytes(): number {
    return BYTES_PER_CHARACTER * Math.min(this.#text.length, MOST_CHARACTERS)
  }

  /** All of it was drawn, in order. */
  get isWhole(): boolean {
    return this.#isWhole
  }

  /** Two lines at its beginning or end were drawn, one after the other; of a single line, all of it. */
  get isPart(): boolean {
    return this.#isPart
  }

  /** Nothing else was drawn but the prompt and parts of `typed`. */
  isAlone(typed: string): boolean {
    this.move()
    const text = visible(typed)
    return this.#others.size <= MOST_OTHERS && [...this.#others].every((piece) => text.includes(piece))
  }

  draw(text: string): void {
    for (const character of visible(text)) {
      this.#piece += character
      this.#drawn += character
      if (character !== '.' && character !== ':') this.#dropContinued()
      if (!this.#ends.has(character)) continue
      this.#isWhole ||= this.#drawn.endsWith(this.#text)
      this.#isPart ||= this.#pairs.some((pair) => this.#drawn.endsWith(pair))
    }
    const most = Math.min(this.#text.length, MOST_CHARACTERS)
    if (this.#drawn.length > 2 * most) this.#drawn = this.#drawn.slice(-most)
  }

  /** Whether a row that stands is part of it. */
  holds(row: string): boolean {
    const text = this.#withoutPrompt(visible(row)).replace(this.#isPlain ? CONTINUES : '', '')
    return text.length > 1 && this.#text.includes(text)
  }

  #dropContinued(): void {
    const prompt = this.#isPlain ? CONTINUES.exec(this.#piece)?.[0] : undefined
    if (prompt === undefined) return
    const { length } = this.#piece
    this.#piece = this.#piece.slice(prompt.length)
    this.#drawn = this.#drawn.slice(0, -length) + this.#piece
  }

  #withoutPrompt(text: string): string {
    return this.#prompt !== '' && text.startsWith(this.#prompt) ? text.slice(this.#prompt.length) : text
  }

  /** The cursor is moved, or something is erased. */
  move(): void {
    this.#dropContinued()
    const piece = this.#withoutPrompt(this.#piece)
    this.#piece = ''
    if (this.#others.size <= MOST_OTHERS && !this.#text.includes(piece)) this.#others.add(piece)
  }
}
