/**
 * Metrics that a job declares: lines of its stdout such as `loss=0.12`. They are found on the host, by sed, and nothing but a
 * number comes back. The last line with one counts. It owns the program and the parser, and reads nothing itself.
 */
import { shellQuote } from '../../base/shell-quote.ts'

export type Metric = {
  readonly name: string
  /** For `sed -E`; its first group is the number. Undefined: `NAME=NUMBER` or `NAME: NUMBER`. */
  readonly pattern?: string
  /** Whether the most of it is the best; else the least. */
  readonly isMost?: boolean
}

/** By name; as it was written. */
export type MetricValues = Readonly<Record<string, string>>

/** Of the end of stdout so much is looked through. */
const TAIL_BYTES = 64 * 1024
const MOST_VALUE = 40
const MOST_PATTERN = 200
const NAME = /^[A-Za-z_][A-Za-z0-9_./-]{0,39}$/
const NUMBER = /^[-+]?(?:(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|nan|inf)$/i
const NUMBER_PATTERN = '[-+]?(([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][-+]?[0-9]+)?|[nN][aA][nN]|[iI][nN][fF])'
/** They stand for a separator of sed and for the ends of what was found: no pattern may have them. */
const [SEPARATOR, MARK] = ['\x01', '\x02']

/** `loss`, `max:accuracy`, `loss=test loss ([0-9.]+)`; a string: what is wrong. */
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
  if (pattern.length > MOST_PATTERN) return `a pattern has no more than ${MOST_PATTERN} characters`
  if (/[\x00-\x1f\x7f]/.test(pattern)) return 'a pattern has no control characters'
  if (!/(^|[^\\])\([^?]/.test(pattern)) return 'the pattern needs a group around the number: loss=final loss ([0-9.]+)'
  // They may take sed for ever, and a look at its host with it.
  if (/\\[1-9]/.test(pattern)) return 'a pattern has no back-references'
  try {
    new RegExp(pattern)
    return undefined
  } catch {
    return 'the pattern is no regular expression'
  }
}

export type MetricOrder = { readonly key: string; readonly metrics: readonly Metric[] }

/** For the shell of a host, in the directory of bundles; prints `metric KEY INDEX NUMBER` for each, after its mark. */
export function formatMetricProgram(orders: readonly MetricOrder[]): string {
  if (orders.length === 0) return ''
  const lines = orders.flatMap(({ key, metrics }) =>
    metrics.map((metric, index) => `m ${key} ${index} ${shellQuote(sedScript(metric))}`),
  )
  return `m() {
v=$(tail -c ${TAIL_BYTES} "$1/out" 2>/dev/null | tr '\\r' '\\n' | LC_ALL=C sed -nE "$3" 2>/dev/null)
printf '%smetric %s %s %.${MOST_VALUE}s\\n' "$mark" "$1" "$2" "$v"
}
${lines.join('\n')}
`
}

/** The first match of a line is marked, what is between the marks is kept, and the last line prints what was kept last. */
function sedScript({ name, pattern }: Metric): string {
  const [found, group] =
    pattern === undefined
      ? [`(^|[^A-Za-z0-9_])${name.replaceAll('.', '[.]')}"?[ \t]*[=:][ \t]*(${NUMBER_PATTERN})`, 2]
      : [pattern, 1]
  const replace = (from: string, to: string) => `s${SEPARATOR}${from}${SEPARATOR}${to}${SEPARATOR}`
  return [
    replace(found, `${MARK}\\${group}${MARK}`),
    replace(`^[^${MARK}]*${MARK}([^${MARK}]*)${MARK}.*$`, '\\1'),
    't keep',
    'b last',
    ':keep',
    'h',
    ':last',
    '$!d',
    'g',
    'p',
  ].join('\n')
}

/** By key and index: a number, or undefined where there is none. Other lines, and what is no number, are passed over. */
export function parseMetricLines(text: string): ReadonlyMap<string, ReadonlyMap<number, string>> {
  const found = new Map<string, Map<number, string>>()
  for (const line of text.split('\n')) {
    const [word, key = '', index = '', value = '', ...rest] = line.split(' ')
    if (word !== 'metric' || key === '' || !/^\d{1,3}$/.test(index)) continue
    const own = found.get(key) ?? new Map<number, string>()
    found.set(key, own)
    if (rest.length === 0 && value.length < MOST_VALUE && NUMBER.test(value)) own.set(Number(index), value)
  }
  return found
}

/** For sorting; undefined: there is none that could be compared. */
export function metricNumber(value: string | undefined): number | undefined {
  if (value === undefined || value.trim() === '') return undefined
  const inf = /^([-+]?)inf$/i.exec(value)
  const number = inf ? Number(`${inf[1]}Infinity`) : Number(value)
  return Number.isNaN(number) ? undefined : number
}

/** What JSON has no number for stays a word. */
export function metricJson(value: string): number | string {
  const number = metricNumber(value)
  return number === undefined || !Number.isFinite(number) ? value : number
}

/** The best first, then those without a number; equal ones in their order. */
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
