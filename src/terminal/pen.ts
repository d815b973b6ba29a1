/** The pen of a terminal, as far as it decides whether somebody can see what is printed with it. Pure. */
import {
  COLOUR_DEFAULT,
  COLOUR_MODE_SHIFT,
  COLOUR_PALETTE,
  type Colour,
  DIM,
  INVISIBLE,
  paletteColour,
  rgbColour,
} from './cells.ts'

/** Colours as in cells.ts. Inverse video changes nothing here: it only swaps the two. */
export type Pen = {
  readonly foreground: Colour
  readonly background: Colour
  readonly isConcealed: boolean
  readonly isDim: boolean
}

/** What the user's terminal has behind its text; undefined: not known. */
export type Backdrop = 'dark' | 'light' | undefined

export const PLAIN_PEN: Pen = {
  foreground: COLOUR_DEFAULT,
  background: COLOUR_DEFAULT,
  isConcealed: false,
  isDim: false,
}

/**
 * The contrast that text needs to be seen: the ratio of luminances by WCAG, 1 to 21. Below 1.5, text is a shade that has to be
 * searched for. WCAG asks for 3 to read it well, but colours of usual prompts, such as blue on black (2.2), have less.
 */
const LEAST_CONTRAST = 1.5
/** The terminal's own colours are only known as dark and light: red, green or blue must differ by more, of 255. */
const NEAR_DEFAULT = 64

/** Parameters of `CSI … m`; others, with a prefix, change nothing. */
const SGR = /^[\d;:]*$/

/** The pen after `CSI parameters m`. */
export function changedPen(pen: Pen, parameters: string): Pen {
  if (!SGR.test(parameters)) return pen
  let changed = pen
  const codes = parameters.split(';')
  for (let at = 0; at < codes.length; at++) {
    const [code = 0, ...parts] = numbersOf(codes[at] ?? '', ':')
    if (code === 38 || code === 48 || code === 58) {
      const isApart = parts.length === 0
      const [mode, ...values] = isApart ? codes.slice(at + 1, at + 5).map(Number) : parts
      if (isApart) at += mode === 2 ? 4 : mode === 5 ? 2 : 1
      // With colons, the number of a colour space may stand before red, green and blue.
      const colour = colourOf(mode, isApart ? values : values.slice(mode === 2 ? -3 : 0))
      if (colour !== undefined && code !== 58) changed = withColour(changed, code === 38, colour)
    } else changed = withCode(changed, code)
  }
  return changed
}

function withCode(pen: Pen, code: number): Pen {
  if (code === 0) return PLAIN_PEN
  if (code === 8 || code === 28) return { ...pen, isConcealed: code === 8 }
  if (code === 2) return { ...pen, isDim: true }
  if (code === 22) return { ...pen, isDim: false }
  if (code === 39 || code === 49) return withColour(pen, code === 39, COLOUR_DEFAULT)
  const isBright = code >= 90 && code <= 107
  const index = (isBright ? code - 90 : code - 30) % 10
  const isForeground = isBright ? code < 100 : code < 40
  if (index > 7 || !(isBright || (code >= 30 && code <= 47))) return pen
  return withColour(pen, isForeground, paletteColour(isBright ? index + 8 : index))
}

const withColour = (pen: Pen, isForeground: boolean, colour: Colour): Pen =>
  isForeground ? { ...pen, foreground: colour } : { ...pen, background: colour }

function colourOf(mode: number | undefined, [first = 0, second = 0, third = 0]: readonly number[]): Colour | undefined {
  if (mode === 5) return paletteColour(first)
  return mode === 2 ? rgbColour(((first & 255) << 16) | ((second & 255) << 8) | (third & 255)) : undefined
}

const numbersOf = (text: string, separator: string): number[] => text.split(separator).map(Number)

/** Whether somebody can see what is printed so: it is not concealed, and its contrast to its background is large enough. */
export function isSeen({ foreground, background, isConcealed, isDim }: Pen, backdrop: Backdrop): boolean {
  if (isConcealed) return false
  if (foreground === background) return foreground === COLOUR_DEFAULT
  const hasDefault = foreground === COLOUR_DEFAULT || background === COLOUR_DEFAULT
  if (hasDefault && backdrop === undefined) return true
  const behind = shown(background, backdrop === 'light')
  // Terminals dim text by about a half.
  const text = shown(foreground, backdrop === 'dark').map((value, index) =>
    isDim ? (value + (behind[index] ?? 0)) / 2 : value,
  )
  const near = isDim ? NEAR_DEFAULT / 2 : NEAR_DEFAULT
  if (hasDefault && text.every((value, index) => Math.abs(value - (behind[index] ?? 0)) <= near)) return false
  // The palette of a light terminal has darker colours than these.
  if (hasDefault && (isOfFirst(foreground) || isOfFirst(background))) return true
  const [darker = 0, lighter = 0] = [luminance(text), luminance(behind)].sort((a, b) => a - b)
  return (lighter + 0.05) / (darker + 0.05) >= LEAST_CONTRAST
}

/** WCAG's relative luminance, 0 to 1. */
function luminance(rgb: readonly number[]): number {
  const [red = 0, green = 0, blue = 0] = rgb.map((value) => {
    const part = value / 255
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4
  })
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue
}

const isOfFirst = (colour: Colour): boolean =>
  colour >>> COLOUR_MODE_SHIFT === COLOUR_PALETTE && (colour & 0xffffff) < FIRST_COLOURS.length

/** A cell of a screen, by its words. */
export const isSeenCell = (words: Uint32Array, at: number, backdrop: Backdrop): boolean =>
  isSeen(
    {
      foreground: words[at + 1] ?? COLOUR_DEFAULT,
      background: words[at + 2] ?? COLOUR_DEFAULT,
      isConcealed: ((words[at + 3] ?? 0) & INVISIBLE) !== 0,
      isDim: ((words[at + 3] ?? 0) & DIM) !== 0,
    },
    backdrop,
  )

/** The first 16 colours, as xterm has them. */
const FIRST_COLOURS = [
  0x000000, 0xcd0000, 0x00cd00, 0xcdcd00, 0x0000ee, 0xcd00cd, 0x00cdcd, 0xe5e5e5, 0x7f7f7f, 0xff0000, 0x00ff00,
  0xffff00, 0x5c5cff, 0xff00ff, 0x00ffff, 0xffffff,
]
const CUBE_LEVELS = [0, 95, 135, 175, 215, 255]

/** Red, green and blue, 0 to 255. `isLight`: of the terminal's own colour. */
function shown(colour: Colour, isLight: boolean): readonly number[] {
  if (colour === COLOUR_DEFAULT) return isLight ? [255, 255, 255] : [0, 0, 0]
  const value = colour & 0xffffff
  if (colour >>> COLOUR_MODE_SHIFT !== COLOUR_PALETTE) return bytesOf(value)
  if (value < 16) return bytesOf(FIRST_COLOURS[value] ?? 0)
  if (value >= 232) return Array<number>(3).fill((value - 232) * 10 + 8)
  return [36, 6, 1].map((step) => CUBE_LEVELS[Math.floor((value - 16) / step) % 6] ?? 0)
}

const bytesOf = (rgb: number): readonly number[] => [rgb >>> 16, (rgb >>> 8) & 255, rgb & 255]
