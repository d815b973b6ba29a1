/** Maps colours for terminals that have fewer of them than the cells. */
import {
  COLOUR_DEFAULT,
  COLOUR_MODE_SHIFT,
  COLOUR_PALETTE,
  COLOUR_RGB,
  type Colour,
  paletteColour,
} from '../../terminal/cells.ts'

export type ColourDepth = 'truecolor' | '256' | '16' | 'none'

/** xterm's default palette, the first sixteen. */
const BASIC = [
  0x000000, 0xcd0000, 0x00cd00, 0xcdcd00, 0x0000ee, 0xcd00cd, 0x00cdcd, 0xe5e5e5, 0x7f7f7f, 0xff0000, 0x00ff00,
  0xffff00, 0x5c5cff, 0xff00ff, 0x00ffff, 0xffffff,
]
const LEVELS = [0, 95, 135, 175, 215, 255]

function rgbOfPalette(index: number): number {
  if (index < 16) return BASIC[index] ?? 0
  if (index >= 232) {
    const grey = 8 + (index - 232) * 10
    return (grey << 16) | (grey << 8) | grey
  }
  const cube = index - 16
  const level = (at: number): number => LEVELS[at % 6] ?? 0
  return (level(Math.floor(cube / 36)) << 16) | (level(Math.floor(cube / 6)) << 8) | level(cube)
}

function distance(a: number, b: number): number {
  const red = (a >> 16) - (b >> 16)
  const green = ((a >> 8) & 255) - ((b >> 8) & 255)
  const blue = (a & 255) - (b & 255)
  // The eye sees green best, blue least.
  return 2 * red * red + 4 * green * green + 3 * blue * blue
}

function nearest(rgb: number, from: number, to: number): number {
  let best = from
  let bestDistance = Number.POSITIVE_INFINITY
  for (let index = from; index < to; index++) {
    const next = distance(rgb, rgbOfPalette(index))
    if (next < bestDistance) {
      best = index
      bestDistance = next
    }
  }
  return best
}

/** Caches its results: screens use few colours many times. */
export function createColourMap(depth: ColourDepth): (colour: Colour) => Colour {
  if (depth === 'truecolor') return (colour) => colour
  if (depth === 'none') return () => COLOUR_DEFAULT
  const known = new Map<Colour, Colour>()
  const convert = (colour: Colour): Colour => {
    const mode = colour >>> COLOUR_MODE_SHIFT
    if (mode === COLOUR_DEFAULT) return colour
    if (mode === COLOUR_PALETTE && (depth === '256' || (colour & 255) < 16)) return colour
    const rgb = mode === COLOUR_RGB ? colour & 0xffffff : rgbOfPalette(colour & 255)
    return paletteColour(depth === '256' ? nearest(rgb, 16, 256) : nearest(rgb, 0, 16))
  }
  return (colour) => {
    const found = known.get(colour)
    if (found !== undefined) return found
    if (known.size > 4096) known.clear()
    const converted = convert(colour)
    known.set(colour, converted)
    return converted
  }
}
