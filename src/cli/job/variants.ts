/** The jobs of an array and of a grid: each combination once, in order, with exact decimals. */
import { decimalAt, decimalRange } from '../../base/decimals.ts'
import { MusterError } from '../../base/errors.ts'

const MOST_JOBS = 100_000
const GRID = /^([A-Za-z_][A-Za-z0-9_]*)=(.+)$/s
const WRONG_RANGE = {
  'not plain': 'from:to:step must be three plain numbers',
  'no step': 'step must be positive and reach the last value',
  'too many': 'too many values',
} as const

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
  const [, name = '', list = ''] = GRID.exec(text) ?? []
  if (list === '') throw new MusterError('usage', `--grid ${text}: write it as lr=0.1,0.2 or lr=0.1:1.0:0.1`)
  const values = list.includes(':') && !list.includes(',') ? stepValues(text, list.split(':')) : list.split(',')
  if (new Set(values).size < values.length) throw new MusterError('usage', `--grid ${text}: duplicate value`)
  return { name, values }
}

function stepValues(text: string, parts: readonly string[]): readonly string[] {
  const [from = '', to = '', step = ''] = parts
  const range = parts.length === 3 ? decimalRange([from, to, step], MOST_JOBS) : 'not plain'
  if (typeof range === 'string') throw new MusterError('usage', `--grid ${text}: ${WRONG_RANGE[range]}`)
  return Array.from({ length: range.count }, (_, index) => decimalAt(range, index))
}
