/** Numbers of a table in few columns. */

/** `0`, `834k`, `1.2M`: bytes or bits, powers of 1000, at most five columns. */
export function shortAmount(value: number): string {
  if (value < 1) return '0'
  const units = ['', 'k', 'M', 'G', 'T']
  let power = 0
  let rest = value
  for (; rest >= 999.5 && power < units.length - 1; power += 1) rest /= 1000
  return `${rest < 9.95 && power > 0 ? rest.toFixed(1) : Math.round(rest)}${units[power]}`
}

export const percentOf = (part: number): string => `${Math.round(part * 100)}%`

const BARS = '▁▂▃▄▅▆▇█'

/** The last values, each column the mean of `step`; `most` is a whole bar. What is not known is a blank. */
export function sparkline(
  values: readonly (number | undefined)[],
  columns: number,
  step: number,
  most: number,
): string {
  const bars: string[] = []
  for (let end = values.length; bars.length < columns; end -= step) {
    const part = values.slice(Math.max(0, end - step), Math.max(0, end))
    if (part.length === 0) break
    const known = part.filter((value) => value !== undefined)
    const mean = known.reduce((sum, value) => sum + value, 0) / known.length
    bars.unshift(BARS[Math.max(0, Math.min(7, Math.round((mean / (most || 1)) * 7)))] ?? ' ')
  }
  return bars.join('').padStart(columns)
}
