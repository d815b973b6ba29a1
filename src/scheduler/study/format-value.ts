/** Numbers of metrics and parameters for people: four significant digits, no trailing zeros. Pure. */
const DIGITS = 4

/** `0.91`, `1234`, `1.5e-7`, `∞`, `not a number`. */
export function formatValue(value: number): string {
  if (Number.isNaN(value)) return 'not a number'
  if (!Number.isFinite(value)) return value > 0 ? '∞' : '-∞'
  const size = Math.abs(value)
  if (Number.isInteger(value) && size < 1e6) return String(value)
  if (size >= 1e6 || size < 1e-4)
    return value
      .toExponential(DIGITS - 1)
      .replace(/\.?0+e/, 'e')
      .replace('e+', 'e')
  return size >= 1000 ? value.toFixed(0) : String(Number(value.toPrecision(DIGITS)))
}
