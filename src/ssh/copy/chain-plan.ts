/** Which host takes a file from which: pure decisions. */

/** One host's part in the relay of one file. */
export type Hop = {
  readonly have: number
  /** The host from which it takes the file; undefined: this machine. */
  readonly source: Hop | undefined
  /** It can pass the file on. */
  readonly isUsable: boolean
  /** Hosts from which it could not take the file, or not fast enough. */
  readonly refused: ReadonlySet<Hop>
}

/** The order of a chain: as given, but hosts at less than half the median rate come last, the slowest at the end. */
export function orderChain<T>(hops: readonly T[], rateOf: (hop: T) => number): readonly T[] {
  const rates = hops.map(rateOf).sort((one, other) => one - other)
  const usual = rates[Math.floor(rates.length / 2)] ?? 0
  const isSlow = (hop: T) => rateOf(hop) < usual / 2
  const slow = hops.filter(isSlow).sort((one, other) => rateOf(other) - rateOf(one))
  return [...hops.filter((hop) => !isSlow(hop)), ...slow]
}

/**
 * The next source for a host: the source of its present one, else the host that serves the fewest others and has most of the file.
 * Undefined: this machine.
 */
export function pickSource<T extends Hop>(hop: T, hops: readonly T[]): T | undefined {
  const children = (candidate: T) => hops.filter(({ source }) => source === candidate).length
  const usable = hops.filter(
    (candidate) => candidate !== hop && candidate.isUsable && !hop.refused.has(candidate) && !isBelow(candidate, hop),
  )
  const above = usable.find((candidate) => candidate === hop.source?.source)
  return above ?? usable.toSorted((one, other) => children(one) - children(other) || other.have - one.have)[0]
}

/** Takes the file, directly or not, from that host. */
export function isBelow(hop: Hop, above: Hop): boolean {
  for (let each = hop.source; each !== undefined; each = each.source) if (each === above) return true
  return false
}
