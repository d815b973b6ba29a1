/** Who takes a file from whom: pure decisions over what is known of each host. */

/** One host's place in the passing on of one file. */
export type Place = {
  readonly have: number
  /** From whom it takes the file; undefined: from this machine. */
  readonly source: Place | undefined
  /** It can pass the file on. */
  readonly isUsable: boolean
  /** From whom it could not take it, or not fast enough. */
  readonly refused: ReadonlySet<Place>
}

/**
 * The order of a chain: as given, but hosts that took less than half of what most did come last, the slowest at the end, so
 * that nobody waits behind them.
 */
export function orderChain<T>(places: readonly T[], rateOf: (place: T) => number): readonly T[] {
  const rates = places.map(rateOf).sort((one, other) => one - other)
  const usual = rates[Math.floor(rates.length / 2)] ?? 0
  const isSlow = (place: T) => rateOf(place) < usual / 2
  const slow = places.filter(isSlow).sort((one, other) => rateOf(other) - rateOf(one))
  return [...places.filter((place) => !isSlow(place)), ...slow]
}

/**
 * From whom a place may take the file next: where its source takes it from, else whoever has most of it and passes it on to
 * fewest. Undefined: from this machine.
 */
export function pickSource<T extends Place>(place: T, places: readonly T[]): T | undefined {
  const children = (candidate: T) => places.filter(({ source }) => source === candidate).length
  const usable = places.filter(
    (candidate) =>
      candidate !== place && candidate.isUsable && !place.refused.has(candidate) && !isBelow(candidate, place),
  )
  const above = usable.find((candidate) => candidate === place.source?.source)
  if (above !== undefined) return above
  return usable.toSorted((one, other) => children(one) - children(other) || other.have - one.have)[0]
}

/** Takes the file, directly or not, from that place. */
export function isBelow(place: Place, above: Place): boolean {
  for (let each = place.source; each !== undefined; each = each.source) if (each === above) return true
  return false
}
