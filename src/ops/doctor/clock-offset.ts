/**
 * Measures how far a host's clock is from this machine's, with a few questions on one channel. The host reads its clock between
 * question and answer, so half a round trip bounds the error.
 */
import type { Exchange } from './host-port.ts'

export type ClockOffset = {
  /** Positive: the host's clock is ahead. */
  readonly offsetMs: number
  /** The true offset is no further away than this. */
  readonly uncertaintyMs: number
}

/** `time` asks for the host's clock, `echo` only for an answer. */
export const CLOCK_QUESTIONS = ['time', 'time', 'echo', 'time', 'time', 'time'] as const

/** A host that reads only whole seconds waits for the next second before it answers, at most this many times. */
const TICKS = 1

/**
 * For `sh -s`. Prints `MARK now` and then answers with nanoseconds since the epoch; or `MARK tick` if the host cannot read
 * fractions of a second, and then each answer is sent at the moment a second begins.
 */
export const clockScript = (mark: string): string => `{
exec 2> /dev/null
now=$(date +%s%N)
case $now in *[!0-9]* | '') now= ;; esac
if [ \${#now} -ge 18 ]; then
  printf '\\n${mark} now\\n'
  while read -r question; do
    if [ "$question" = time ]; then date +%s%N; else echo "$question"; fi
  done
elif perl -MTime::HiRes -e 1; then
  exec perl -MTime::HiRes=time -e '$| = 1; print "\\n${mark} now\\n"; while (<STDIN>) { if (/^time/) { printf "%.0f\\n", time * 1e9 } else { print } }'
else
  ticks=0
  printf '\\n${mark} tick\\n'
  while read -r question; do
    if [ "$question" = time ] && [ $ticks -lt ${TICKS} ]; then
      ticks=$((ticks + 1))
      before=$(date +%s)
      while now=$(date +%s); [ "$now" = "$before" ]; do :; done
      echo "\${now}000000000"
    else echo echo
    fi
  done
fi
exit 0
}
`

/** A loop that waits for the next second notices it about one start of \`date\` late. */
const LOOP_MS = 20
/** The clock of this machine is read in whole milliseconds. */
const RESOLUTION_MS = 1

/** `exchanges` come from `converse`, the readiness first. Undefined: the host gave no time. */
export function clockOffset(exchanges: readonly Exchange[]): ClockOffset | undefined {
  const [ready, ...answered] = exchanges
  const mode = ready?.answer.split(' ')[1]
  const times = answered.flatMap((exchange) => {
    const remoteMs = parseNanoseconds(exchange.answer)
    return remoteMs === undefined ? [] : [{ ...exchange, remoteMs }]
  })
  if (mode === 'tick') return offsetAtTick(answered, times)
  if (mode !== 'now') return undefined
  const candidates = times.map(({ remoteMs, sentAtMs, receivedAtMs }) => ({
    offsetMs: remoteMs - (sentAtMs + receivedAtMs) / 2,
    uncertaintyMs: (receivedAtMs - sentAtMs) / 2 + RESOLUTION_MS,
  }))
  return candidates.toSorted((one, other) => one.uncertaintyMs - other.uncertaintyMs)[0]
}

type Timed = Exchange & { readonly remoteMs: number }

/** The answer was sent when its second began: at most one fastest round trip before it arrived. */
function offsetAtTick(answered: readonly Exchange[], times: readonly Timed[]): ClockOffset | undefined {
  const tick = times[0]
  const trips = answered.flatMap(({ answer, sentAtMs, receivedAtMs }) =>
    answer === 'echo' ? [receivedAtMs - sentAtMs] : [],
  )
  if (tick === undefined || trips.length === 0) return undefined
  const trip = Math.min(...trips)
  return {
    offsetMs: tick.remoteMs - (tick.receivedAtMs - trip / 2),
    uncertaintyMs: trip / 2 + LOOP_MS + RESOLUTION_MS,
  }
}

function parseNanoseconds(answer: string): number | undefined {
  return /^\d{10,20}$/.test(answer) ? Number(BigInt(answer) / 1_000n) / 1000 : undefined
}
