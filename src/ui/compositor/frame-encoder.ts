/**
 * Turns the difference between two grids into the bytes that make one into the other: cursor moves, SGR, text. It is the
 * last line of defence: of a cell it writes nothing but printable characters. Source: ECMA-48 (CUP, CHA, CUF, ECH, SGR).
 */
import { asciiLike } from '../../base/ascii.ts'
import {
  BLANK,
  BLINK,
  BOLD,
  type CellGrid,
  CLUSTER_BIT,
  CODE_MASK,
  COLOUR_DEFAULT,
  COLOUR_MODE_SHIFT,
  COLOUR_PALETTE,
  type Colour,
  cellWidth,
  DIM,
  INVERSE,
  INVISIBLE,
  ITALIC,
  OVERLINE,
  STRIKETHROUGH,
  UNDERLINE,
  WIDE_TAIL,
  WORDS_PER_CELL,
} from '../../terminal/cells.ts'
import { clusterText, hasDisputedWidth, isPrintableCode } from '../../terminal/clusters.ts'
import type { Rect } from './scene.ts'

const SGR_CODES: readonly (readonly [bit: number, code: number])[] = [
  [BOLD, 1],
  [DIM, 2],
  [ITALIC, 3],
  [UNDERLINE, 4],
  [BLINK, 5],
  [INVERSE, 7],
  [INVISIBLE, 8],
  [STRIKETHROUGH, 9],
  [OVERLINE, 53],
]
/** Up to this many unchanged cells are written again, which costs less than a cursor move. */
const GAP = 4
/** From this many blank cells in a row on, they are erased (ECH) instead of written. */
const ERASED = 8
/** A terminal that draws a cell too wide (the parts of a cluster side by side) draws over up to this many cells after it, or more if it has many parts. */
const SPILL = 8
/** Terminals would join the next cell to this one, which may be the frame or another host's. */
const JOINS_NEXT = /(?<!\u200d)\u200d+$/
/** Before what is newer than Unicode 14, or never joined: tmux drops a character that it does not know, and joins the next one that it knows, wherever that is. */
const JOINS_UNKNOWN = /\u200d+(?=[\p{Cn}\u{10000}-\u{1f2ff}\u{1f6d5}-\u{1f8ff}\u{1fa75}-\u{10ffff}])/gu
const SOFT_HYPHEN = 0xad
const HYPHEN = 0x2d
const BLANKS = { 1: ' ', 2: '  ' } as const

export class FrameEncoder {
  readonly #mapColour: (colour: Colour) => Colour
  readonly #isUtf8: boolean
  #out = ''
  // The terminal's pen; -1: unknown.
  #column = -1
  #row = -1
  #foreground = -1
  #background = -1
  #attributes = -1
  /** How many cells after the one just written a terminal may have drawn over. */
  #spill = 0

  /** Without `isUtf8` the terminal gets only ASCII. */
  constructor(mapColour: (colour: Colour) => Colour, isUtf8: boolean) {
    this.#mapColour = mapColour
    this.#isUtf8 = isUtf8
  }

  /** Characters so far. */
  get length(): number {
    return this.#out.length
  }

  begin(): void {
    this.#out = ''
    this.#losePlace()
    this.#foreground = -1
    this.#background = -1
    this.#attributes = -1
  }

