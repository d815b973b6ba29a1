/** Takes out of a command's output what the wrapper and sudo wrote. The command's own bytes pass unchanged and at once. */

/** What a login shell may print before the command begins; of more, the beginning is dropped. */
const HELD_BYTES = 64 * 1024
/** Start-up files that print more than that before the command begins print without end. */
export const MOST_BEFORE_BYTES = 16 * 1024 * 1024

/** Drops everything up to and including the mark. Without a mark, `flush` gives what was held: the shell's own complaint. */
export class MarkFilter {
  readonly #mark: Buffer
  readonly #pass: (bytes: Uint8Array) => void
  readonly #onMark: () => void
  readonly #onFlood: () => void
  #held: Buffer | undefined = Buffer.alloc(0)
  #bytes = 0

  /** `onFlood`: once, when so much has come without the mark that it will not come any more. */
  constructor(mark: string, pass: (bytes: Uint8Array) => void, onMark: () => void, onFlood: () => void) {
    this.#mark = Buffer.from(mark)
    this.#pass = pass
    this.#onMark = onMark
    this.#onFlood = onFlood
  }

  push(bytes: Uint8Array): void {
    if (this.#held === undefined) return this.#pass(bytes)
    const held = this.#held.length === 0 ? Buffer.from(bytes) : Buffer.concat([this.#held, bytes])
    const at = held.indexOf(this.#mark)
    if (at < 0) {
      this.#held = held.subarray(Math.max(0, held.length - HELD_BYTES))
      const before = this.#bytes
      this.#bytes += bytes.length
      if (before <= MOST_BEFORE_BYTES && this.#bytes > MOST_BEFORE_BYTES) this.#onFlood()
      return
    }
    this.#held = undefined
    this.#onMark()
    const rest = held.subarray(at + this.#mark.length)
    if (rest.length > 0) this.#pass(rest)
  }

  flush(): void {
    const held = this.#held
    this.#held = undefined
    if (held !== undefined && held.length > 0) this.#pass(held)
  }
}

/** Takes out each prompt and tells of it; holds back only what may be the beginning of one. */
export class PromptFilter {
  readonly #prompt: Buffer
  readonly #pass: (bytes: Uint8Array) => void
  readonly #onPrompt: () => void
  #held = Buffer.alloc(0)

  constructor(prompt: string, pass: (bytes: Uint8Array) => void, onPrompt: () => void) {
    this.#prompt = Buffer.from(prompt)
    this.#pass = pass
    this.#onPrompt = onPrompt
  }

  push(bytes: Uint8Array): void {
    let text = Buffer.concat([this.#held, bytes])
    for (let at = text.indexOf(this.#prompt); at >= 0; at = text.indexOf(this.#prompt)) {
      if (at > 0) this.#pass(text.subarray(0, at))
      text = text.subarray(at + this.#prompt.length)
      this.#onPrompt()
    }
    const keep = this.#possibleStart(text)
    this.#held = Buffer.from(text.subarray(text.length - keep))
    if (text.length > keep) this.#pass(text.subarray(0, text.length - keep))
  }

  flush(): void {
    if (this.#held.length > 0) this.#pass(this.#held)
    this.#held = Buffer.alloc(0)
  }

  #possibleStart(text: Buffer): number {
    for (let length = Math.min(text.length, this.#prompt.length - 1); length > 0; length -= 1) {
      if (text.subarray(text.length - length).equals(this.#prompt.subarray(0, length))) return length
    }
    return 0
  }
}
