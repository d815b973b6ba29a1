/** Metrics that a job declares: numbers in lines of its stdout such as `loss=0.12`, of which the last one counts. */

export type Metric = {
  readonly name: string
  /** For `sed -E`; its first group is the number. Undefined: `NAME=NUMBER` or `NAME: NUMBER`. */
  readonly pattern?: string
  /** Larger is better; else smaller. */
  readonly isMost?: boolean
}

/** By name, as printed. */
export type MetricValues = Readonly<Record<string, string>>

const MOST_PATTERN = 200
const NAME = /^[A-Za-z_][A-Za-z0-9_./-]{0,39}$/
/** `loss`, `max:accuracy`, `loss=test loss ([0-9.]+)`. Returns what is wrong as a string. */
export function parseMetric(text: string): Metric | string {
  const [, best, name = '', pattern] = /^(?:(min|max):)?([^=]*)(?:=(.*))?$/s.exec(text) ?? []
  if (!NAME.test(name)) return 'write it as loss, max:accuracy, or loss=PATTERN'
  if (pattern !== undefined) {
    const wrong = wrongPattern(pattern)
    if (wrong !== undefined) return wrong
  }
  return { name, ...(pattern === undefined ? {} : { pattern }), ...(best === 'max' ? { isMost: true } : {}) }
}

function wrongPattern(pattern: string): string | undefined {
  if (pattern.length > MOST_PATTERN) return `the pattern is longer than ${MOST_PATTERN} characters`
  if (/[\x00-\x1f\x7f]/.test(pattern)) return 'a pattern must not contain control characters'
  if (!/(^|[^\\])\([^?]/.test(pattern)) return 'the pattern needs a group around the number: loss=final loss ([0-9.]+)'
  // They may occupy sed for ever, and with it the host's shell.
  if (/\\[1-9]/.test(pattern)) return 'a pattern must not contain back-references'
  try {
    new RegExp(pattern)
    return undefined
  } catch {
    return 'the pattern is not a valid regular expression'
  }
}

/** Undefined: cannot be compared. */
export function metricNumber(value: string | undefined): number | undefined {
  if (value === undefined) return undefined
  const number = Number(value)
  if (Number.isNaN(number)) {
    const inf = /^([-+]?)inf$/i.exec(value)
    return inf ? Number(`${inf[1]}Infinity`) : undefined
  }
  return number === 0 && value.trim() === '' ? undefined : number
}

/** Of a metric that counts steps; undefined: it is no finite number. */
export function stepNumber(value: string | undefined): number | undefined {
  const number = metricNumber(value)
  return Number.isFinite(number) ? number : undefined
}

/** A number that JSON does not have stays a word. */
export function metricJson(value: string): number | string {
  const number = metricNumber(value)
  return number === undefined || !Number.isFinite(number) ? value : number
}

/** The best first, then those without a number; equal ones keep their order. */
export function rankBy<T>(
  rows: readonly T[],
  { name, isMost = false }: Metric,
  valuesOf: (row: T) => MetricValues,
): readonly T[] {
  const numbers = new Map(rows.map((row) => [row, metricNumber(valuesOf(row)[name])]))
  return rows.toSorted((one, other) => {
    const [first, second] = [numbers.get(one), numbers.get(other)]
    if (first === undefined || second === undefined) return Number(first === undefined) - Number(second === undefined)
    return first === second ? 0 : (first < second ? -1 : 1) * (isMost ? -1 : 1)
  })
}
