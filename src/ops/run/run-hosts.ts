/**
 * Runs one command on many hosts, some at a time, each with a time limit and exactly one end. It reaches hosts only through the
 * port `RunExec`, keeps and prints no output, and no host delays another.
 */
import type { Clock } from '../../base/clock.ts'
import { isSuccess, outcomeOf, type RunOutcome } from './outcome.ts'

/** How the command ended on a host. */
export type CommandEnd =
  | { readonly kind: 'exit'; readonly code: number }
  | { readonly kind: 'signal'; readonly signal: string }
  | { readonly kind: 'unreachable' | 'refused'; readonly reason: string }
  | { readonly kind: 'cancelled' }

export type CommandHandlers = {
  onBegin(): void
  onStdout(bytes: Uint8Array): void
  onStderr(bytes: Uint8Array): void
  onEnd(end: CommandEnd): void
}

export interface RunningCommand {
  /** Stops the remote processes; `onEnd` follows. */
  stop(): void
  /** Hangs up at once; nothing follows. */
  abandon(): void
  pause(): void
  resume(): void
}

export interface RunExec {
  /** Never throws, and calls back only after it returned. */
  start(host: string, handlers: CommandHandlers): RunningCommand
}

export type RunEvent =
  /** The command has started; until then the host was being connected. */
  | { readonly type: 'begin'; readonly host: string }
  | { readonly type: 'stdout' | 'stderr'; readonly host: string; readonly bytes: Uint8Array }
  /** It failed there `failures` times in a row, now with this outcome, and starts again after the delay. */
  | {
      readonly type: 'retry'
      readonly host: string
      readonly outcome: RunOutcome
      readonly failures: number
      readonly delayMs: number
    }
  /** `durationMs`: of the command, or of the attempt if it never started. */
  | { readonly type: 'end'; readonly host: string; readonly outcome: RunOutcome; readonly durationMs: number }

export type RunOptions = {
  /** How many hosts are connected to or run the command at once. */
  readonly fanOut: number
  /** Counted from the start of the command, with `retryDelayMs` from the first attempt to reach the host; undefined: no limit. */
  readonly timeoutMs?: number
  /** After the first failure it starts on no more hosts. */
  readonly isFailFast?: boolean
  /** At most `size` hosts belong to a batch; the next one starts when all of them have ended. */
  readonly serial?: {
    readonly size: number
    /** Between two batches, with the hosts that are left; false: it starts on none of them. Never rejects. */
    mayGoOn(left: readonly string[]): Promise<boolean>
  }
  /** How long to wait after so many failures in a row on a host, until it succeeds or refuses; undefined: one attempt. */
  retryDelayMs?(failures: number): number
  readonly clock: Clock
  onEvent(event: RunEvent): void
}

type Turn = { readonly command: RunningCommand; hasBegun(): boolean; stop(cause: StopCause): void }

type StopCause = 'timeout' | 'cancelled'

/** A host where it failed and starts again, or has started again; `pause` is over then. */
type Retry = {
  readonly failures: number
  readonly outcome: RunOutcome
  readonly durationMs: number
  readonly pause: Disposable
}

/** Begins at once. */
export class HostRun {
  /** Resolves when every host has ended, also after `abandon`. */
  readonly done: Promise<void>
  readonly #exec: RunExec
  readonly #options: RunOptions
  readonly #waiting: string[]
  readonly #turns = new Map<string, Turn>()
  readonly #retries = new Map<string, Retry>()
  readonly #limits = new Map<string, Disposable>()
  readonly #resolve: () => void
  /** How many hosts of the batch are waiting. */
  #batchLeft: number
  #isBetweenBatches = false
  #isHalted = false
  #isPaused = false

  constructor(hosts: readonly string[], exec: RunExec, options: RunOptions) {
    this.#exec = exec
    this.#options = options
    this.#waiting = [...hosts].reverse()
    this.#batchLeft = options.serial?.size ?? hosts.length
    const { promise, resolve } = Promise.withResolvers<void>()
    this.done = promise
    this.#resolve = resolve
    this.#next()
  }

