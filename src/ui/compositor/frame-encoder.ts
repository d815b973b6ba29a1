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
import { clusterText, isPrintableCode } from '../../terminal/clusters.ts'
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
/** Terminals that do not join a cluster show its parts side by side, over up to this many cells after it. */
const SPILL = 8
/** The most bytes that one cell can need: a move, a full SGR, the longest cluster. */
const ROOM_PER_CELL = 256

const SOFT_HYPHEN = 0xad

export class FrameEncoder {
  readonly #mapColour: (colour: Colour) => Colour
  readonly #isUtf8: boolean
  #out: Buffer = Buffer.allocUnsafe(64 * 1024)
  #length = 0
  // The terminal's pen; -1: unknown.
  #column = -1
  #row = -1
  #foreground = -1
  #background = -1
  #attributes = -1

  /** Without `isUtf8` the terminal gets only ASCII. */
  constructor(mapColour: (colour: Colour) => Colour, isUtf8: boolean) {
    this.#mapColour = mapColour
    this.#isUtf8 = isUtf8
  }

  /** Bytes so far. */
  get length(): number {
    return this.#length
  }

  begin(): void {
    this.#length = 0
    this.#column = -1
    this.#row = -1
    this.#foreground = -1
    this.#background = -1
    this.#attributes = -1
  }

  /** A copy, since the buffer is reused. */
  finish(): Buffer {
    return Buffer.from(this.#out.subarray(0, this.#length))
  }

  ascii(text: string): void {
    this.#reserve(text.length)
    this.#length += this.#out.write(text, this.#length, 'latin1')
  }

  moveTo(column: number, row: number): void {
    this.#reserve(32)
    if (row === this.#row && column === this.#column) return
    this.#byte(0x1b)
    this.#byte(0x5b)
    const ahead = column - this.#column
    if (row === this.#row && this.#column >= 0 && ahead > 0 && ahead < 10) {
      if (ahead > 1) this.#number(ahead)
      this.#byte(0x43)
    } else if (row === this.#row) {
      this.#number(column + 1)
      this.#byte(0x47)
    } else {
      this.#number(row + 1)
      this.#byte(0x3b)
      this.#number(column + 1)
      this.#byte(0x48)
    }
    this.#row = row
    this.#column = column
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
      const width = this.#cell(back, at)
      written++
      for (let words = 0; words < width * WORDS_PER_CELL; words++) front[at + words] = back[at + words] ?? 0
      column += width
      if (width === 2 && ((back[at] ?? 0) & CLUSTER_BIT) !== 0) {
        spoiled = Math.min(columns, column + SPILL)
        end = Math.max(end, spoiled)
      }
    }
    return written
  }

  /** The cursor stays where it is. */
  #erase(count: number): void {
    this.#reserve(ROOM_PER_CELL)
    this.#pen(COLOUR_DEFAULT, COLOUR_DEFAULT, 0)
    this.#byte(0x1b)
    this.#byte(0x5b)
    this.#number(count)
    this.#byte(0x58)
  }

