/**
 * Output of a host as it may be played on the user's own terminal: with what draws, and without what does more. Titles, the
 * clipboard, images and other strings, questions that the terminal would answer, and modes of mouse, focus, paste and keys are left out.
 */

/** Private modes that change only what is drawn: origin, wrapping, cursor, margins, the alternate screen, synchronized updates. */
const DRAWN_MODES = new Set(['5', '6', '7', '12', '25', '45', '47', '69', '1047', '1048', '1049', '2026'])
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
const STRING_END = /[\x07\x18\x1a\x1b\x9c]/g
const PARAMETERS = /[0-?]*[ -/]*/y
const INTERMEDIATES = /[ -/]*/y
/** A longer sequence means nothing. */
const LONGEST = 256

export class HarmlessOutput {
  /** The beginning of a sequence. */
  #held = ''
  /** What began the string that the text is in. */
  #string: string | undefined

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
      shown += text.slice(at, special)
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
    if (kind === undefined) return isEscape ? this.#hold(text, from) : { shown: LINES[first] ?? '', end: after }
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
    return { shown: kind === '[' ? harmlessControl(sequence) : harmlessEscape(sequence), end: final + 1 }
  }

  #hold(text: string, from: number): { readonly shown: string; readonly end: number } | undefined {
    if (text.length - from > LONGEST) return { shown: '', end: text.length }
    this.#held = text.slice(from)
    return undefined
  }
}

/** Line feeds of the eight-bit controls. */
const LINES: Readonly<Record<string, string>> = { '\x84': '\x1bD', '\x85': '\x1bE', '\x88': '\x1bH', '\x8d': '\x1bM' }

function harmlessControl(sequence: string): string {
  const [, given = '', final] = MODES.exec(sequence) ?? []
  if (final !== undefined) {
    const modes = given.split(';').filter((mode) => DRAWN_MODES.has(mode))
    return modes.length === 0 ? '' : `\x1b[?${modes.join(';')}${final}`
  }
  // It would erase what was on the terminal before.
  if (sequence.endsWith('J') && sequence.includes('3')) return ''
  return DRAWING.test(sequence) ? `\x1b[${sequence}` : ''
}

function harmlessEscape(sequence: string): string {
  if (sequence === 'c') return RESET
  return SHORT.test(sequence) ? `\x1b${sequence}` : ''
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
