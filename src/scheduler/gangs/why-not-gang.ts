/** Why a gang does not fit now: bundles that fit on no host, or too little room for all of them together. */
import type { Cluster } from '../model/cluster.ts'
import type { Gang, Strategy } from '../model/gang.ts'
import { formatReason, type WhyNot, whyNot } from '../model/why-not.ts'
import { findGang } from './search-gang.ts'

export type GangChange =
  | { readonly kind: 'strategy'; readonly strategy: Strategy }
  | { readonly kind: 'fewer-bundles'; readonly bundles: number }
  | { readonly kind: 'no-limit-per-host' }

export type GangWhyNot = {
  /** Even when all hosts are idle. */
  readonly isImpossible: boolean
  /** Each different bundle that fits on no host by itself. */
  readonly bundles: readonly { readonly index: number; readonly whyNot: WhyNot }[]
  /** How many of its first bundles fit. */
  readonly roomFor: number
  /** Each suffices by itself. */
  readonly changes: readonly GangChange[]
}

/** Undefined: it fits. The cluster stays as it is. */
export function whyNotGang(cluster: Cluster, gang: Gang): GangWhyNot | undefined {
  const goesIn = (other: Gang, where = cluster) => findGang(where.copy(), other) !== undefined
  if (goesIn(gang)) return undefined
  const seen = new Set<number>()
  const bundles = gang.bundles.flatMap((bundle, index) => {
    const shape = cluster.shapeOf(bundle)
    if (seen.has(shape.id)) return []
    seen.add(shape.id)
    return goesIn({ name: '', strategy: 'PACK', bundles: [bundle] }) ? [] : [{ index, whyNot: whyNot(cluster, shape) }]
  })
  const roomFor = mostBundles(gang, goesIn)
  const changes: GangChange[] = []
  if (bundles.length === 0) {
    const { maxBundlesPerHost, ...unlimited } = gang
    const softer: Strategy = gang.strategy === 'STRICT_SPREAD' ? 'SPREAD' : 'PACK'
    if (gang.strategy.startsWith('STRICT') && goesIn({ ...gang, strategy: softer }))
      changes.push({ kind: 'strategy', strategy: softer })
    if (maxBundlesPerHost !== undefined && goesIn(unlimited)) changes.push({ kind: 'no-limit-per-host' })
    if (roomFor > 0) changes.push({ kind: 'fewer-bundles', bundles: roomFor })
  }
  return { isImpossible: !goesIn(gang, emptied(cluster)), bundles, roomFor, changes }
}

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

/** Lines for people; hosts with the same reasons share one. */
export function formatGangWhyNot(cluster: Cluster, gang: Gang, why: GangWhyNot): readonly string[] {
  const lines: string[] = []
  if (why.isImpossible) lines.push('Too large for these hosts, even when they are idle.')
  for (const { index, whyNot: own } of why.bundles) {
    if (gang.bundles.length > 1) lines.push(`Bundle ${index + 1} fits on no host:`)
    const byReason = new Map<string, string[]>()
    for (const { host, reasons } of own.hosts) {
      const text = reasons.map(formatReason).join('; ')
      const names = byReason.get(text) ?? []
      byReason.set(text, names)
      names.push(cluster.hosts[host]?.name ?? '')
    }
    for (const [text, names] of byReason) lines.push(`${names.join(',')}: ${text}`)
  }
  if (why.bundles.length === 0)
    lines.push(
      `Only ${why.roomFor} of ${gang.bundles.length} bundles ${why.roomFor === 1 ? 'fits' : 'fit'} (${gang.strategy}).`,
    )
  for (const change of why.changes) lines.push(`It would fit ${formatChange(change)}.`)
  return lines
}

function formatChange(change: GangChange): string {
  switch (change.kind) {
    case 'strategy':
      return `with ${change.strategy}`
    case 'fewer-bundles':
      return `with ${change.bundles} ${change.bundles === 1 ? 'bundle' : 'bundles'}`
    case 'no-limit-per-host':
      return 'without a limit of bundles per host'
  }
}
