/** The order in which people list machines: m2 before m10, n1 before n01. */

const DIGITS = /(\d+)/

function compareText(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}

function compareNumbers(a: string, b: string): number {
  const left = a.startsWith('0') ? a.replace(/^0+(?=\d)/, '') : a
  const right = b.startsWith('0') ? b.replace(/^0+(?=\d)/, '') : b
  return left.length - right.length || compareText(left, right)
}

/** Texts and numbers of a name in turn, to compare many names without taking each apart again. */
export function naturalKey(name: string): readonly string[] {
  return name.split(DIGITS)
}

export function compareNaturalKeys(left: readonly string[], right: readonly string[]): number {
  const shared = Math.min(left.length, right.length)
  let padding = 0
  for (let i = 0; i < shared; i += 1) {
    const x = left[i] ?? ''
    const y = right[i] ?? ''
    const order = i % 2 === 1 ? compareNumbers(x, y) : compareText(x, y)
    if (order !== 0) return order
    padding ||= x.length - y.length
  }
  return left.length - right.length || padding
}