  finish(): Buffer {
    return Buffer.from(this.#out)
  }

  ascii(text: string): void {
    this.#out += text
  }

  moveTo(column: number, row: number): void {
    if (row === this.#row && column === this.#column) return
    const ahead = column - this.#column
    if (row !== this.#row) this.#out += `\x1b[${row + 1};${column + 1}H`
    else if (this.#column >= 0 && ahead > 0 && ahead < 10) this.#out += ahead > 1 ? `\x1b[${ahead}C` : '\x1b[C'
    else this.#out += `\x1b[${column + 1}G`
    this.#row = row
    this.#column = column
  }

  /** Terminals disagree about what was just written: the next cell sets its own position. */
  #losePlace(): void {
    this.#column = -1
    this.#row = -1
  }

  eraseRows(columns: number, rows: number): void {
    for (let row = 0; row < rows; row++) {
      this.moveTo(0, row)
      this.#erase(columns)
    }
  }

  /** Writes the cells that differ inside the rectangle and makes `front` equal to `back` there. Returns their number. */
  difference(front: CellGrid, back: CellGrid, rect: Rect): number {
    const right = Math.min(back.columns, rect.column + rect.width)
    const bottom = Math.min(back.rows, rect.row + rect.height)
    const left = Math.max(0, rect.column)
    let written = 0
    for (let row = Math.max(0, rect.row); row < bottom; row++)
      written += this.#differenceOfRow(front.words, back.words, row, left, right, back.columns)
    return written
  }

  #differenceOfRow(
    front: Uint32Array,
    back: Uint32Array,
    row: number,
    left: number,
    right: number,
    columns: number,
  ): number {
    const rowStart = row * columns
    let written = 0
    let column = left
    let end = right
    // Cells before this one are written even if they seem unchanged.
    let spoiled = 0
    while (column < end) {
      let at = (rowStart + column) * WORDS_PER_CELL
      if (column >= spoiled && isEqual(front, back, at)) {
        column++
        continue
      }
      // The right half of a wide character is written with its left half; without a left half it is a blank.
      if (back[at] === WIDE_TAIL && column > 0 && cellWidth(back[at - WORDS_PER_CELL] ?? 0) === 2) {
        column--
        at -= WORDS_PER_CELL
      }
      // A short gap on the same row is written again, if that needs no other pen and cuts no wide character.
      if (row === this.#row && column > this.#column && column - this.#column <= GAP && this.#column >= 0) {
        for (let gap = this.#column; gap < column; gap++) {
          const cell = (rowStart + gap) * WORDS_PER_CELL
          if (!this.#isPlain(back, cell)) break
          this.#cell(back, cell)
        }
      }
      this.moveTo(column, row)
      const blanks = changedBlanks(front, back, at, end - column)
      if (blanks >= ERASED) {
        this.#erase(blanks)
        front.set(back.subarray(at, at + blanks * WORDS_PER_CELL), at)
        written += blanks
        column += blanks
        continue
      }
      this.#spill = 0
      const width = this.#cell(back, at)
      written++
      for (let words = 0; words < width * WORDS_PER_CELL; words++) front[at + words] = back[at + words] ?? 0
      column += width
      if (this.#spill > 0) {
        this.#restore(front, back, row, columns, column - width - 1)
        spoiled = Math.min(columns, column + this.#spill)
        end = Math.max(end, spoiled)
      }
    }
    return written
  }

  /** A terminal that does not know a character, but knows the marks after it, puts them into the cell before, which may be another host's. */
  #restore(front: Uint32Array, back: Uint32Array, row: number, columns: number, last: number): void {
    if (last < 0) return
    const isTail = back[(row * columns + last) * WORDS_PER_CELL] === WIDE_TAIL
    const column = isTail ? Math.max(0, last - 1) : last
    const at = (row * columns + column) * WORDS_PER_CELL
    // What has changed is written anyway.
    if (isDisputable(back[at] ?? 0) || !isEqual(front, back, at)) return
    this.moveTo(column, row)
    this.#cell(back, at)
  }

  /** The cursor stays where it is. */
  #erase(count: number): void {
    this.#pen(COLOUR_DEFAULT, COLOUR_DEFAULT, 0)
    this.#out += `\x1b[${count}X`
  }

  /** A narrow character in the current pen. */
  #isPlain(words: Uint32Array, at: number): boolean {
    const word = words[at] ?? 0
    return (
      !isDisputable(word) &&
      cellWidth(word) === 1 &&
      this.#mapColour(words[at + 1] ?? 0) === this.#foreground &&
      this.#mapColour(words[at + 2] ?? 0) === this.#background &&
      words[at + 3] === this.#attributes
    )
  }

  /** Writes one cell at the pen and returns its width. */
  #cell(words: Uint32Array, at: number): number {
    this.#pen(this.#mapColour(words[at + 1] ?? 0), this.#mapColour(words[at + 2] ?? 0), words[at + 3] ?? 0)
    const word = words[at] ?? 0
    const width = cellWidth(word) === 2 ? 2 : 1
    const isCluster = (word & CLUSTER_BIT) !== 0
    // Terminals disagree whether a soft hyphen is visible; here it has a cell, so it is.
    const own = word & CODE_MASK
    const code = own === SOFT_HYPHEN && !isCluster ? HYPHEN : own
    if (!this.#isUtf8) {
      const byte = asciiLike(isCluster ? clusterText(code) : String.fromCodePoint(code)).charCodeAt(0)
      this.#out += String.fromCharCode(byte >= 0x20 && byte < 0x7f ? byte : 0x20).padEnd(width)
      this.#column += width
    } else if (isDisputable(word)) this.#disputable(isCluster ? clusterText(code) : String.fromCodePoint(code), width)
    else {
      this.#out += code !== 0 && isPrintableCode(code) ? String.fromCodePoint(code) : BLANKS[width]
      this.#column += width
    }
    return width
  }

