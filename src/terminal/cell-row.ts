/** From the emulator's cells (content, foreground, background) to ours (cells.ts), normalised, and from ours to text. */
import {
  BLANK,
  BLINK,
  BOLD,
  CODE_MASK,
  createCellGrid,
  DIM,
  INVERSE,
  INVISIBLE,
  ITALIC,
  OVERLINE,
  STRIKETHROUGH,
  UNDERLINE,
  WIDE_TAIL,
  WIDTH_SHIFT,
  WORDS_PER_CELL,
} from './cells.ts'
import { type ClusterBudget, cellText, cellWord, isPrintableCode } from './clusters.ts'
import type { Pen } from './pen.ts'

/** Words of a cell of the emulator. */
const SOURCE_WORDS = 3
const SOURCE_COMBINED = 1 << 21
const SOURCE_CODE = 0x1f_ffff
/** A cell that nothing was written to: width 1, no code point. */
const SOURCE_BLANK = 1 << 22
const SOURCE_WIDTH_SHIFT = 22

/** A row as the emulator holds it. `combined` has the texts of the cells whose content word says so. */
export type SourceRow = {
  readonly words: Uint32Array
  readonly combined: { readonly [column: number]: string | undefined }
  readonly length: number
}

const FOREGROUND_FLAGS = flagTable([INVERSE, BOLD, UNDERLINE, BLINK, INVISIBLE, STRIKETHROUGH])
const BACKGROUND_FLAGS = flagTable([ITALIC, DIM, 0, 0, OVERLINE, 0])
const FLAGS_SHIFT = 26

/** What shows on a cell without a character. */
const SEEN_ON_BLANK = UNDERLINE | INVERSE | STRIKETHROUGH | OVERLINE

function flagTable(flags: readonly number[]): Uint16Array {
  const table = new Uint16Array(64)
  for (let bits = 0; bits < 64; bits++) {
    table[bits] = flags.reduce((sum, flag, index) => (bits & (1 << index) ? sum | flag : sum), 0)
  }
  return table
}

/** Modes of the emulator: 0 default, 1 palette of 16, 2 palette of 256, 3 RGB; ours: 0, 1, 2. */
function colour(word: number): number {
  const mode = (word >>> 24) & 3
  if (mode === 0) return 0
  return mode === 3 ? 0x200_0000 | (word & 0xff_ffff) : 0x100_0000 | (word & 0xff)
}

/** The pen of the emulator, which has the form of a cell's colours. */
export const penOf = ({ fg, bg }: { readonly fg: number; readonly bg: number }): Pen => ({
  foreground: colour(fg),
  background: colour(bg),
  isConcealed: ((FOREGROUND_FLAGS[fg >>> FLAGS_SHIFT] as number) & INVISIBLE) !== 0,
  isDim: ((BACKGROUND_FLAGS[bg >>> FLAGS_SHIFT] as number) & DIM) !== 0,
})

/** What the row lacks is blank, and so is a wide character that `width` cuts. `offset`: in words of the target. */
export function writeRow(
  row: SourceRow | undefined,
  width: number,
  target: Uint32Array,
  offset: number,
  budget?: ClusterBudget,
): void {
  const cells = row ? usedCells(row, Math.min(width, row.length)) : 0
  let out = offset
  if (row) {
    const { words, combined } = row
    for (let column = 0, at = 0; column < cells; column++, at += SOURCE_WORDS, out += WORDS_PER_CELL) {
      const content = words[at] as number
      const fg = words[at + 1] as number
      const bg = words[at + 2] as number
      const code = content & SOURCE_CODE
      if ((fg | bg) === 0 && code < 0x7f && content >>> (SOURCE_WIDTH_SHIFT - 1) === 2) {
        target[out] = code > 0x20 ? BLANK | code : BLANK
        target[out + 1] = 0
        target[out + 2] = 0
        target[out + 3] = 0
        continue
      }
      const isWide =
        content >>> SOURCE_WIDTH_SHIFT === 2 &&
        column + 1 < width &&
        column + 1 < row.length &&
        (words[at + SOURCE_WORDS] as number) >>> (SOURCE_WIDTH_SHIFT - 1) === 0
      const word = firstWord(content, isWide ? 2 : 1, combined, column, budget)
      let attributes =
        (FOREGROUND_FLAGS[fg >>> FLAGS_SHIFT] as number) | (BACKGROUND_FLAGS[bg >>> FLAGS_SHIFT] as number)
      let foreground = colour(fg)
      if ((word & ~(3 << WIDTH_SHIFT)) === 0) {
        attributes &= SEEN_ON_BLANK
        if (attributes === 0) foreground = 0
      }
      const background = colour(bg)
      target[out] = word
      target[out + 1] = foreground
      target[out + 2] = background
      target[out + 3] = attributes
      if (isWide) {
        // A wide cell without a visible character is two blanks.
        const isBlank = (word & ~(3 << WIDTH_SHIFT)) === 0
        if (isBlank) target[out] = BLANK
        column++
        at += SOURCE_WORDS
        out += WORDS_PER_CELL
        target[out] = isBlank ? BLANK : WIDE_TAIL
        target[out + 1] = foreground
        target[out + 2] = background
        target[out + 3] = attributes
      }
    }
  }
  const blankWords = offset + width * WORDS_PER_CELL - out
  if (blankWords > 0) target.set(blanks(blankWords), out)
}

/** Without the empty cells at the end, which a native copy fills faster. */
function usedCells(row: SourceRow, width: number): number {
  const { words } = row
  let cells = width
  for (let at = (width - 1) * SOURCE_WORDS; cells > 0; cells--, at -= SOURCE_WORDS) {
    if (words[at] !== SOURCE_BLANK || words[at + 1] !== 0 || words[at + 2] !== 0) break
  }
  return cells
}

let blankCells = createCellGrid(256, 1).words

function blanks(words: number): Uint32Array {
  if (blankCells.length < words) blankCells = createCellGrid(words / WORDS_PER_CELL, 1).words
  return blankCells.subarray(0, words)
}

function firstWord(
  content: number,
  width: 1 | 2,
  combined: SourceRow['combined'],
  column: number,
  budget: ClusterBudget | undefined,
): number {
  const sourceWidth = content >>> SOURCE_WIDTH_SHIFT
  // The tail of a character that is gone, or a wide one without its tail.
  if (sourceWidth === 0 || (sourceWidth === 2 && width === 1)) return BLANK
  if (content & SOURCE_COMBINED) return cellWord(combined[column] ?? '', width, budget)
  const code = content & SOURCE_CODE
  return (width << WIDTH_SHIFT) | (isPrintableCode(code) ? code : 0)
}

/** The text of `width` cells from word `offset` on, right-trimmed. */
export function textOfCells(words: Uint32Array, offset: number, width: number): string {
  let end = offset + width * WORDS_PER_CELL
  while (end > offset && words[end - WORDS_PER_CELL] === BLANK) end -= WORDS_PER_CELL
  let text = ''
  let run: number[] = []
  for (let at = offset; at < end; at += WORDS_PER_CELL) {
    const word = words[at] as number
    if (word >>> WIDTH_SHIFT === 1) {
      run.push(word & CODE_MASK || 0x20)
    } else if (word !== WIDE_TAIL) {
      text += String.fromCodePoint(...run) + cellText(word)
      run = []
    }
  }
  return text + String.fromCodePoint(...run)
}
