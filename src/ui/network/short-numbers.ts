/** Numbers for tables with narrow columns. Pure. */

/** `0`, `834k`, `1.2M`: bytes or bits in powers of 1000, at most five columns. */
export function shortAmount(value: number): string {
  if (value < 1) return '0'
  const units = ['', 'k', 'M', 'G', 'T']
  let power = 0
  let rest = value
  for (; rest >= 999.5 && power < units.length - 1; power += 1) rest /= 1000
  return `${rest < 9.95 && power > 0 ? rest.toFixed(1) : Math.round(rest)}${units[power]}`
}

export const percentOf = (part: number): string => `${Math.round(part * 100)}%`
