/** The line of a prompt: editing, the history with Up and Down, completion with Tab. */

import { counted } from '../../base/counted.ts'
import { lastOperand } from '../../inventory/complete-host-set.ts'
import type { KeyEvent } from '../keys/decode-input.ts'
import { type Completing, type DialogLine, editLine, insertText, type Line, type LookUp, lineOf } from './dialog.ts'

export type PromptLineOptions = {
  readonly initial?: string
  /** The latest first. */
  readonly history: readonly string[]
  /** `text`: up to the cursor. */
  complete?(text: string): Completing | undefined
  readonly lookUp?: LookUp | undefined
  /** Pasted lines are joined by commas, as of a list of hosts; other texts would get another meaning. */
  readonly joinsLines?: boolean
  onChange(): void
}

const MOST_SHOWN = 8
const NOTHING = 'nothing to complete'
/** A longer text was pasted by mistake, and each change of it takes long. */
const LONGEST = 16_384

export class PromptLine {
  readonly #options: PromptLineOptions
  #line: Line
  /** In the history; undefined: not in it. `draft`: what was typed before. */
  #walk: { readonly at: number; readonly draft: string } | undefined
  #choice: { readonly words: readonly string[]; readonly at: number; readonly completing: Completing } | undefined
  #note: string | undefined
  #refusal: string | undefined
  /** Only the answer of the last look-up counts. */
  #asked = 0

  constructor(options: PromptLineOptions) {
    this.#options = options
    this.#line = lineOf(options.initial ?? '')
  }

  get line(): Line {
    return this.#line
  }

  get text(): string {
    return this.#line.text
  }

  /** Why the last key or paste changed nothing. */
  get refusal(): string | undefined {
    return this.#refusal
  }

  /** What Tab can choose from, or that there is nothing; undefined: no Tab was pressed. */
  get choices(): readonly DialogLine[] | undefined {
    if (this.#note !== undefined) return [{ text: this.#note, tone: 'muted' }]
    const choice = this.#choice
    if (choice === undefined) return undefined
    const { words, at } = choice
    const start = Math.max(0, Math.min(at - MOST_SHOWN + 1, words.length - MOST_SHOWN))
    const shown = words.slice(start, start + MOST_SHOWN)
    const left = words.length - start - shown.length
    return [
      ...shown.map((text, index): DialogLine => ({ text, isSelected: start + index === at })),
      ...(left > 0 ? [{ text: `↓ ${left} more`, tone: 'muted' as const }] : []),
    ]
  }

  /** Keys for the footer of the dialog. */
  get hints(): (readonly [string, string])[] {
    return [
      ...(this.#options.complete === undefined ? [] : [['Tab', 'complete'] as const]),
      ...(this.#options.history.length === 0 ? [] : [['↑↓', 'history'] as const]),
    ]
  }

  /** False: the key means nothing to it. */
  key(label: string, event: KeyEvent): boolean {
    if (label === 'Up' || label === 'Ctrl-p') return this.#step(1)
    if (label === 'Down' || label === 'Ctrl-n') return this.#step(-1)
    if (label === 'Tab' || label === 'Shift-Tab') return this.#tab(label === 'Tab' ? 1 : -1)
    const next = editLine(this.#line, event)
    if (next === undefined) return false
    this.#set(next)
    return true
  }

  paste(text: string): void {
    const lines = text.trim().split(/\s*[\r\n]\s*/)
    const isRefused = lines.length > 1 && this.#options.joinsLines !== true && text.length <= LONGEST
    this.#set(isRefused ? this.#line : insertText(this.#line, lines.join(',')))
    if (!isRefused) return
    this.#refusal = `not inserted: the paste has ${counted(lines.length, 'line')}, and a prompt takes one; the shells take several`
    this.#options.onChange()
  }

  #set(line: Line): void {
    this.#walk = undefined
    this.#choice = undefined
    this.#note = undefined
    this.#asked += 1
    const isTooLong = line.text.length > Math.max(LONGEST, this.text.length)
    this.#refusal = isTooLong ? `not inserted: a prompt holds at most ${counted(LONGEST, 'character')}` : undefined
    if (!isTooLong) this.#line = line
    this.#options.onChange()
  }

  /** Through the entries that begin with what was typed. */
  #step(by: 1 | -1): boolean {
    const draft = this.#walk?.draft ?? this.text
    const found = this.#options.history.filter((text) => text.startsWith(draft) && text !== draft)
    const at = Math.min(found.length - 1, (this.#walk?.at ?? -1) + by)
    if (at < -1 || found.length === 0) return true
    this.#set(lineOf(at < 0 ? draft : (found[at] ?? draft)))
    this.#walk = at < 0 ? undefined : { at, draft }
    return true
  }

  #tab(by: 1 | -1): boolean {
    const { complete, lookUp } = this.#options
    const choice = this.#choice
    if (choice !== undefined) {
      const at = (choice.at + by + choice.words.length) % choice.words.length
      this.#write(choice.completing, choice.words[at] ?? '')
      this.#choice = { ...choice, at }
      this.#options.onChange()
      return true
    }
    const completing = complete?.(this.text.slice(0, this.#line.cursor))
    if (complete === undefined || lookUp === undefined) return complete !== undefined
    this.#asked += 1
    if (completing === undefined) {
      this.#note = NOTHING
      this.#options.onChange()
      return true
    }
    const asked = this.#asked
    void lookUp(completing.kind, completing.word).then(
      (words) => asked === this.#asked && this.#take(completing, words),
      () => asked === this.#asked && this.#take(completing, []),
    )
    return true
  }

  #take(completing: Completing, words: readonly string[]): void {
    const common = commonStart(words)
    if (common.length > completing.word.length) this.#write(completing, common)
    this.#note = words.length === 0 ? NOTHING : undefined
    this.#choice = words.length > 1 ? { words, at: -1, completing } : undefined
    this.#options.onChange()
  }

  #write({ from, write = (word) => word }: Completing, word: string): void {
    const { text, cursor } = this.#line
    const start = text.slice(0, from) + write(word)
    // The word that it replaces ends at the cursor.
    this.#set({ text: start + text.slice(cursor), cursor: start.length })
  }
}

function commonStart(words: readonly string[]): string {
  const [first = '', ...rest] = words
  let length = first.length
  for (const word of rest) while (!word.startsWith(first.slice(0, length))) length -= 1
  return first.slice(0, length)
}

/** The last part of a host set. */
export function completeHostSet(text: string): Completing | undefined {
  const operand = lastOperand(text)
  return operand && { ...operand, kind: 'host-set' }
}

/** The last word is one of these. */
export const completeOneOf =
  (words: readonly string[]) =>
  (text: string): Completing => {
    const from = text.lastIndexOf(' ') + 1
    return { from, word: text.slice(from), kind: words }
  }

/** All of the text is one path. */
export const completePath = (text: string): Completing => ({ from: 0, word: text, kind: 'path' })

/** The last word of a line with quotes and backslashes, as a path. */
export function completeLastPath(text: string): Completing {
  let from = 0
  let word = ''
  let quote = ''
  for (let at = 0; at < text.length; at += 1) {
    const character = text[at] ?? ''
    if (quote !== '' && character === quote) quote = ''
    else if (quote === '' && (character === "'" || character === '"')) quote = character
    else if (character === '\\' && quote !== "'" && at + 1 < text.length) {
      at += 1
      word += text[at] ?? ''
    } else if (quote === '' && /\s/.test(character)) {
      from = at + 1
      word = ''
    } else word += character
  }
  return { from, word, kind: 'path', write: (path) => path.replace(/[\s'"\\]/g, '\\$&') }
}
