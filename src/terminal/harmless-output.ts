/**
 * Filters output of a host for the user's own terminal: only what draws is kept. Titles, the clipboard, images and other strings,
 * questions that the terminal would answer, and modes of mouse, focus, paste and keys are left out. A program that also reads from the
 * terminal keeps these modes, and questions that the terminal answers with numbers alone.
 */

/** Private modes that change only what is drawn: origin, wrapping, cursor, margins, the alternate screen, synchronized updates. */
const DRAWN_MODES = new Set(['5', '6', '7', '12', '25', '45', '47', '69', '1047', '1048', '1049', '2026'])
/** Private modes that change what the terminal sends: keys of the cursor and the keypad, mouse, focus, paste. */
const INPUT_MODES = new Set(['1', '9', '66', '1000', '1002', '1003', '1004', '1006', '1015', '1016', '2004'])
/** Modes that are on from the start: wrapping and the cursor. */
const ON_AT_FIRST = new Set(['7', '25'])
/** Saves and restores the cursor, so there is nothing to switch off. */
const SAVED_CURSOR = '1048'
/** Asks which terminal it is, whether it is ready, or where its cursor is. */
const QUESTION = /^(?:0?c|[56]n)$/
/** The application keypad, on and off. */
const KEYPAD = /^[=>]$/
/** Moving, erasing, inserting, tabulators, margins, colours, insertion, the shape of the cursor, a soft reset. */
const DRAWING = /^(?:[\d:;]*(?:[@A-MPSTXZ`abd-gmrsu]| q|!p)|4[hl]|\?[\d;]*[JK])$/
const MODES = /^\?([\d;]*)([hl])$/
/** Saved cursor, index, tabulators, character sets, the alignment test. */
const SHORT = /^(?:[78DEHMNOno|}~]|[()*+./-][0-~]|#[34568])$/
/** The full reset of a terminal would also forget what was on it before. */
const RESET = '\x1b[!p\x1b[H\x1b[2J'
/** They begin a string, which is never drawn; the last one is the title of screen(1). */
const STRINGS = ']PX^_k'
const AS_ESCAPE: Readonly<Record<string, string>> = {
  '\x90': 'P',
  '\x98': 'X',
  '\x9b': '[',
  '\x9d': ']',
  '\x9e': '^',
  '\x9f': '_',
}
/** All controls but bell, backspace, tabulator, line feeds, return and shifts. */
const SPECIAL = /[\x00-\x06\x10-\x1f\x7f-\x9f]/g
/** The eight-bit controls that are not dropped. */
const LINES: Readonly<Record<string, string>> = { '\x84': 'D', '\x85': 'E', '\x88': 'H', '\x8d': 'M' }
const TABULATORS = /^(?:H|\[\d*g)$/
const STRING_END = /[\x07\x18\x1a\x1b\x9c]/g
const PARAMETERS = /[0-?]*[ -/]*/y
const INTERMEDIATES = /[ -/]*/y
/** A longer sequence means nothing. */
const LONGEST = 256

const MAIN_CHARACTERS = '\x0f\x1b(B'
/** Sequences that stay in effect, and what undoes each of them. */
const UNDONE_BY: readonly (readonly [RegExp, string])[] = [
  [/^\[[\d:;]*m$/, '\x1b[0m'],
  [/^\[[\d:;]* q$/, '\x1b[0 q'],
  [/^\[4h$/, '\x1b[4l'],
  // Resetting the margins moves the cursor, so its position is saved.
  [/^\[[\d:;]*r$/, '\x1b7\x1b[r\x1b8'],
  [/^=$/, '\x1b>'],
  [/^[()*+./no|}~-]/, MAIN_CHARACTERS],
]
/**
 * The order of undoing. A synchronized update ends first, because the terminal may hold back what follows. Ending the origin mode moves
 * the cursor, so it comes before leaving the alternate screen, which restores the cursor. The rest applies to the main screen.
 */
const UNDONE_FIRST = [/^\x1b\[\?2026l$/, /^\x1b\[\?6l$/, /^\x1b\[\?(?:47|1047|1049)l$/, /^\x1b7/, /^/]
const rankOf = (undo: string): number => UNDONE_FIRST.findIndex((pattern) => pattern.test(undo))

export class HarmlessOutput {
  readonly #isInteractive: boolean
  readonly #modes: ReadonlySet<string>
  /** What undoes the sequences that are in effect. */
  readonly #undo = new Set<string>()
  #questions = 0
  /** The beginning of a sequence. */
  #held = ''
  /** What began the string that the text is in. */
  #string: string | undefined

  /** `isInteractive`: the program also reads from the terminal. Call `restore` when it has ended. */
  constructor({ isInteractive = false }: { readonly isInteractive?: boolean } = {}) {
    this.#isInteractive = isInteractive
    this.#modes = isInteractive ? new Set([...DRAWN_MODES, ...INPUT_MODES]) : DRAWN_MODES
  }

  /** How many questions were passed to the terminal. */
  get questions(): number {
    return this.#questions
  }

  /** Returns what restores the terminal, except for the text on it. */
  restore(): string {
    const undo = [...this.#undo].toSorted((one, other) => rankOf(one) - rankOf(other))
    this.#undo.clear()
    return undo.join('')
  }

  /** Text may be cut anywhere. */
  push(more: string): string {
    const text = this.#held + more
    this.#held = ''
    let shown = ''
    let at = 0
    while (at < text.length) {
      if (this.#string !== undefined) {
        at = this.#skipString(text, at)
        continue
      }
      const special = indexOf(SPECIAL, text, at)
      const plain = text.slice(at, special)
      if (plain.includes('\x0e')) this.#undo.add(MAIN_CHARACTERS)
      shown += plain
      if (special === text.length) break
      const sequence = this.#read(text, special)
      if (sequence === undefined) break
      at = sequence.end
      shown += sequence.shown
    }
    return shown
  }

  /** Returns where to continue. */
  #skipString(text: string, from: number): number {
    const end = indexOf(STRING_END, text, from)
    const [sign, next] = [text[end], text[end + 1]]
    if (sign === undefined) return end
    // Only OSC ends with a bell.
    if (sign === '\x07' && this.#string !== ']') return end + 1
    if (sign === '\x1b' && next === undefined) {
      this.#held = sign
      return text.length
    }
    this.#string = undefined
    if (sign !== '\x1b') return end + 1
    return next === '\\' ? end + 2 : end
  }

  /** Undefined: the rest is held back. */
  #read(text: string, from: number): { readonly shown: string; readonly end: number } | undefined {
    const first = text[from] ?? ''
    const isEscape = first === '\x1b'
    const kind = isEscape ? text[from + 1] : AS_ESCAPE[first]
    const after = from + (isEscape ? 2 : 1)
    if (kind === undefined)
      return isEscape ? this.#hold(text, from) : { shown: this.#escape(LINES[first] ?? ''), end: after }
    if (STRINGS.includes(kind)) {
      this.#string = kind
      return { shown: '', end: after }
    }
    const body = kind === '[' ? after : after - 1
    const final = endOf(kind === '[' ? PARAMETERS : INTERMEDIATES, text, body)
    if (final === text.length) return this.#hold(text, from)
    // Another control is not part of a sequence, and ends it.
    if (!/[0-~]/.test(text[final] ?? '')) return { shown: '', end: final }
    const sequence = text.slice(body, final + 1)
    return { shown: kind === '[' ? this.#control(sequence) : this.#escape(sequence), end: final + 1 }
  }

  #hold(text: string, from: number): { readonly shown: string; readonly end: number } | undefined {
    if (text.length - from > LONGEST) return { shown: '', end: text.length }
    this.#held = text.slice(from)
    return undefined
  }

  #control(sequence: string): string {
    const [, given = '', final] = MODES.exec(sequence) ?? []
    if (final !== undefined) return this.#switch(given.split(';'), final === 'h')
    // It would erase what was on the terminal before.
    if (sequence.endsWith('J') && sequence.includes('3')) return ''
    const isQuestion = this.#isInteractive && QUESTION.test(sequence)
    if (isQuestion) this.#questions += 1
    return isQuestion || DRAWING.test(sequence) ? this.#pass(`[${sequence}`) : ''
  }

  #switch(given: readonly string[], isOn: boolean): string {
    const modes = given.filter((mode) => this.#modes.has(mode))
    for (const mode of modes) {
      const isAtFirst = ON_AT_FIRST.has(mode)
      const undo = `\x1b[?${mode}${isAtFirst ? 'h' : 'l'}`
      if (isOn === isAtFirst) this.#undo.delete(undo)
      else if (mode !== SAVED_CURSOR) this.#undo.add(undo)
    }
    return modes.length === 0 ? '' : `\x1b[?${modes.join(';')}${isOn ? 'h' : 'l'}`
  }

  #escape(sequence: string): string {
    if (sequence === 'c') return `${this.restore()}${RESET}`
    const isHarmless = SHORT.test(sequence) || (this.#isInteractive && KEYPAD.test(sequence))
    return isHarmless ? this.#pass(sequence) : ''
  }

  #pass(sequence: string): string {
    // No sequence could restore the tab stops that the terminal had before.
    if (this.#isInteractive && TABULATORS.test(sequence)) return ''
    for (const [pattern, undo] of UNDONE_BY) if (pattern.test(sequence)) this.#undo.add(undo)
    return `\x1b${sequence}`
  }
}

function indexOf(pattern: RegExp, text: string, from: number): number {
  pattern.lastIndex = from
  return pattern.exec(text)?.index ?? text.length
}

function endOf(pattern: RegExp, text: string, from: number): number {
  pattern.lastIndex = from
  pattern.exec(text)
  return Math.max(from, pattern.lastIndex)
}
