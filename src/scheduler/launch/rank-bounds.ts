/**
 * Which ranks each bundle can have. Launchers fill the bundles in their order, so that follows from what Muster placed and no host
 * has to be believed; only where a launcher chooses itself (torchrun --elastic) do the hosts alone know.
 */
import type { LaunchSpec, Role } from './launcher.ts'
import { launcherOf } from './launcher-of.ts'

export type RankBounds = {
  /** Of all bundles: the ranks are those below it. */
  readonly count: number
  /** The launcher chooses: each bundle has `count` ranks, and may have any. */
  readonly isChosen: boolean
  /** How many ranks a bundle has, and its first one where bundles are filled in their order. */
  rangeOf(bundle: number): { readonly first: number; readonly count: number }
  /** Whether the host of the bundle can be believed about this rank. */
  canHave(bundle: number, rank: number): boolean
  /** The bundle that has a rank; undefined: none has, or the launcher chooses. */
  bundleOf(rank: number): number | undefined
}

type Gang = { readonly launch?: LaunchSpec | undefined; readonly roles?: readonly Role[] | undefined }

/** Of a job on hosts with so many bundles. */
export function rankBounds({ launch, roles }: Gang, bundles: number): RankBounds {
  const isChosen = launch !== undefined && launcherOf(launch)?.choosesRanks?.(launch.options) === true
  const each = launch?.ranks ?? 1
  const sizes = (launch?.ranks === undefined ? [] : (roles ?? [])).flatMap(({ count, ranks = each }) =>
    Array<number>(count).fill(ranks),
  )
  const firsts = [0]
  for (let bundle = 0; bundle < bundles; bundle += 1) firsts.push((firsts[bundle] ?? 0) + (sizes[bundle] ?? each))
  const rangeOf = (bundle: number) => {
    const first = firsts[bundle] ?? 0
    return { first, count: Math.max(0, (firsts[bundle + 1] ?? 0) - first) }
  }
  const isWithin = (rank: number, from = 0, to = 0) => rank >= from && rank < to
  const total = firsts.at(-1) ?? 0
  return {
    count: total,
    isChosen,
    rangeOf,
    canHave: (bundle, rank) =>
      isChosen ? isWithin(rank, 0, total) : isWithin(rank, firsts[bundle], firsts[bundle + 1]),
    bundleOf(rank) {
      const bundle = isChosen ? -1 : firsts.findLastIndex((first) => first <= rank)
      return bundle >= 0 && bundle < bundles ? bundle : undefined
    },
  }
}
