/** Ranges of decimal numbers, counted in whole units of the smallest decimal that is written: 0.1 + 0.2 is 0.3. */

export type DecimalRange = {
  /** In units of 10^-digits, as is `step`. */
  readonly first: bigint
  readonly step: bigint
  readonly count: number
  readonly digits: number
}

const PLAIN = /^-?\d{1,15}(\.\d{1,15})?$/

export const isPlainDecimal = (text: string): boolean => PLAIN.test(text)

/** From the first number to the last one if the steps reach it. Otherwise what is wrong. */
export function decimalRange(
  [from, to, step]: readonly [string, string, string],
  mostValues: number,
): DecimalRange | 'not plain' | 'no step' | 'too many' {
  const texts = [from, to, step]
  if (!texts.every(isPlainDecimal)) return 'not plain'
  const digits = Math.max(...texts.map((text) => text.split('.')[1]?.length ?? 0))
  const [first = 0n, last = 0n, by = 0n] = texts.map((text) => toUnits(text, digits))
  if (by <= 0n || last < first) return 'no step'
  const count = (last - first) / by + 1n
  return count > BigInt(mostValues) ? 'too many' : { first, step: by, count: Number(count), digits }
}

/** With all its digits: `0.0`, `0.1`. */
export function decimalAt({ first, step, digits }: DecimalRange, index: number): string {
  const value = first + step * BigInt(index)
  const text = String(value < 0n ? -value : value).padStart(digits + 1, '0')
  const plain = digits === 0 ? text : `${text.slice(0, -digits)}.${text.slice(-digits)}`
  return value < 0n ? `-${plain}` : plain
}

function toUnits(text: string, digits: number): bigint {
  const [whole = '', fraction = ''] = text.replace('-', '').split('.')
  const units = BigInt(whole + fraction.padEnd(digits, '0'))
  return text.startsWith('-') ? -units : units
}
