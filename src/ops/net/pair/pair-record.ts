/** The values that the measurement of a pair has reported so far, and their summary. Pure. */
import { formatBitRate } from '../../../base/format-bit-rate.ts'
import { median } from '../mesh/judge.ts'
import { formatMs } from '../mesh/link.ts'
import type { PairEvent } from './measure-pair.ts'

export type PairRecord = {
  readonly first: string
  readonly second: string
  /** Bits a second, second by second, from the first to the second and back. */
  readonly there: number[]
  readonly back: number[]
  /** Milliseconds. */
  readonly roundTrips: number[]
  /** Not printable yet. */
  readonly failures: string[]
}

export const newPairRecord = (first: string, second: string): PairRecord => ({
  first,
  second,
  there: [],
  back: [],
  roundTrips: [],
  failures: [],
})

export function takePairEvent(record: PairRecord, event: PairEvent): void {
  switch (event.type) {
    case 'interval':
      ;(event.from === record.first ? record.there : record.back).push(event.bitsPerSecond)
      break
    case 'round-trip':
      record.roundTrips.push(event.ms)
      break
    case 'failed':
      record.failures.push(`${event.from} → ${event.to}: ${event.reason}`)
  }
}

/** Rates of each direction and round trips, in words. Not printable yet. */
export function pairSummary({ first, second, there, back, roundTrips }: PairRecord): readonly string[] {
  const rates = (from: string, to: string, values: readonly number[]): string[] => {
    const middle = median(values)
    if (middle === undefined) return []
    const [least, most] = [Math.min(...values), Math.max(...values)].map(formatBitRate)
    return [`${from} → ${to}: median ${formatBitRate(middle)}, from ${least} to ${most} in ${values.length} s`]
  }
  const trip = median(roundTrips)
  return [
    ...rates(first, second, there),
    ...rates(second, first, back),
    ...(trip === undefined
      ? []
      : [`round trip: median ${formatMs(trip)}, at most ${formatMs(Math.max(...roundTrips))}`]),
  ]
}
