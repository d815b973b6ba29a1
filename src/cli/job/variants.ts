/** The jobs of an array and of a grid: each combination once, in order, with exact decimals. */
import { MusterError } from '../../base/errors.ts'

const MOST_JOBS = 100_000
const NAME = /^[A-Za-z_][A-Za-z0-9_]*$/

/** One environment a job. @throws MusterError 'usage' */
export function expandVariants(
  array: string | undefined,
  grids: readonly string[],
): readonly Readonly<Record<string, string>>[] {
  const axes = grids.map(parseGrid)
  if (array !== undefined) axes.unshift({ name: 'MUSTER_ARRAY_INDEX', values: arrayValues(array) })
  if (new Set(axes.map(({ name }) => name)).size < axes.length)
    throw new MusterError('usage', 'duplicate name in --grid')
  const count = axes.reduce((product, { values }) => product * values.length, 1)
  if (count > MOST_JOBS) throw new MusterError('usage', `${count} jobs at once are too many: at most ${MOST_JOBS}`)
  let variants: Readonly<Record<string, string>>[] = [{}]
  for (const { name, values } of axes)
    variants = variants.flatMap((variant) => values.map((value) => ({ ...variant, [name]: value })))
  return variants
}

function arrayValues(text: string): readonly string[] {
  const [, from, to] = /^(\d{1,9})-(\d{1,9})$/.exec(text) ?? []
  const count = Number(to) - Number(from) + 1
  if (from === undefined || !(count >= 1)) throw new MusterError('usage', `--array ${text}: write it as 0-99`)
  if (count > MOST_JOBS) throw new MusterError('usage', `--array ${text}: too many jobs: at most ${MOST_JOBS}`)
  return Array.from({ length: count }, (_, index) => String(Number(from) + index))
}

function parseGrid(text: string): { readonly name: string; readonly values: readonly string[] } {
  const at = text.indexOf('=')
  const name = text.slice(0, at)
  const list = text.slice(at + 1)
  if (!NAME.test(name) || list === '')
    throw new MusterError('usage', `--grid ${text}: write it as lr=0.1,0.2 or lr=0.1:1.0:0.1`)
  const values = list.includes(':') && !list.includes(',') ? stepValues(text, list.split(':')) : list.split(',')
  if (new Set(values).size < values.length) throw new MusterError('usage', `--grid ${text}: duplicate value`)
  return { name, values }
}

/** Counted in units of the smallest decimal that is written: 0.1 + 0.2 is 0.3. */
function stepValues(text: string, parts: readonly string[]): readonly string[] {
  const [from = '', to = '', step = ''] = parts
  if (parts.length !== 3 || !parts.every((part) => /^-?\d{1,12}(\.\d{1,12})?$/.test(part)))
    throw new MusterError('usage', `--grid ${text}: from:to:step must be three plain numbers`)
  const digits = Math.max(...parts.map((part) => part.split('.')[1]?.length ?? 0))
  const [first, last, by] = [from, to, step].map((part) => toUnits(part, digits)) as [bigint, bigint, bigint]
  if (by <= 0n || last < first)
    throw new MusterError('usage', `--grid ${text}: step must be positive and reach the last value`)
  if ((last - first) / by >= BigInt(MOST_JOBS)) throw new MusterError('usage', `--grid ${text}: too many values`)
  const values: string[] = []
  for (let value = first; value <= last; value += by) values.push(fromUnits(value, digits))
  return values
}

function toUnits(text: string, digits: number): bigint {
  const [whole = '', fraction = ''] = text.replace('-', '').split('.')
  const units = BigInt(whole + fraction.padEnd(digits, '0'))
  return text.startsWith('-') ? -units : units
}

function fromUnits(value: bigint, digits: number): string {
  const text = String(value < 0n ? -value : value).padStart(digits + 1, '0')
  const plain = digits === 0 ? text : `${text.slice(0, -digits)}.${text.slice(-digits)}`
  return value < 0n ? `-${plain}` : plain
}
