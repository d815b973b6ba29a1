/**
 * What a screen needs of the emulator beyond its stable interface, as a port with two implementations: the emulator's
 * internals (xterm-internals.ts: parses at once, reads rows as numbers) and, when a new version has other internals, its
 * public interface (here: parses a little later, reads cell by cell).
 */
import type { IBufferCell, Terminal } from '@xterm/headless'
import { SOURCE_COMBINED, SOURCE_WIDTH_SHIFT, SOURCE_WORDS, type SourceRow } from './cell-row.ts'

export type MouseEncoding = 'default' | 'sgr'

export interface XtermAccess {
  /** Whether `parse` has done its work when it returns. */
  readonly isSynchronous: boolean
  readonly isCursorVisible: boolean
  readonly cursorStyle: 'block' | 'underline' | 'bar'
  readonly mouseEncoding: MouseEncoding
  /** Whether the parser is inside a string (OSC, DCS, APC, PM, SOS) and so swallows what comes; undefined: cannot tell. */
  readonly isInString: boolean | undefined
  /** Valid UTF-8. Never throws. */
  parse(bytes: Uint8Array): void
  /** A row of the active buffer, counted from the oldest kept line. Valid until the next call. */
  row(line: number): SourceRow | undefined
}

/** Sequences that the emulator carries out as often as their first parameter says, up to 2³¹ times. */
export const COUNTED_SEQUENCES: readonly { final: string; intermediates?: string }[] = [
  ...['@', 'I', 'L', 'M', 'P', 'S', 'T', 'X', 'Z', 'b'].map((final) => ({ final })),
  { final: '@', intermediates: ' ' },
  { final: 'A', intermediates: ' ' },
  { final: '}', intermediates: "'" },
  { final: '~', intermediates: "'" },
]

/** Beyond this a counted sequence is ignored by the public way; `CSI 999 L` still works. */
const MAX_IGNORED_COUNT = 1000

const COLOUR_MODES = { default: 0, palette: 2, rgb: 3 } as const

/**
 * The public way. Parsing happens a little later (`onParsed` tells), counted sequences beyond the bound are ignored
 * instead of shortened, and the parser does not say whether it is inside a string.
 */
export function openPublicAccess(terminal: Terminal, onParsed: () => void): XtermAccess {
  let isCursorVisible = true
  let cursorStyle: XtermAccess['cursorStyle'] = 'block'
  let mouseEncoding: MouseEncoding = 'default'
  const { parser } = terminal

  for (const identifier of COUNTED_SEQUENCES) {
    parser.registerCsiHandler(identifier, (params) => Number(params[0] ?? 0) > MAX_IGNORED_COUNT)
  }
  for (const final of ['h', 'l']) {
    parser.registerCsiHandler({ prefix: '?', final }, (params) => {
      if (params.includes(25)) isCursorVisible = final === 'h'
      if (params.includes(1006)) mouseEncoding = final === 'h' ? 'sgr' : 'default'
      return false
    })
  }
  parser.registerCsiHandler({ intermediates: ' ', final: 'q' }, (params) => {
    cursorStyle = cursorStyleOf(Number(params[0] ?? 1))
    return false
  })
  parser.registerCsiHandler({ intermediates: '!', final: 'p' }, () => {
    isCursorVisible = true
    return false
  })
  parser.registerEscHandler({ final: 'c' }, () => {
    isCursorVisible = true
    cursorStyle = 'block'
    mouseEncoding = 'default'
    return false
  })

  let words = new Uint32Array(0)
  let cell: IBufferCell | undefined
  return {
    isSynchronous: false,
    isInString: undefined,
    get isCursorVisible() {
      return isCursorVisible
    },
    get cursorStyle() {
      return cursorStyle
    },
    get mouseEncoding() {
      return mouseEncoding
    },
    parse(bytes) {
      // The emulator keeps the array until it parses it.
      terminal.write(bytes.slice(), onParsed)
    },
    row(line) {
      const source = terminal.buffer.active.getLine(line)
      if (!source) return undefined
      if (words.length !== source.length * SOURCE_WORDS) words = new Uint32Array(source.length * SOURCE_WORDS)
      const combined: { [column: number]: string } = {}
      for (let column = 0; column < source.length; column++) {
        cell = source.getCell(column, cell)
        if (cell) encodeCell(cell, column, words, combined)
      }
      return { words, combined, length: source.length }
    },
  }
}

function encodeCell(
  cell: IBufferCell,
  column: number,
  words: Uint32Array,
  combined: { [column: number]: string },
): void {
  const text = cell.getChars()
  const code = text.codePointAt(0) ?? 0
  const isCombined = text.length > (code > 0xffff ? 2 : 1)
  if (isCombined) combined[column] = text
  words[column * SOURCE_WORDS] = (cell.getWidth() << SOURCE_WIDTH_SHIFT) | (isCombined ? SOURCE_COMBINED : code)
  const flag = (isSet: number, bit: number) => (isSet ? 1 << bit : 0)
  words[column * SOURCE_WORDS + 1] =
    (colourMode(cell.isFgRGB(), cell.isFgPalette()) << 24) |
    (cell.isFgDefault() ? 0 : cell.getFgColor()) |
    flag(cell.isInverse(), 26) |
    flag(cell.isBold(), 27) |
    flag(cell.isUnderline(), 28) |
    flag(cell.isBlink(), 29) |
    flag(cell.isInvisible(), 30) |
    flag(cell.isStrikethrough(), 31)
  words[column * SOURCE_WORDS + 2] =
    (colourMode(cell.isBgRGB(), cell.isBgPalette()) << 24) |
    (cell.isBgDefault() ? 0 : cell.getBgColor()) |
    flag(cell.isItalic(), 26) |
    flag(cell.isDim(), 27) |
    flag(cell.isOverline(), 30)
}

function colourMode(isRgb: boolean, isPalette: boolean): number {
  return isRgb ? COLOUR_MODES.rgb : isPalette ? COLOUR_MODES.palette : COLOUR_MODES.default
}

/** DECSCUSR: 0, 1, 2 block; 3, 4 underline; 5, 6 bar. */
export function cursorStyleOf(parameter: number): XtermAccess['cursorStyle'] {
  return parameter === 3 || parameter === 4 ? 'underline' : parameter === 5 || parameter === 6 ? 'bar' : 'block'
}
