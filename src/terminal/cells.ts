/**
 * Cells: what a screen is made of, in a form that can be compared and copied as numbers. Four words a cell:
 *
 *   word 0  bits 0–20 the code point, or with bit 31 an index into the shared table of clusters (clusters.ts); 0 is
 *           blank, and so is a space: U+0020 never occurs
 *           bits 24–25 the width (1, 2; 0: right half of a wide character, the whole word is then 0 = `WIDE_TAIL`)
 *   word 1  foreground: bits 24–25 mode (0 default, 1 palette of 256, 2 RGB), bits 0–23 value
 *   word 2  background: the same form
 *   word 3  attributes: the bits below; underline style in bits 8–10 and underline colour are dropped to plain underline
 *
 * Words are normalised: equal looks are equal numbers. So an empty cell of the default colours is `BLANK, 0, 0, 0`, a
 * wide character is always followed by a `WIDE_TAIL` with its colours and attributes, and a tail stands nowhere else.
 */

export const WORDS_PER_CELL = 4

export const CLUSTER_BIT = 0x8000_0000
export const CODE_MASK = 0x001f_ffff
export const WIDTH_SHIFT = 24
const WIDTH_MASK = 0x3

/** How many columns the character of a cell takes, by its word 0. */
export const cellWidth = (word: number): number => (word >>> WIDTH_SHIFT) & WIDTH_MASK

/** Word 0 of an empty cell: no code point, width 1. */
export const BLANK = 1 << WIDTH_SHIFT
/** Word 0 of the right half of a wide character. */
export const WIDE_TAIL = 0

export const COLOUR_DEFAULT = 0
export const COLOUR_PALETTE = 1
export const COLOUR_RGB = 2
export const COLOUR_MODE_SHIFT = 24

export const BOLD = 1
export const DIM = 2
export const ITALIC = 4
export const UNDERLINE = 8
export const BLINK = 16
export const INVERSE = 32
export const INVISIBLE = 64
export const STRIKETHROUGH = 128
export const OVERLINE = 256

export type Colour = number

export const paletteColour = (index: number): Colour => ((COLOUR_PALETTE << COLOUR_MODE_SHIFT) | (index & 0xff)) >>> 0
export const rgbColour = (rgb: number): Colour => ((COLOUR_RGB << COLOUR_MODE_SHIFT) | (rgb & 0xffffff)) >>> 0

export type CellGrid = {
  readonly columns: number
  readonly rows: number
  readonly words: Uint32Array
}

export function createCellGrid(columns: number, rows: number): CellGrid {
  const words = new Uint32Array(columns * rows * WORDS_PER_CELL)
  for (let index = 0; index < words.length; index += WORDS_PER_CELL) words[index] = BLANK
  return { columns, rows, words }
}
