/** Studies, their parameters and their trials in words, for the command line and the console. Pure. */
import { decimalAt } from '../../base/decimals.ts'
import { shellQuote } from '../../base/shell-quote.ts'
import type { JobSpec } from '../jobs/job.ts'
import type { Metric } from '../jobs/metric.ts'
import { canonicalText, type Parameter, type Point, sizeOf } from './space.ts'
import { type Study, spaceOf, type Trial } from './study.ts'

/** Of a parameter with steps so many values are listed. */
const LISTED = 6

/** `10, 20 … 200 (20 values)`; `any number from 0.00001 to 0.1, on a log scale`; `adam, sgd, if lr is 0.1`. */
export function domainText(parameter: Parameter): string {
  const { when } = parameter
  const condition = when === undefined ? '' : `, if ${when.name} is ${when.values.join(' or ')}`
  return `${valuesText(parameter)}${condition}`
}

function valuesText(parameter: Parameter): string {
  if (parameter.kind === 'choice') return parameter.values.join(', ')
  if (parameter.kind === 'real')
    return `any number from ${parameter.low} to ${parameter.high}${parameter.isLog ? ', on a log scale' : ''}`
  const { count } = parameter
  const at = (index: number) => canonicalText(decimalAt(parameter, index))
  return count <= LISTED
    ? Array.from({ length: count }, (_, index) => at(index)).join(', ')
    : `${at(0)}, ${at(1)} … ${at(count - 1)} (${count} values)`
}

/** How many trials it may have; undefined: unknown. */
export function mostTrials({ spec, state }: Pick<Study, 'spec' | 'state'>): number | undefined {
  const isOpen = spec.source !== undefined || spec.pbt !== undefined
  const points = isOpen ? Number.POSITIVE_INFINITY : sizeOf(spaceOf(spec)) * spec.repeat
  const most = Math.min(state.trials ?? Number.POSITIVE_INFINITY, points)
  return Number.isFinite(most) ? most : undefined
}

/** `12/50`: trials that have ended, of those that it may have. */
export function progressText(study: Pick<Study, 'spec' | 'state'>, ended: number): string {
  const most = mostTrials(study)
  return most === undefined ? String(ended) : `${ended}/${most}`
}

/** `lr=0.01 opt=adam`, as a shell reads it. */
export const pointText = (point: Point): string =>
  Object.entries(point)
    .map(([name, value]) => `${name}=${shellQuote(value)}`)
    .join(' ')

/** `acc=0.93 loss=0.2`, as printed. */
export const valuesTextOf = (values: Readonly<Record<string, string>>, metrics: readonly Metric[]): string =>
  metrics.flatMap(({ name }) => (values[name] === undefined ? [] : [`${name}=${values[name]}`])).join(' ')

/** A line that runs a point by hand; undefined where a launcher or another program starts it. */
export const handLine = (job: JobSpec | undefined, { point }: Pick<Trial, 'point'>): string | undefined =>
  job === undefined || job.launch !== undefined ? undefined : `${pointText(point)} sh -c ${shellQuote(job.command)}`