  get running(): readonly string[] {
    return [...this.#turns.keys()]
  }

  /** Hosts that have not started. */
  get waitingCount(): number {
    return this.#waiting.length
  }

  /** Hosts where it failed and that have not started again. */
  get retrying(): readonly string[] {
    return [...this.#retries.keys()].filter((host) => !this.#turns.has(host))
  }

  /** Starts the command nowhere any more; where it runs, it goes on. */
  halt(): void {
    if (this.#isHalted) return
    this.#isHalted = true
    for (const host of new Set([...this.#waiting.splice(0).reverse(), ...this.retrying])) this.#giveUp(host)
    for (const turn of [...this.#turns.values()]) if (!turn.hasBegun()) turn.stop('cancelled')
    this.#next()
  }

  /** Stops what runs, and starts nothing more. */
  stop(): void {
    this.halt()
    for (const turn of [...this.#turns.values()]) turn.stop('cancelled')
  }

  abandon(): void {
    this.#isHalted = true
    this.#waiting.length = 0
    for (const timer of this.#limits.values()) timer[Symbol.dispose]()
    for (const { pause } of this.#retries.values()) pause[Symbol.dispose]()
    for (const { command } of this.#turns.values()) command.abandon()
    this.#retries.clear()
    this.#turns.clear()
    this.#next()
  }

  /** Holds back the output of all hosts. */
  pause(): void {
    this.#isPaused = true
    for (const { command } of this.#turns.values()) command.pause()
  }

  resume(): void {
    this.#isPaused = false
    for (const { command } of this.#turns.values()) command.resume()
  }

  #next(): void {
    const { fanOut, serial } = this.#options
    while (this.#turns.size < fanOut && this.#batchLeft > 0) {
      const host = this.#waiting.pop()
      if (host === undefined) break
      this.#batchLeft -= 1
      this.#begin(host)
    }
    if (this.#turns.size + this.#retries.size > 0) return
    if (serial === undefined || this.#waiting.length === 0) return this.#resolve()
    if (this.#isBetweenBatches) return
    this.#isBetweenBatches = true
    void serial.mayGoOn(this.#waiting.toReversed()).then((goesOn) => {
      this.#isBetweenBatches = false
      this.#batchLeft = serial.size
      if (goesOn) this.#next()
      else this.halt()
    })
  }

  #begin(host: string): void {
    const { clock, retryDelayMs, onEvent } = this.#options
    let sinceMs = clock.now()
    let hasBegun = false
    /** Why Muster ended it, if it did. */
    let cause: StopCause | undefined
    if (retryDelayMs !== undefined) this.#limit(host)
    const command = this.#exec.start(host, {
      onBegin: () => {
        sinceMs = clock.now()
        hasBegun = true
        this.#limit(host)
        onEvent({ type: 'begin', host })
      },
      onStdout: (bytes) => onEvent({ type: 'stdout', host, bytes }),
      onStderr: (bytes) => onEvent({ type: 'stderr', host, bytes }),
      onEnd: (end) => {
        this.#turns.delete(host)
        const outcome = outcomeOf(end, cause)
        if (cause === undefined && this.#isWorthAnother(outcome)) this.#retry(host, outcome, clock.now() - sinceMs)
        else this.#report(host, outcome, clock.now() - sinceMs)
        this.#next()
      },
    })
    this.#turns.set(host, {
      command,
      hasBegun: () => hasBegun,
      stop: (why) => {
        cause ??= why
        command.stop()
      },
    })
    if (this.#isPaused) command.pause()
  }

  /** Starts the time limit of a host, unless it has started. */
  #limit(host: string): void {
    const { clock, timeoutMs } = this.#options
    if (timeoutMs === undefined || this.#limits.has(host)) return
    const end = (): void => {
      const turn = this.#turns.get(host)
      if (turn !== undefined) return turn.stop('timeout')
      const at = this.#waiting.indexOf(host)
      if (at >= 0) {
        this.#waiting.splice(at, 1)
        this.#batchLeft -= 1
      }
      this.#giveUp(host)
      this.#next()
    }
    this.#limits.set(host, clock.after(timeoutMs, end))
  }

  /** What a host refused, such as a password, is not tried again: it might lock the account. */
  #isWorthAnother(outcome: RunOutcome): boolean {
    return (
      this.#options.retryDelayMs !== undefined && !this.#isHalted && !isSuccess(outcome) && outcome.kind !== 'refused'
    )
  }

  #retry(host: string, outcome: RunOutcome, durationMs: number): void {
    const { clock, retryDelayMs, onEvent } = this.#options
    const failures = (this.#retries.get(host)?.failures ?? 0) + 1
    const delayMs = retryDelayMs?.(failures) ?? 0
    const pause = clock.after(delayMs, () => {
      this.#waiting.push(host)
      this.#batchLeft += 1
      this.#next()
    })
    this.#retries.set(host, { failures, outcome, durationMs, pause })
    onEvent({ type: 'retry', host, outcome, failures, delayMs })
  }

  /** The end of a host that does not start, or not again. */
  #giveUp(host: string): void {
    const last = this.#retries.get(host)
    this.#report(host, last?.outcome ?? { kind: 'cancelled' }, last?.durationMs ?? 0)
  }

  #report(host: string, outcome: RunOutcome, durationMs: number): void {
    for (const timer of [this.#limits.get(host), this.#retries.get(host)?.pause]) timer?.[Symbol.dispose]()
    this.#limits.delete(host)
    this.#retries.delete(host)
    this.#options.onEvent({ type: 'end', host, outcome, durationMs })
    if (this.#options.isFailFast && !isSuccess(outcome)) this.halt()
  }
}
