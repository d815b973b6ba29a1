/** The values that the measurement of a pair has reported so far, and their summary. Pure. */
import { formatBitRate } from '../../../base/format-bit-rate.ts'
import { median } from '../mesh/judge.ts'
import { formatMs } from '../mesh/link.ts'
import { MOST_RATES, type PairEvent } from './measure-pair.ts'

export type PairRecord = {
  readonly first: string
  readonly second: string
  /** Bits a second, second by second, from the first to the second and back. */
  readonly there: number[]
  readonly back: number[]
  /** Milliseconds. */
  readonly roundTrips: number[]
  /** Which ping, one a second, each of these answers. */
  readonly pings: number[]
  /** Not printable yet. */
  readonly failures: string[]
}

export const newPairRecord = (first: string, second: string): PairRecord => ({
  first,
  second,
  there: [],
  back: [],
  roundTrips: [],
  pings: [],
  failures: [],
})

export function takePairEvent(record: PairRecord, event: PairEvent): void {
  switch (event.type) {
    case 'interval':
      ;(event.from === record.first ? record.there : record.back).push(event.bitsPerSecond)
      break
    case 'round-trip':
      takeRoundTrip(record, event.ms, event.sequence)
      break
    case 'failed':
      record.failures.push(`${event.from} → ${event.to}: ${event.reason}`)
  }
}

/** A host may count as it likes: what cannot be is taken for the next one. */
function takeRoundTrip({ roundTrips, pings }: PairRecord, ms: number, sequence: number | undefined): void {
  if (roundTrips.length >= MOST_RATES) return
  const [first = sequence ?? 0, last = first - 1] = [pings[0], pings.at(-1)]
  const isNext = sequence !== undefined && sequence > last && sequence < first + MOST_RATES
  roundTrips.push(ms)
  pings.push(isNext ? sequence : last + 1)
}

/** Pings between answered ones that were not answered. */
export const lostPings = ({ pings }: Pick<PairRecord, 'pings'>): number =>
  pings.length === 0 ? 0 : (pings.at(-1) ?? 0) - (pings[0] ?? 0) + 1 - pings.length

/** The longest time without traffic in a direction, in seconds. */
export function longestIdle(rates: readonly number[]): number {
  let [longest, idle] = [0, 0]
  for (const rate of rates) {
    idle = rate === 0 ? idle + 1 : 0
    longest = Math.max(longest, idle)
  }
  return longest
}

/** Rates of each direction and round trips, in words. Not printable yet. */
export function pairSummary(record: PairRecord): readonly string[] {
  const { first, second, there, back, roundTrips } = record
  const rates = (from: string, to: string, values: readonly number[]): string[] => {
    const middle = median(values)
    if (middle === undefined) return []
    const [least, most] = [Math.min(...values), Math.max(...values)].map(formatBitRate)
    return [`${from} → ${to}: median ${formatBitRate(middle)}, from ${least} to ${most} in ${values.length} s`]
  }
  const trip = median(roundTrips)
  const lost = lostPings(record)
  const missing = lost === 0 ? '' : `, ${lost} of ${roundTrips.length + lost} pings not answered`
  return [
    ...rates(first, second, there),
    ...rates(second, first, back),
    ...(trip === undefined
      ? []
      : [`round trip: median ${formatMs(trip)}, at most ${formatMs(Math.max(...roundTrips))}${missing}`]),
  ]
}
