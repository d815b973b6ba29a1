/**
 * How much each parameter decides how good a trial is: the variance of the trials' ranks between groups of its values, as a share
 * of that of all parameters. Ranks, so that a few trials that diverged do not decide alone. What matters only together with
 * another parameter does not show. Pure.
 */
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
/** A group of fewer says nothing. */
const LEAST_IN_GROUP = 2

/** The largest share first. Undefined with fewer than 10 done trials with a number, or when all have the same one. */
export function importanceOf(
  space: Space,
  trials: readonly Trial[],
  metric: Metric,
): readonly Importance[] | undefined {
  const rows = ranked(
    trials.flatMap((trial) => {
      const value = trial.end?.kind === 'done' ? metricValue(trial, metric) : undefined
      return value === undefined ? [] : [{ point: trial.point, value }]
    }),
  )
  if (rows.length < LEAST_TRIALS) return undefined
  const shares = space.parameters.map((parameter) => {
    const own = rows.flatMap(({ point, rank }) => {
      const text = point[parameter.name]
      return text === undefined ? [] : [{ text, rank }]
    })
    return {
      name: parameter.name,
      share: own.length < LEAST_TRIALS ? 0 : explained(parameter, own),
      trials: own.length,
    }
  })
  const sum = shares.reduce((total, { share }) => total + share, 0)
  if (sum === 0) return undefined
  return shares.map((one) => ({ ...one, share: one.share / sum })).sort((one, other) => other.share - one.share)
}

type Valued = { readonly point: Point; readonly value: number }

/** Equal values share the mean of their ranks. */
function ranked(rows: readonly Valued[]): readonly { readonly point: Point; readonly rank: number }[] {
  const sorted = rows.toSorted((one, other) => (one.value === other.value ? 0 : one.value < other.value ? -1 : 1))
  const result: { point: Point; rank: number }[] = []
  for (let from = 0; from < sorted.length; ) {
    let to = from
    while (to < sorted.length && sorted[to]?.value === sorted[from]?.value) to++
    for (const { point } of sorted.slice(from, to)) result.push({ point, rank: (from + to - 1) / 2 })
    from = to
  }
  return result
}

type Row = { readonly text: string; readonly rank: number }

/**
 * The sum of squares between groups, less what groups of these sizes would show by chance (as ε² of an analysis of variance), so
 * that a parameter is not important for having many values.
 */
function explained(parameter: Parameter, rows: readonly Row[]): number {
  const groups = groupsOf(parameter, rows).filter((group) => group.length >= LEAST_IN_GROUP)
  const all = groups.flat()
  if (groups.length < 2 || all.length <= groups.length) return 0
  const mean = meanOf(all)
  const total = all.reduce((sum, rank) => sum + (rank - mean) ** 2, 0)
  const between = groups.reduce((sum, group) => sum + group.length * (meanOf(group) - mean) ** 2, 0)
  const chance = ((groups.length - 1) * (total - between)) / (all.length - groups.length)
  return Math.max(0, between - chance)
}

const meanOf = (ranks: readonly number[]): number => ranks.reduce((sum, rank) => sum + rank, 0) / ranks.length

/** One group for each value, or where there are many numbers, groups of about the same size in their order. */
function groupsOf(parameter: Parameter, rows: readonly Row[]): readonly (readonly number[])[] {
  const byText = new Map<string, number[]>()
  for (const { text, rank } of rows) {
    const group = byText.get(text)
    if (group === undefined) byText.set(text, [rank])
    else group.push(rank)
  }
  if (parameter.kind === 'choice' || byText.size <= MOST_GROUPS) return [...byText.values()]
  const sorted = [...byText]
    .map(([text, ranks]) => ({ at: Number(text), ranks }))
    .sort((one, other) => one.at - other.at)
  const groups: number[][] = []
  let before = 0
  for (const { ranks } of sorted) {
    const index = Math.floor((before / rows.length) * MOST_GROUPS)
    const last = groups[index]
    if (last === undefined) groups[index] = [...ranks]
    else last.push(...ranks)
    before += ranks.length
  }
  return groups.filter((group) => group !== undefined)
}