  /** Writes a character or cluster whose width terminals may disagree about. */
  #disputable(whole: string, width: 1 | 2): void {
    const text = whole.replace(JOINS_NEXT, '').replace(JOINS_UNKNOWN, '')
    const column = this.#column
    const row = this.#row
    const isDisputed = width === 2 || !AGREED.test(text) || hasDisputedWidth(text.codePointAt(0) ?? 0, width)
    // A terminal that takes it for a narrower character would keep what the cell showed before.
    if (isDisputed || !isSafe(text)) {
      this.#out += BLANKS[width]
      this.#column += width
    }
    if (isSafe(text)) {
      // Each part may have two columns.
      this.#spill = isDisputed ? Math.max(SPILL, 2 * text.length) : 0
      this.moveTo(column, row)
      this.#out += text
    }
    this.#losePlace()
  }

  #pen(foreground: Colour, background: Colour, attributes: number): void {
    if (foreground === this.#foreground && background === this.#background && attributes === this.#attributes) return
    const isReset = attributes !== this.#attributes
    let codes = isReset ? ';0' : ''
    if (isReset) for (const [bit, code] of SGR_CODES) if ((attributes & bit) !== 0) codes += `;${code}`
    if (foreground !== (isReset ? COLOUR_DEFAULT : this.#foreground)) codes += colourCodes(foreground, 30)
    if (background !== (isReset ? COLOUR_DEFAULT : this.#background)) codes += colourCodes(background, 40)
    this.#out += `\x1b[${codes.slice(1)}m`
    this.#foreground = foreground
    this.#background = background
    this.#attributes = attributes
  }
}

function colourCodes(colour: Colour, base: 30 | 40): string {
  const mode = colour >>> COLOUR_MODE_SHIFT
  const index = colour & 0xff
  if (mode === COLOUR_DEFAULT) return `;${base + 9}`
  if (mode !== COLOUR_PALETTE) return `;${base + 8};2;${(colour >>> 16) & 0xff};${(colour >>> 8) & 0xff};${index}`
  if (index < 16) return `;${index < 8 ? base + index : base + 52 + index}`
  return `;${base + 8};5;${index}`
}

/** Whether terminals may disagree about the width of a cell with this word 0. */
const isDisputable = (word: number): boolean =>
  (word & CLUSTER_BIT) !== 0 || hasDisputedWidth(word & CODE_MASK, cellWidth(word) === 2 ? 2 : 1)

function isEqual(front: Uint32Array, back: Uint32Array, at: number): boolean {
  return (
    back[at] === front[at] &&
    back[at + 1] === front[at + 1] &&
    back[at + 2] === front[at + 2] &&
    back[at + 3] === front[at + 3]
  )
}

/** The number of empty cells in default colours, at most `limit`, up to the last one that changed. */
function changedBlanks(front: Uint32Array, back: Uint32Array, start: number, limit: number): number {
  let changed = 0
  for (let count = 0; count < limit; count++) {
    const at = start + count * WORDS_PER_CELL
    if (back[at] !== BLANK || back[at + 1] !== 0 || back[at + 2] !== 0 || back[at + 3] !== 0) break
    if (!isEqual(front, back, at)) changed = count + 1
  }
  return changed
}

/** Characters that act on a terminal, move its cursor or change the direction of its text. */
const ACTING = /[\p{Cc}\p{Cs}\p{Zl}\p{Zp}\u200e\u200f\u202a-\u202e\u2066-\u2069]/u
/** One character with marks that take no column on any terminal. */
const AGREED = /^\P{Cf}[\p{Mn}\p{Me}]*$/u
const isSafe = (text: string): boolean => text !== '' && !ACTING.test(text)
