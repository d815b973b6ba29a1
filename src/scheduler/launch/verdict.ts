/** Which rank of a failed job failed first: the others end because of it, and their words are consequences. */
import type { LostRank } from './rank.ts'

export type Failure = {
  /** `rank 3`, `ps 0`, `the launcher`. */
  readonly title: string
  readonly bundle: number
  readonly host: string
  /** Undefined: the rank was lost, or `hasReported`; `text` says how. */
  readonly code?: number
  readonly endedMs?: number | undefined
  /** By how much `endedMs` may be wrong, beside the other hosts. */
  readonly errorMs?: number | undefined
  readonly text?: string | undefined
  /** A launcher ends because its ranks do. */
  readonly isLauncher: boolean
  /** Of a launcher that failed: ranks that told no end, first the one that it names. */
  readonly lost?: readonly (LostRank & Pick<Failure, 'bundle' | 'host'>)[]
  /** Muster saw this failure first. That counts more than the clocks of hosts and what ranks printed. */
  readonly isSeenFirst?: boolean
  /** It told at `endedMs` that it failed, and went on: its exit code and last words may come from being stopped. */
  readonly hasReported?: boolean
  /** It ended by a signal, so it was probably stopped. If it failed first, it was not. */
  readonly isStopped?: boolean
}

/** What ranks say when another one has gone: gloo, NCCL, MPI, gRPC, PyTorch's stores, and Python's own words. */
const CONSEQUENCE = new RegExp(
  [
    'connection (was |has been )?(closed|reset|refused|aborted|lost)|closed by (remote )?peer|socket closed|broken ?pipe',
    'remote process (has )?(exited|exiting)|ncclRemoteError|NCCL communicator was aborted|lost communication',
    'socket ?timeout|heartbeat|watchdog caught|timed out (waiting|after)|has timed out|wait timeout|barrier timed out',
    'unavailable ?error|unavailable: |failed to connect to all addresses|collective ops is aborted|cancellederror',
    'the tasks? .*(crashed|is down|unavailable)|(has|have) been shut down|peer (has )?(failed|died)|ERR_PROC_FAILED',
    'got signal: ?15|signal 15|sigterm|assert .!closed. failed|demux engine error',
  ].join('|'),
  'i',
)
/** Ended by TERM: a launcher or Muster did it. */
const TERMINATED = 143
/** What it raised before, while it lingered. */
const RAISED = /^[A-Za-z_][\w.]*(Error|Exception|Failure)\b/
/** Of the clock of one host, and of others where nothing more exact is known. */
const CLOCK_MS = 20
/** How long a rank may need to end, memory dump included, after its connections broke. */
const LINGERS_MS = 10_000
const MOST_NAMED = 4
const LEAST_TOLD_MS = 50

const SIGNALS: Readonly<Record<number, string>> = {
  4: 'SIGILL',
  6: 'SIGABRT',
  7: 'SIGBUS',
  8: 'SIGFPE',
  9: 'SIGKILL',
  11: 'SIGSEGV',
  15: 'SIGTERM',
}

/** What to do about words of launchers that do not say it. */
const ADVICE: readonly (readonly [RegExp, string])[] = [
  // Of Debian 12: torch 1.13 with Python 3.11.
  [
    /^AttributeError: 'NoneType' object has no attribute 'get'$/,
    'This torchrun does not work with its Python; name another one with --torchrun',
  ],
]

/** A port that was free when it was asked for is taken when the launcher begins: another start may not meet that. */
const PORT_TAKEN = /EADDRINUSE|address (is )?already in use/i

export const isPortTaken = (text: string): boolean => PORT_TAKEN.test(text)

const isEnded = ({ isSeenFirst, code, text = '' }: Failure): boolean =>
  !isSeenFirst && code === TERMINATED && !RAISED.test(text)
const isConsequence = (one: Failure): boolean => !one.hasReported && (isEnded(one) || CONSEQUENCE.test(one.text ?? ''))

/** Whether it was stopped because the other one had told of its failure: it ended by a signal from then on, and raised nothing. */
export const isStoppedAfter = (one: Failure, { bundle, endedMs = Infinity }: Failure): boolean =>
  one.bundle !== bundle &&
  one.isStopped === true &&
  !RAISED.test(one.text ?? '') &&
  (one.endedMs ?? -Infinity) > endedMs - CLOCK_MS

/**
 * The failures in the order of their likelihood to be the cause: the first one counts. Words decide among those that ended about
 * when the first one did, as a rank that raises may end later than those that it takes with it; otherwise time does. A launcher
 * counts before ranks that it took with it when no rank had failed before it.
 */
