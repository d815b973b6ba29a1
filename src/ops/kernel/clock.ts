/** Whether the clocks of two hosts agree, as far as one question to each tells. */
import { type Fact, type HostFacts, knownValue } from './fact.ts'

/** What the host's clock says, in milliseconds since the epoch; whole seconds where `date` knows no parts of them. */
export const clockFact: Fact<number> = {
  script: 'date +%s%N',
  mayHang: true,
  parse(text) {
    const [, seconds, rest = ''] = /^(\d{10})(\d{9})?/.exec(text) ?? []
    return seconds === undefined ? undefined : Number(seconds) * 1000 + Number(rest.slice(0, 3))
  },
}

/** Logs become misleading beyond the first. The steps are coarse, so that a plan made again is equal. */
const LIMITS_MS = [5_000, 60_000, 300_000, 3_600_000, 86_400_000]

type HostClock = HostFacts<{ readonly clock: number }>

/** Undefined: they agree, or one is unknown. The clocks differ by more than `limitMs`. */
export function clockDifference(
  own: HostClock | undefined,
  other: HostClock | undefined,
): { readonly isAhead: boolean; readonly limitMs: number } | undefined {
  const [here, there] = [rangeOf(own), rangeOf(other)]
  if (here === undefined || there === undefined) return undefined
  // The clock was read between question and answer; this difference is certain.
  const ahead = here.leastMs - there.mostMs
  const behind = there.leastMs - here.mostMs
  const limitMs = LIMITS_MS.findLast((limit) => limit <= Math.max(ahead, behind))
  return limitMs === undefined ? undefined : { isAhead: ahead > behind, limitMs }
}

/** How far a host's clock is from this machine's. */
function rangeOf(own: HostClock | undefined): { readonly leastMs: number; readonly mostMs: number } | undefined {
  const clock = knownValue(own?.facts.clock)
  if (own?.untilMs === undefined || clock === undefined) return undefined
  return { leastMs: clock - own.untilMs, mostMs: clock - own.atMs }
}
