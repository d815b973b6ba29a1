/** `941 Mbit/s`, `9.4 Gbit/s`: three digits that count, powers of 1000. */
export function formatBitRate(bitsPerSecond: number): string {
  const [value, unit] = scaled(bitsPerSecond, ['bit/s', 'kbit/s', 'Mbit/s', 'Gbit/s', 'Tbit/s'])
  return `${value} ${unit}`
}

/** `941M`: at most five columns. */
export function shortBitRate(bitsPerSecond: number): string {
  return scaled(bitsPerSecond, ['', 'k', 'M', 'G', 'T']).join('')
}

function scaled(value: number, units: readonly string[]): [string, string] {
  let power = 0
  let rest = value
  for (; rest >= 999.5 && power < units.length - 1; power += 1) rest /= 1000
  const digits = rest >= 99.95 || power === 0 ? 0 : rest >= 9.995 ? 1 : 2
  return [String(Number(rest.toFixed(digits))), units[power] ?? '']
}
