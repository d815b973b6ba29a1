/** Which rank of a failed job failed first: the others end because of it, and their words are consequences. */

export type Failure = {
  /** `rank 3`, `ps 0`, `the launcher`. */
  readonly title: string
  readonly host: string
  readonly code: number
  readonly endedMs?: number | undefined
  readonly text?: string | undefined
  /** A launcher ends because its ranks do. */
  readonly isLauncher: boolean
}

/** What ranks say when another one has gone: gloo, NCCL, MPI, gRPC, and Python's own words for a closed connection. */
const CONSEQUENCE =
  /connection (was )?(closed|reset|refused)|closed by peer|remote process exited|socket timeout|heartbeat|broken ?pipe|unavailable: |lost communication|signal 15|sigterm/i
/** Ended by TERM: a launcher or Muster did it. */
const TERMINATED = 143
/** Clocks of hosts agree to about this. */
const CLOCKS_MS = 20
const MOST_NAMED = 4

/** The failures in the order of their likelihood to be the cause: the first one counts. */
export function rankFailures(failures: readonly Failure[]): readonly Failure[] {
  const weight = ({ text = '', code, isLauncher }: Failure) =>
    (isLauncher ? 4 : 0) + (code === TERMINATED ? 2 : 0) + (CONSEQUENCE.test(text) ? 1 : 0)
  return failures.toSorted(
    (one, other) => weight(one) - weight(other) || (one.endedMs ?? Infinity) - (other.endedMs ?? Infinity),
  )
}

/** `rank 1 on m2 failed first: exit 1, 1.2 s before the next: ValueError: bad batch`. Undefined: none failed. */
export function formatFirstFailure(failures: readonly Failure[]): string | undefined {
  const [first, second] = rankFailures(failures)
  if (first === undefined) return undefined
  const how = `exit ${first.code}`
  const why = first.text === undefined ? '' : `: ${first.text}`
  const { endedMs = Number.NaN } = first
  const close = failures.filter(
    (one) =>
      one !== first &&
      one.isLauncher === first.isLauncher &&
      !CONSEQUENCE.test(one.text ?? '') &&
      Math.abs((one.endedMs ?? Number.NaN) - endedMs) <= CLOCKS_MS,
  )
  if (close.length > 0) {
    const named = [first, ...close].slice(0, MOST_NAMED).map(({ title, host }) => `${title} on ${host}`)
    const more = close.length + 1 - named.length
    return `${named.join(', ')}${more > 0 ? ` and ${more} more` : ''} failed within ${CLOCKS_MS} ms of each other: ${how}${why}`
  }
  const later = failures
    .filter((one) => one !== first && !one.isLauncher)
    .map((one) => (one.endedMs ?? Number.NaN) - endedMs)
  const gap = Math.min(...later)
  const before =
    second !== undefined && gap > 0 && Number.isFinite(gap) ? `, ${(gap / 1000).toFixed(1)} s before the others` : ''
  return `${first.title} on ${first.host} failed first: ${how}${before}${why}`
}
