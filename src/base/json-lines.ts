/** Reads what programs on a host print: lines that arrive in pieces, and JSON of any shape. Values of an unexpected type are ignored. */

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

export type JsonRecord = Readonly<Record<string, unknown>>

/** A value takes up to two hundred bytes of memory, however short its text is. */
const MOST_VALUES = 2_000_000
const MOST_DEPTH = 200

/** Undefined: it is no JSON, or has so many or so deep values that they would fill the memory. */
export function parseJson(text: string): unknown {
  try {
    return isWithinBounds(text) ? JSON.parse(text) : undefined
  } catch {
    return undefined
  }
}

/** Counts what values begin with or are divided by, outside strings. */
function isWithinBounds(text: string): boolean {
  let [count, depth] = [0, 0]
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code === QUOTE) at = endOfString(text, at)
    else if (code === COMMA) count++
    else if (code === BRACKET || code === BRACE) {
      count++
      depth++
    } else if (code === BRACKET_END || code === BRACE_END) depth--
    if (count > MOST_VALUES || depth > MOST_DEPTH) return false
  }
  return true
}

/** Where the string that begins at `from` ends. */
function endOfString(text: string, from: number): number {
  let at = from + 1
  while (at < text.length && text.charCodeAt(at) !== QUOTE) at += text.charCodeAt(at) === BACKSLASH ? 2 : 1
  return at
}

const [QUOTE, COMMA, BACKSLASH] = [34, 44, 92]
const [BRACKET, BRACKET_END, BRACE, BRACE_END] = [91, 93, 123, 125]

export function record(value: unknown): JsonRecord | undefined {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as JsonRecord) : undefined
}

export function list(value: unknown): readonly JsonRecord[] {
  const entries: readonly unknown[] = Array.isArray(value) ? value : []
  return entries.flatMap<JsonRecord>((entry) => record(entry) ?? [])
}

/** Empty where it is no text. */
export function textOf(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

/** Also of a number in quotes, as Ray writes large ones. */
export function numberOf(value: unknown): number | undefined {
  const number = typeof value === 'string' && value.trim() !== '' ? Number(value) : value
  return typeof number === 'number' && Number.isFinite(number) ? number : undefined
}