  /** A narrow character in the current pen. */
  #isPlain(words: Uint32Array, at: number): boolean {
    const word = words[at] ?? 0
    return (
      (word & CLUSTER_BIT) === 0 &&
      cellWidth(word) === 1 &&
      this.#mapColour(words[at + 1] ?? 0) === this.#foreground &&
      this.#mapColour(words[at + 2] ?? 0) === this.#background &&
      words[at + 3] === this.#attributes
    )
  }

  /** Writes one cell at the pen and returns its width. */
  #cell(words: Uint32Array, at: number): number {
    this.#reserve(ROOM_PER_CELL)
    this.#pen(this.#mapColour(words[at + 1] ?? 0), this.#mapColour(words[at + 2] ?? 0), words[at + 3] ?? 0)
    const word = words[at] ?? 0
    const width = cellWidth(word) === 2 ? 2 : 1
    if (!this.#isUtf8) {
      this.#asciiCell(word, width)
      return width
    }
    if (word & CLUSTER_BIT) {
      this.#cluster(clusterText(word & CODE_MASK), width)
      return width
    }
    const code = word & CODE_MASK
    if (code >= 0x20 && code < 0x7f) this.#byte(code)
    // Terminals disagree whether a soft hyphen is visible; here it has a cell, so it is.
    else if (code === SOFT_HYPHEN) this.#byte(0x2d)
    else if (code !== 0 && isPrintableCode(code)) this.#codePoint(code)
    else this.#blanks(width)
    if (code > 0xffff) {
      this.#column = -1
      this.#row = -1
    } else this.#column += width
    return width
  }

  #asciiCell(word: number, width: 1 | 2): void {
    const code = word & CODE_MASK
    const text = word & CLUSTER_BIT ? clusterText(code) : String.fromCodePoint(code === SOFT_HYPHEN ? 0x2d : code)
    const byte = asciiLike(text).charCodeAt(0)
    this.#byte(byte >= 0x20 && byte < 0x7f ? byte : 0x20)
    this.#blanks(width - 1)
    this.#column += width
  }

  #cluster(text: string, width: 1 | 2): void {
    const column = this.#column
    const row = this.#row
    // A terminal that takes it for a narrow character would keep the old right half.
    if (width === 2 || !isSafe(text)) this.#blanks(width)
    if (isSafe(text)) {
      this.#column += width
      this.moveTo(column, row)
      this.#length += this.#out.write(text, this.#length, 'utf8')
    }
    // Terminals differ in its width: the next cell sets its own position.
    this.#column = -1
    this.#row = -1
  }

  #blanks(width: number): void {
    for (let count = 0; count < width; count++) this.#byte(0x20)
  }

  #pen(foreground: Colour, background: Colour, attributes: number): void {
    if (foreground === this.#foreground && background === this.#background && attributes === this.#attributes) return
    const isReset = attributes !== this.#attributes
    this.#byte(0x1b)
    this.#byte(0x5b)
    if (isReset) {
      this.#byte(0x30)
      if (attributes !== 0) {
        for (const [bit, code] of SGR_CODES) {
          if ((attributes & bit) === 0) continue
          this.#byte(0x3b)
          this.#number(code)
        }
      }
      if (foreground !== COLOUR_DEFAULT) this.#colour(foreground, 30, true)
      if (background !== COLOUR_DEFAULT) this.#colour(background, 40, true)
    } else {
      const isOther = foreground !== this.#foreground
      if (isOther) this.#colour(foreground, 30, false)
      if (background !== this.#background) this.#colour(background, 40, isOther)
    }
    this.#byte(0x6d)
    this.#foreground = foreground
    this.#background = background
    this.#attributes = attributes
  }

  #colour(colour: Colour, base: 30 | 40, isFurther: boolean): void {
    if (isFurther) this.#byte(0x3b)
    const mode = colour >>> COLOUR_MODE_SHIFT
    if (mode === COLOUR_DEFAULT) this.#number(base + 9)
    else if (mode === COLOUR_PALETTE) {
      const index = colour & 0xff
      if (index < 8) this.#number(base + index)
      else if (index < 16) this.#number(base + 60 + index - 8)
      else {
        this.#number(base + 8)
        this.ascii(';5;')
        this.#number(index)
      }
    } else {
      this.#number(base + 8)
      this.ascii(';2;')
      this.#number((colour >>> 16) & 0xff)
      this.#byte(0x3b)
      this.#number((colour >>> 8) & 0xff)
      this.#byte(0x3b)
      this.#number(colour & 0xff)
    }
  }

  #codePoint(code: number): void {
    if (code < 0x80) this.#byte(code)
    else if (code < 0x800) {
      this.#byte(0xc0 | (code >> 6))
      this.#byte(0x80 | (code & 0x3f))
    } else if (code < 0x10000) {
      this.#byte(0xe0 | (code >> 12))
      this.#byte(0x80 | ((code >> 6) & 0x3f))
      this.#byte(0x80 | (code & 0x3f))
    } else {
      this.#byte(0xf0 | (code >> 18))
      this.#byte(0x80 | ((code >> 12) & 0x3f))
      this.#byte(0x80 | ((code >> 6) & 0x3f))
      this.#byte(0x80 | (code & 0x3f))
    }
  }

  #number(value: number): void {
    if (value >= 1000) this.#byte(0x30 + (Math.floor(value / 1000) % 10))
    if (value >= 100) this.#byte(0x30 + (Math.floor(value / 100) % 10))
    if (value >= 10) this.#byte(0x30 + (Math.floor(value / 10) % 10))
    this.#byte(0x30 + (value % 10))
  }

  #byte(byte: number): void {
    this.#out[this.#length++] = byte
  }

  #reserve(bytes: number): void {
    if (this.#length + bytes <= this.#out.length) return
    const larger = Buffer.allocUnsafe(Math.max(this.#out.length * 2, this.#length + bytes))
    this.#out.copy(larger, 0, 0, this.#length)
    this.#out = larger
  }
}

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
const isSafe = (text: string): boolean => text !== '' && !ACTING.test(text)
