/** Whether a running trial is stopped early, by the values that it and the others printed on the way. Pure. */

import { lowerBound } from '../../base/collections.ts'
import { counted } from '../../base/counted.ts'
import type { Metric } from '../jobs/metric.ts'
import { formatValue } from './format-value.ts'
import type { PruneSpec, TrialStep } from './study.ts'

/** Of halving. */
export const DEFAULT_FACTOR = 3
/** Steps at which other trials are, tried for one that is ahead of them. */
const MOST_EARLIER = 16

/**
 * Why the trial is stopped, in words; undefined: it goes on. All steps rise. `others`: the trials that did not fail, running ones
 * too. `judgedTo`: the last step of this trial that was judged before; nothing is said again without a later one.
 */
export function pruneReason(
  rule: PruneSpec,
  metric: Metric,
  steps: readonly TrialStep[],
  others: readonly (readonly TrialStep[])[],
  judgedTo = Number.NEGATIVE_INFINITY,
): string | undefined {
  const last = steps.at(-1)
  if (last === undefined || last.step < rule.fromStep || last.step <= judgedTo) return undefined
  return rule.rule === 'median'
    ? belowMedian(rule, metric, steps, last.step, others)
    : belowRung(rule, metric, steps, last.step, others, judgedTo)
}

/**
 * As Optuna's MedianPruner: its best value until now against the median of the others at that step. But all that reached the step
 * count, not only those that are done: with many trials at once, the first ones would all run to their ends. One that is ahead of the
 * others is compared at the last step that enough of them reached: where the others have ended, no other step would come.
 */
function belowMedian(
  rule: PruneSpec,
  metric: Metric,
  steps: readonly TrialStep[],
  last: number,
  others: readonly (readonly TrialStep[])[],
): string | undefined {
  const least = Math.max(1, rule.fromTrials)
  let [step, values] = [last, valuesAt(others, last)]
  if (values.length < least && others.length >= least) {
    const reached = new Set(others.flatMap((other) => other.at(-1)?.step ?? []).toSorted((one, other) => other - one))
    for (const earlier of [...reached].filter((one) => one < last && one >= rule.fromStep).slice(0, MOST_EARLIER)) {
      ;[step, values] = [earlier, valuesAt(others, earlier)]
      if (values.length >= least) break
    }
  }
  if (values.length < least) return undefined
  const best = bestOf(steps, metric)
  const middle = medianOf(values)
  if (!isWorse(best, middle, metric)) return undefined
  const own = `${metric.name} ${formatValue(best)}`
  const where = step === last ? '' : ` at ${rule.stepMetric} ${step}`
  return `at ${rule.stepMetric} ${last} its ${own} is worse than the median ${formatValue(middle)} of ${counted(values.length, 'trial')}${where}`
}

/**
 * Asynchronous successive halving: at each rung (fromStep × factor^k) a trial goes on if it is among the best 1/factor of those
 * that reached it until now. The value of a rung is the first one at or after it.
 */
function belowRung(
  rule: PruneSpec,
  metric: Metric,
  steps: readonly TrialStep[],
  last: number,
  others: readonly (readonly TrialStep[])[],
  judgedTo: number,
): string | undefined {
  const factor = Math.max(2, rule.factor ?? DEFAULT_FACTOR)
  for (let rung = rule.fromStep > 0 ? rule.fromStep : 1; rung <= last && Number.isFinite(rung); rung *= factor) {
    const own = readingAt(steps, rung)
    if (own === undefined || own.step <= judgedTo) continue
    const values = others.flatMap((other) => {
      const value = readingAt(other, rung)?.value
      return value === undefined || Number.isNaN(value) ? [] : [value]
    })
    if (values.length === 0 || values.length < rule.fromTrials) continue
    const all = values.length + 1
    const kept = Math.max(1, Math.floor(all / factor))
    const better = values.filter((value) => isWorse(own.value, value, metric)).length
    if (better < kept) continue
    const goesOn = kept === 1 ? 'only the best one continues' : `the best ${kept} continue`
    const value = `${metric.name} ${formatValue(own.value)}`
    return `at ${rule.stepMetric} ${own.step} its ${value} ranks ${better + 1} of ${all} trials; ${goesOn}`
  }
  return undefined
}

/** Of those that reached the step: their last reading until then. */
function valuesAt(others: readonly (readonly TrialStep[])[], step: number): readonly number[] {
  return others.flatMap((other) => {
    if ((other.at(-1)?.step ?? Number.NEGATIVE_INFINITY) < step) return []
    const value = other[lowerBound(other.length, (index) => (other[index]?.step ?? 0) <= step) - 1]?.value
    return value === undefined || Number.isNaN(value) ? [] : [value]
  })
}

/** The first reading at or after a step. */
const readingAt = (steps: readonly TrialStep[], step: number): TrialStep | undefined =>
  steps[lowerBound(steps.length, (index) => (steps[index]?.step ?? 0) < step)]

/** What is no number is worse than any number. */
const isWorse = (value: number, than: number, { isMost = false }: Metric): boolean =>
  Number.isNaN(value) ? !Number.isNaN(than) : isMost ? value < than : value > than

function bestOf(steps: readonly TrialStep[], metric: Metric): number {
  let best = Number.NaN
  for (const { value } of steps) if (isWorse(best, value, metric)) best = value
  return best
}

function medianOf(values: readonly number[]): number {
  const sorted = Float64Array.from(values).sort()
  const half = sorted.length >> 1
  const upper = sorted[half] ?? Number.NaN
  const lower = sorted.length % 2 === 1 ? upper : (sorted[half - 1] ?? Number.NaN)
  // Two equal infinities have no mean to compute.
  return lower === upper ? upper : (lower + upper) / 2
}
