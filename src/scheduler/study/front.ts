/** Which trials of a study are the best: by one metric, or by several of which none can be better without another worse. Pure. */
import { lowerBound } from '../../base/collections.ts'
import { type Metric, metricNumber } from '../jobs/metric.ts'
import { ENDED_KINDS, type Trial, type TrialKind } from './study.ts'

export type TrialCounts = Readonly<Record<TrialKind, number>>

export const endedTrials = (counts: TrialCounts): number => ENDED_KINDS.reduce((sum, kind) => sum + counts[kind], 0)

export function countTrials(trials: readonly Trial[]): TrialCounts {
  const counts = { open: 0, done: 0, failed: 0, cancelled: 0, pruned: 0 }
  for (const { end } of trials) counts[end?.kind ?? 'open']++
  return counts
}

/** Of a trial that ended; undefined: it has none that can be compared. */
export const metricValue = (trial: Trial, metric: Metric): number | undefined =>
  metricNumber(trial.end?.values[metric.name])

/** A trial with its values as costs: smaller is better, whatever the metric says. */
type Rated = { readonly trial: Trial; readonly costs: readonly number[] }

const costOf = (value: number, { isMost = false }: Metric): number => (isMost ? -value : value)

/** The done trials that have a number for each metric. */
function rated(trials: readonly Trial[], metrics: readonly Metric[]): Rated[] {
  const all: Rated[] = []
  for (const trial of trials) {
    if (trial.end?.kind !== 'done') continue
    const costs: number[] = []
    for (const metric of metrics) {
      const value = metricValue(trial, metric)
      if (value === undefined) break
      costs.push(costOf(value, metric))
    }
    if (costs.length === metrics.length) all.push({ trial, costs })
  }
  return all
}

function byCosts({ costs: one, trial }: Rated, { costs: other, trial: another }: Rated): number {
  for (let index = 0; index < one.length; index++) {
    const [first = 0, second = 0] = [one[index], other[index]]
    if (first !== second) return first < second ? -1 : 1
  }
  return trial.number - another.number
}

/**
 * With one metric the best trial, with several the Pareto front: no other trial is as good in all metrics and better in one.
 * The best of the first metric first. Only done trials with a number for each metric count.
 */
export function bestTrials(trials: readonly Trial[], metrics: readonly Metric[]): readonly Trial[] {
  const [first] = metrics
  if (first === undefined) return []
  if (metrics.length === 1) return bestOf(trials, first)
  const all = rated(trials, metrics).sort(byCosts)
  return (metrics.length <= 3 ? frontOfThree(all) : frontOfMany(all)).map(({ trial }) => trial)
}

function bestOf(trials: readonly Trial[], metric: Metric): readonly Trial[] {
  let best: Trial | undefined
  let least = Number.POSITIVE_INFINITY
  for (const trial of trials) {
    const value = trial.end?.kind === 'done' ? metricValue(trial, metric) : undefined
    if (value === undefined) continue
    const cost = costOf(value, metric)
    if (best !== undefined && (cost > least || (cost === least && trial.number > best.number))) continue
    best = trial
    least = cost
  }
  return best === undefined ? [] : [best]
}

/**
 * Sorted, so that a trial can only be beaten by one before it: by one that is no worse in the second and the third cost. Of those
 * before, a staircase is kept: the second cost rises, and the third one falls.
 */
function frontOfThree(all: readonly Rated[]): readonly Rated[] {
  const stairs: { readonly second: number; readonly third: number }[] = []
  let last: Rated | undefined
  let isOnFront = true
  return all.filter((one) => {
    const [, second = 0, third = 0] = one.costs
    const isEqual = last?.costs.every((cost, index) => cost === one.costs[index]) === true
    last = one
    if (isEqual) return isOnFront
    const at = lowerBound(stairs.length, (index) => (stairs[index]?.second ?? 0) <= second)
    isOnFront = !(at > 0 && (stairs[at - 1]?.third ?? 0) <= third)
    if (!isOnFront) return false
    // Steps that this one covers begin where their second cost is no lower.
    const from = stairs[at - 1]?.second === second ? at - 1 : at
    let to = from
    while (to < stairs.length && (stairs[to]?.third ?? 0) >= third) to++
    stairs.splice(from, to - from, { second, third })
    return true
  })
}

/** Sorted, so that a trial can only be beaten by one before it. What beat the last trial probably beats this one, too. */
function frontOfMany(all: readonly Rated[]): readonly Rated[] {
  const front: Rated[] = []
  const byStrength: (readonly number[])[] = []
  for (const one of all) {
    const at = byStrength.findIndex((other) => beats(other, one.costs))
    const strong = byStrength[at]
    if (strong === undefined) {
      front.push(one)
      byStrength.push(one.costs)
    } else if (at > 0) {
      byStrength[at] = byStrength[at >> 1] ?? strong
      byStrength[at >> 1] = strong
    }
  }
  return front
}

function beats(one: readonly number[], other: readonly number[]): boolean {
  let isBetter = false
  for (let index = 0; index < one.length; index++) {
    const [first = 0, second = 0] = [one[index], other[index]]
    if (first > second) return false
    if (first < second) isBetter = true
  }
  return isBetter
}

const KIND_ORDER = { done: 0, pruned: 1, failed: 2, cancelled: 3, open: 4 } as const

/**
 * All trials: the best ones, then the others by the first metric, then the done ones without a number, and the pruned, failed,
 * cancelled and open ones by number.
 */
export function rankTrials(trials: readonly Trial[], metrics: readonly Metric[]): readonly Trial[] {
  const best = bestTrials(trials, metrics)
  const isBest = new Set(best)
  const [first] = metrics
  const others = (
    first === undefined
      ? []
      : rated(trials, [first])
          .sort(byCosts)
          .map(({ trial }) => trial)
  ).filter((trial) => !isBest.has(trial))
  const known = new Set([...best, ...others])
  const rest = trials
    .filter((trial) => !known.has(trial))
    .sort(
      (one, other) =>
        KIND_ORDER[one.end?.kind ?? 'open'] - KIND_ORDER[other.end?.kind ?? 'open'] || one.number - other.number,
    )
  return [...best, ...others, ...rest]
}

export type BestSoFar = { readonly trial: Trial; readonly value: number; readonly best: number }

/** The done trials with a number in the order in which they ended, and the best value until then. */
export function bestSoFar(trials: readonly Trial[], metric: Metric): readonly BestSoFar[] {
  let best: number | undefined
  return trials
    .flatMap((trial) => {
      const value = trial.end?.kind === 'done' ? metricValue(trial, metric) : undefined
      return value === undefined ? [] : [{ trial, value, endedMs: trial.end?.endedMs ?? 0 }]
    })
    .sort((one, other) => one.endedMs - other.endedMs || one.trial.number - other.trial.number)
    .map(({ trial, value }) => {
      if (best === undefined || costOf(value, metric) < costOf(best, metric)) best = value
      return { trial, value, best }
    })
}

/** Numbers of the trials that were better than all that had ended before; one that is as good is none. */
export function improvingTrials(trials: readonly Trial[], metric: Metric): ReadonlySet<number> {
  const steps = bestSoFar(trials, metric)
  return new Set(steps.filter(({ best }, at) => best !== steps[at - 1]?.best).map(({ trial }) => trial.number))
}
