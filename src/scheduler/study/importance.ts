/**
 * How much each parameter decides how good a trial is: the variance of the trials' ranks between groups of its values, as a share
 * of that of all parameters. Ranks, so that a few trials that diverged do not decide alone. What matters only together with
 * another parameter does not show. Pure.
 */
import { getOrMake } from '../../base/collections.ts'
import type { Metric } from '../jobs/metric.ts'
import { metricValue } from './front.ts'
import type { Parameter, Point, Space } from './space.ts'
import type { Trial } from './study.ts'

export type Importance = {
  readonly name: string
  /** From 0 to 1; all together 1. */
  readonly share: number
  /** From how many trials; fewer than all for a parameter with a condition. */
  readonly trials: number
}

const LEAST_TRIALS = 10
const MOST_GROUPS = 10
const TRIALS_IN_GROUP = 5
/** What chance may show by so many standard deviations is taken for chance: else something would matter in any study. */
const SIGMAS = 3
/** A group of fewer says nothing. */
const LEAST_IN_GROUP = 2

/**
 * The largest share first. Undefined with fewer than 10 done trials with a number, or when no parameter stands out from chance.
 */
export function importanceOf(
  space: Space,
  trials: readonly Trial[],
  metric: Metric,
): readonly Importance[] | undefined {
  const points: Point[] = []
  const values: number[] = []
  for (const trial of trials) {
    const value = trial.end?.kind === 'done' ? metricValue(trial, metric) : undefined
    if (value === undefined) continue
    points.push(trial.point)
    values.push(value)
  }
  if (points.length < LEAST_TRIALS) return undefined
  const ranks = ranksOf(values)
  const shares = space.parameters.map((parameter) => {
    const own: Own = { texts: [], ranks: [] }
    for (let index = 0; index < points.length; index++) {
      const text = points[index]?.[parameter.name]
      if (text === undefined) continue
      own.texts.push(text)
      own.ranks.push(ranks[index] ?? 0)
    }
    const count = own.texts.length
    return {
      name: parameter.name,
      share: count < LEAST_TRIALS ? 0 : explained(groupsOf(parameter, own)),
      trials: count,
    }
  })
  const sum = shares.reduce((total, { share }) => total + share, 0)
  if (sum === 0) return undefined
  return shares.map((one) => ({ ...one, share: one.share / sum })).sort((one, other) => other.share - one.share)
}

/** Equal values share the mean of their ranks. */
function ranksOf(values: readonly number[]): readonly number[] {
  const sorted = Float64Array.from(values).sort()
  const ranks = new Map<number, number>()
  for (let from = 0; from < sorted.length; ) {
    const value = sorted[from] ?? 0
    let to = from
    while (sorted[to] === value) to++
    ranks.set(value, (from + to - 1) / 2)
    from = to
  }
  return values.map((value) => ranks.get(value) ?? 0)
}

/** The trials that have a parameter: its values, and the trials' ranks. */
type Own = { readonly texts: string[]; readonly ranks: number[] }

type Group = { count: number; sum: number; squares: number }

/**
 * The sum of squares between groups, less what groups of these sizes would show by chance (as ε² of an analysis of variance), so
 * that a parameter is not important for having many values. 0: it may all be chance.
 */
function explained(all: readonly Group[]): number {
  const groups = all.filter(({ count }) => count >= LEAST_IN_GROUP)
  const total = { count: 0, sum: 0, squares: 0 }
  let ofGroups = 0
  for (const { count, sum, squares } of groups) {
    total.count += count
    total.sum += sum
    total.squares += squares
    ofGroups += sum ** 2 / count
  }
  if (groups.length < 2 || total.count <= groups.length) return 0
  const between = ofGroups - total.sum ** 2 / total.count
  const free = groups.length - 1
  const chance = (free * (total.squares - ofGroups)) / (total.count - groups.length)
  return between > chance * (1 + SIGMAS * Math.sqrt(2 / free)) ? between - chance : 0
}

/** One group for each value, or where there are many numbers, groups of about the same size in their order. */
function groupsOf(parameter: Parameter, { texts, ranks }: Own): readonly Group[] {
  const groups = new Map<string | number, Group>()
  const most = Math.min(MOST_GROUPS, Math.floor(texts.length / TRIALS_IN_GROUP))
  const keys =
    parameter.kind === 'choice' || hasFewValues(texts, most)
      ? texts
      : quantileOf(Float64Array.from(texts, Number), most)
  for (let index = 0; index < keys.length; index++) {
    const group = getOrMake(groups, keys[index] ?? 0, newGroup)
    const rank = ranks[index] ?? 0
    group.count++
    group.sum += rank
    group.squares += rank ** 2
  }
  return [...groups.values()]
}

const newGroup = (): Group => ({ count: 0, sum: 0, squares: 0 })

function hasFewValues(texts: readonly string[], most: number): boolean {
  const values = new Set<string>()
  return texts.every((text) => values.add(text).size <= most)
}

/** For each number, in which of so many groups of about the same size it lies. */
function quantileOf(numbers: Float64Array, count: number): Uint8Array {
  const sorted = numbers.toSorted()
  const bounds = Array.from(
    { length: count - 1 },
    (_, index) => sorted[Math.floor(((index + 1) / count) * sorted.length)] ?? 0,
  )
  return Uint8Array.from(numbers, (value) => {
    let place = 0
    for (const bound of bounds) if (bound <= value) place++
    return place
  })
}
