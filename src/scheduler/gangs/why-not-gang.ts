/** Why a gang does not fit now: bundles that fit on no host, or too little room for all of them together. */
import type { Cluster } from '../model/cluster.ts'
import type { Gang, Strategy } from '../model/resources.ts'
import { reasonsOf } from '../model/why-not.ts'
import { findGang } from './search-gang.ts'

export type GangWhyNot = {
  /** It would not fit even if all hosts were idle. */
  readonly isImpossible: boolean
  /** For people: what is in the way, and which single changes would help. */
  readonly lines: readonly string[]
}

/** Undefined: it fits. The cluster stays as it is. */
export function whyNotGang(cluster: Cluster, gang: Gang): GangWhyNot | undefined {
  const goesIn = (other: Gang, where = cluster) => findGang(where.copy(), other) !== undefined
  if (goesIn(gang)) return undefined
  const { bundles, strategy, maxBundlesPerHost, ...rest } = gang
  const seen = new Set<number>()
  const lines = bundles.flatMap((bundle, index) => {
    const shape = cluster.shapeOf(bundle)
    if (seen.has(shape.id)) return []
    seen.add(shape.id)
    if (goesIn({ name: '', strategy: 'PACK', bundles: [bundle] })) return []
    const byReason = Map.groupBy(cluster.hosts.keys(), (host) => reasonsOf(cluster, shape, host).join('; '))
    return [
      ...(bundles.length > 1 ? [`Bundle ${index + 1} fits on no host:`] : []),
      ...[...byReason].map(([text, hosts]) => `${hosts.map((host) => cluster.hosts[host]?.name).join(',')}: ${text}`),
    ]
  })
  if (lines.length === 0) {
    const count = mostBundles(gang, goesIn)
    const softer: Strategy = strategy === 'STRICT_SPREAD' ? 'SPREAD' : 'PACK'
    lines.push(`Only ${count} of ${bundles.length} bundles ${count === 1 ? 'fits' : 'fit'} (${strategy}).`)
    if (strategy.startsWith('STRICT') && goesIn({ ...gang, strategy: softer }))
      lines.push(`It would fit with ${softer}.`)
    if (maxBundlesPerHost !== undefined && goesIn({ ...rest, bundles, strategy }))
      lines.push('It would fit without a limit of bundles per host.')
    if (count > 0) lines.push(`It would fit with ${count} ${count === 1 ? 'bundle' : 'bundles'}.`)
  }
  const isImpossible = !goesIn(gang, emptied(cluster))
  return {
    isImpossible,
    lines: isImpossible ? ['Too large for these hosts, even when they are idle.', ...lines] : lines,
  }
}

/** How many of its first bundles fit. */
function mostBundles(gang: Gang, goesIn: (gang: Gang) => boolean): number {
  let low = 0
  let high = gang.bundles.length - 1
  while (low < high) {
    const middle = Math.ceil((low + high) / 2)
    if (goesIn({ ...gang, bundles: gang.bundles.slice(0, middle) })) low = middle
    else high = middle - 1
  }
  return low
}

function emptied(cluster: Cluster): Cluster {
  const empty = cluster.copy()
  for (const placement of cluster.placements()) empty.release(placement)
  for (let host = 0; host < empty.hostCount; host++) empty.close(host, false)
  return empty
}