export function rankFailures(failures: readonly Failure[]): readonly Failure[] {
  const earliestMs = Math.min(...failures.map(({ endedMs = Infinity }) => endedMs))
  const endedFirst = ({ endedMs = Infinity }: Failure) =>
    failures.every((one) => one.isLauncher || isEnded(one) || (one.endedMs ?? -Infinity) > endedMs)
  const weight = (one: Failure) => {
    if (one.isSeenFirst) return -1
    const isLate = (one.endedMs ?? earliestMs) - earliestMs > LINGERS_MS
    const ofLauncher = !one.isLauncher || one.hasReported ? 0 : !isConsequence(one) && endedFirst(one) ? 0.5 : 4
    return (isLate ? 16 : 0) + (isEnded(one) ? 8 : 0) + ofLauncher + (isConsequence(one) ? 1 : 0)
  }
  return failures.toSorted(
    (one, other) => weight(one) - weight(other) || (one.endedMs ?? Infinity) - (other.endedMs ?? Infinity),
  )
}

/** Milliseconds within which nothing can be said about their order. */
const doubtOf = (one: Failure, other: Failure): number =>
  one.host === other.host ? CLOCK_MS : Math.max(CLOCK_MS, (one.errorMs ?? 0) + (other.errorMs ?? 0))

/** `exit 137 (SIGKILL)`, `exit 1, 1.2 s before the others: ValueError: bad batch` */
export function endWords({ code, text }: Failure, before = '', why = text ?? ''): string {
  const signal = code === undefined ? undefined : SIGNALS[code - 128]
  const exit = code === undefined ? '' : `exit ${code}${signal === undefined ? '' : ` (${signal})`}${before}`
  return [exit, why].filter((part) => part !== '').join(': ')
}

/** `rank 1 on m2 failed first: exit 1, 1.2 s before the others: ValueError: bad batch`. Undefined: none failed. */
export function formatFirstFailure(failures: readonly Failure[]): string | undefined {
  const [first] = rankFailures(failures)
  if (first === undefined) return undefined
  const { text = '' } = first
  const advice = first.isLauncher ? ADVICE.find(([words]) => words.test(text))?.[1] : undefined
  const why = advice === undefined ? text : `${text}. ${advice}`
  const { endedMs = Number.NaN, lost = [] } = first
  // The launcher says that this rank ended before it.
  const mayFollow = lost.some(({ signal }) => signal !== undefined)
  const others = failures.filter((one) => one !== first && one.isLauncher === first.isLauncher)
  const apartMs = (one: Failure) => (one.endedMs ?? Number.NaN) - endedMs
  const close = others.filter(
    (one) =>
      isConsequence(one) === isConsequence(first) &&
      !(first.isSeenFirst && one.isStopped) &&
      Math.abs(apartMs(one)) <= doubtOf(first, one),
  )
  if (close.length > 0) {
    const named = [first, ...close].slice(0, MOST_NAMED).map(({ title, host }) => `${title} on ${host}`)
    const more = close.length + 1 - named.length
    const withinMs = Math.max(...close.map((one) => doubtOf(first, one)))
    return `${named.join(', ')}${more > 0 ? ` and ${more} more` : ''} failed within ${withinMs} ms of each other: ${endWords(first, '', why)}${lostWords(first)}`
  }
  const gapMs = Math.min(...others.map(apartMs))
  const isClear = Number.isFinite(gapMs) && gapMs > Math.max(LEAST_TOLD_MS, ...others.map((one) => doubtOf(first, one)))
  const before = isClear && !mayFollow ? `, ${(gapMs / 1000).toFixed(1)} s before the others` : ''
  return `${first.title} on ${first.host} failed${mayFollow ? '' : ' first'}: ${endWords(first, before, why)}${lostWords(first)}`
}

/** `; lost: rank 1 on m2 (SIGKILL, says mpirun), rank 4 on m3 and 2 more` */
function lostWords({ lost = [] }: Failure): string {
  if (lost.length === 0) return ''
  const named = lost.slice(0, MOST_NAMED).map(({ rank, host, signal }) => {
    const word = signal === undefined ? '' : ` (${SIGNALS[signal] ?? `signal ${signal}`}, says mpirun)`
    return `rank ${rank} on ${host}${word}`
  })
  const more = lost.length - named.length
  return `; lost: ${named.join(', ')}${more > 0 ? ` and ${more} more` : ''}`
}
