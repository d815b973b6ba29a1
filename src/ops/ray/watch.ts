/** Watches a cluster: one program on the head asks its dashboard and prints a line of JSON each round. */
import { type Clock, hasPassed } from '../../base/clock.ts'
import { printable } from '../../base/printable.ts'
import { shellQuote } from '../../base/shell-quote.ts'
import { type OpsHosts, reasonOfResult } from '../kernel/host-port.ts'
import { formatOutcome, isSuccess } from '../run/outcome.ts'
import { inside } from './inside.ts'
import { parseJson, record, textOf } from './json.ts'
import { Lines, TOO_LONG } from './lines.ts'
import { placeScript } from './place.ts'
import { tokenScript } from './token.ts'
import { type ClusterUsage, parseClusterUsage } from './usage.ts'
import { dashboardAddress, type RayWanted } from './wanted.ts'
import { LOOK_S, ROUND_S, WATCH_PROGRAM } from './watch-program.ts'

/** The program prints more often than this, so a silent head is as good as gone. */
const SILENT_MS = (ROUND_S + LOOK_S + 2) * 1000
/** The program prints a few lines a second at most. */
const MOST_LINES_PER_SECOND = 100

export type RayUsageOptions = {
  readonly hosts: OpsHosts
  readonly clock: Clock
  readonly signal: AbortSignal
  readonly intervalMs: number
  /** 0: until the signal. */
  readonly rounds: number
  /** Undefined: the head did not answer this time; the reason is printable. */
  onUsage(usage: ClusterUsage | undefined, reason: string): void
  /** Called once each time the head falls silent. */
  onSilent(reason: string): void
}

/** Resolves with the reason (printable) when the head cannot be asked (any more), else undefined. */
export async function watchCluster(
  wanted: RayWanted,
  { hosts, clock, signal, intervalMs, rounds, onUsage, onSilent }: RayUsageOptions,
): Promise<string | undefined> {
  const { head, port } = wanted
  // After its GCS has gone, a dashboard repeats for a while what it knew.
  const gcs = head.ip === undefined ? '' : `${head.ip}:${port}`
  const script = `${placeScript(head.environment)}
[ -n "$py" ] || py=$(command -v python3) || { echo 'there is no python' >&2; exit 1; }
${tokenScript(wanted, head)}echo
exec "$py" -c ${shellQuote(WATCH_PROGRAM)} ${shellQuote(dashboardAddress(wanted))} ${intervalMs / 1000} ${rounds} ${shellQuote(gcs)}`
  let silence: Disposable | undefined
  const cut = new AbortController()
  let [secondBeganMs, lineCount] = [clock.now(), 0]
  const lines = new Lines(
    (line) => {
      if (hasPassed(secondBeganMs, 1000, clock.now())) [secondBeganMs, lineCount] = [clock.now(), 0]
      if (++lineCount > MOST_LINES_PER_SECOND) {
        lines.stop()
        return cut.abort()
      }
      silence?.[Symbol.dispose]()
      silence = clock.after(SILENT_MS, () => onSilent(`it has sent nothing for ${SILENT_MS / 1000} s`))
      if (line === '') return
      const answer = parseJson(line)
      onUsage(parseClusterUsage(answer), printable(textOf(record(answer)?.error)))
    },
    () => onUsage(undefined, TOO_LONG),
  )
  const result = await hosts.exec(head.host, inside(wanted, head, script, 'guarded'), {
    timeoutMs: Number.POSITIVE_INFINITY,
    signal: AbortSignal.any([signal, cut.signal]),
    onOutput: (stream, text) => {
      if (stream === 'stdout') lines.push(text)
    },
  })
  silence?.[Symbol.dispose]()
  if (cut.signal.aborted) return `it printed more than ${MOST_LINES_PER_SECOND} lines within a second, and was cut off`
  const { outcome } = result
  if (outcome.kind === 'cancelled' || isSuccess(outcome)) return undefined
  return printable(reasonOfResult(result, formatOutcome))
}
