/** Small pictures made of block characters. */

const LEVELS = ' ▁▂▃▄▅▆▇█'

/** One character a value, from `lowest` (blank) to `highest` (full). */
export function formatCurve(values: readonly (number | undefined)[], lowest: number, highest: number): string {
  return values
    .map((value) => {
      if (value === undefined) return ' '
      const part = Math.min(1, Math.max(0, (value - lowest) / (highest - lowest)))
      return LEVELS[Math.round(part * (LEVELS.length - 1))] ?? ' '
    })
    .join('')
}

/** A bar of `width` cells in which each part has its own character; the parts add up to no more than 1. */
export function formatBar(parts: readonly (readonly [number, string])[], width: number): string {
  let bar = ''
  let sum = 0
  for (const [part, character] of parts) {
    sum += part
    bar += character.repeat(Math.max(0, Math.round(sum * width) - bar.length))
  }
  return bar.padEnd(width, '·')
}
