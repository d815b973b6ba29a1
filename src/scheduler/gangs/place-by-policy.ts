/** Places each bundle of a gang by a policy for single requests, within what its strategy allows. */
import type { Cluster, Placement } from '../model/cluster.ts'
import type { Gang } from '../model/resources.ts'
import type { Shape } from '../model/shape.ts'
import type { HostFilter, PlacementPolicy } from '../policies/scored-policy.ts'
import { largestFirst } from './place-gang.ts'

/** Takes a place for every bundle, the largest first, or none: undefined. In the order of the gang's bundles. */
export function placeByPolicy(cluster: Cluster, gang: Gang, policy: PlacementPolicy): readonly Placement[] | undefined {
  const shapes = gang.bundles.map((bundle) => cluster.shapeOf(bundle))
  const order = largestFirst(shapes).map((index) => [index, shapes[index] as Shape] as const)
  if (gang.strategy !== 'STRICT_PACK') return cluster.attempt(() => placeAll(cluster, gang, policy, order))
  const tried = new Set<number>()
  for (;;) {
    const first = order[0]?.[1]
    const host = first && policy.choose(first, (one) => !tried.has(one))?.host
    if (host === undefined) return undefined
    const placements = cluster.attempt(() => placeAll(cluster, gang, policy, order, (one) => one === host))
    if (placements !== undefined) return placements
    tried.add(host)
  }
}

function placeAll(
  cluster: Cluster,
  { strategy, maxBundlesPerHost = Number.POSITIVE_INFINITY }: Gang,
  policy: PlacementPolicy,
  order: readonly (readonly [number, Shape])[],
  isAllowed: HostFilter = () => true,
): readonly Placement[] | undefined {
  const counts = new Map<number, number>()
  const isFree: HostFilter = (host) => isAllowed(host) && (counts.get(host) ?? 0) < maxBundlesPerHost
  const isUsed: HostFilter = (host) => counts.has(host) && isFree(host)
  const isUnused: HostFilter = (host) => !counts.has(host) && isFree(host)
  const taken: Placement[] = []
  for (const [index, shape] of order) {
    const spot =
      strategy === 'SPREAD' || strategy === 'STRICT_SPREAD'
        ? (policy.choose(shape, isUnused) ?? (strategy === 'SPREAD' ? policy.choose(shape, isFree) : undefined))
        : (policy.choose(shape, isUsed) ?? policy.choose(shape, isFree))
    if (spot === undefined) return undefined
    taken[index] = cluster.take(shape, spot)
    counts.set(spot.host, (counts.get(spot.host) ?? 0) + 1)
  }
  return taken
}
