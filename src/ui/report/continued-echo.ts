/**
 * Interpreters and shells print a prompt of another kind before the next line of a command that is not complete: `... `, `quote> `.
 * Where several lines are typed at once, a row with such a prompt and exactly the line is its echo, if rows come in the order of the
 * lines: what a program prints of a password that it has read comes after the echo of a later line. Pure.
 */
import { PROMPT } from './asks-secret.ts'

/** Few shapes, which hardly any program begins its output with. Those that end as other prompts do are known anyway. */
const CONTINUES = /^ *(?:\.{3}:?|In \[\d+\]:) +$/
/** Of R and Node, whose own prompt is `> `. */
const CONTINUES_ANGLE = /^[+|] +$/

export class ContinuedEcho<L extends { readonly text: string }> {
  readonly #isAngle: boolean
  #next = 0
  /** The lines before the next one. */
  readonly #passed = new Set<L>()

  /** `before`: left of the cursor at the first key. */
  constructor(before: string) {
    this.#isAngle = before.trim() === '>'
  }

  /** Its echo is not expected any more: it was found, or that of a later line. */
  isPassed(line: L): boolean {
    return this.#passed.has(line)
  }

  /** The line whose echo is this row. `isContinued`: after a prompt that only continues a command. */
  take(row: string, lines: readonly L[]): { readonly line: L; readonly isContinued: boolean } | undefined {
    for (let at = this.#next; at < lines.length; at += 1) {
      const line = lines[at]
      const text = line?.text.trimEnd() ?? ''
      if (line === undefined || text === '' || !row.endsWith(text)) continue
      const before = row.slice(0, row.length - text.length)
      const isContinued = CONTINUES.test(before) || (this.#isAngle && CONTINUES_ANGLE.test(before))
      if (!isContinued && !PROMPT.test(before)) continue
      for (const each of lines.slice(this.#next, at + 1)) this.#passed.add(each)
      this.#next = at + 1
      return { line, isContinued }
    }
    return undefined
  }
}
