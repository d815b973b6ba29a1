/**
 * Runs one command on many hosts, some at a time, each with a time limit and exactly one end. It reaches hosts only through the
 * port `RunExec`, keeps and prints no output, and no host delays another.
 */
import type { Clock } from '../../base/clock.ts'
import { outcomeOf, type RunOutcome } from './outcome.ts'

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
  /** `durationMs`: of the command, or of the attempt if it never started. */
  | { readonly type: 'end'; readonly host: string; readonly outcome: RunOutcome; readonly durationMs: number }

export type RunOptions = {
  /** How many hosts are connected to or run the command at once. */
  readonly fanOut: number
  /** Counted from the start of the command; undefined: no limit. */
  readonly timeoutMs?: number
  readonly clock: Clock
  onEvent(event: RunEvent): void
}

type Turn = { readonly command: RunningCommand; stop(): void }

/** Begins at once. */
export class HostRun {
  /** Resolves when every host has ended, also after `abandon`. */
  readonly done: Promise<void>
  readonly #exec: RunExec
  readonly #options: RunOptions
  readonly #waiting: string[]
  readonly #turns = new Map<string, Turn>()
  readonly #resolve: () => void
  #isPaused = false

  constructor(hosts: readonly string[], exec: RunExec, options: RunOptions) {
    this.#exec = exec
    this.#options = options
    this.#waiting = [...hosts].reverse()
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

  /** Stops what runs, and starts nothing more. */
  stop(): void {
    for (const host of this.#waiting.splice(0).reverse()) this.#report(host, { kind: 'cancelled' }, 0)
    for (const turn of [...this.#turns.values()]) turn.stop()
    this.#next()
  }

  abandon(): void {
    this.#waiting.length = 0
    for (const { command } of this.#turns.values()) command.abandon()
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
    while (this.#turns.size < this.#options.fanOut) {
      const host = this.#waiting.pop()
      if (host === undefined) break
      this.#begin(host)
    }
    if (this.#turns.size === 0) this.#resolve()
  }

  #begin(host: string): void {
    const { clock, timeoutMs, onEvent } = this.#options
    let sinceMs = clock.now()
    let timer: Disposable | undefined
    /** Why Muster ended it, if it did. */
    let cause: 'timeout' | 'cancelled' | undefined
    const command = this.#exec.start(host, {
      onBegin: () => {
        sinceMs = clock.now()
        if (timeoutMs !== undefined) {
          timer = clock.after(timeoutMs, () => {
            cause ??= 'timeout'
            command.stop()
          })
        }
        onEvent({ type: 'begin', host })
      },
      onStdout: (bytes) => onEvent({ type: 'stdout', host, bytes }),
      onStderr: (bytes) => onEvent({ type: 'stderr', host, bytes }),
      onEnd: (end) => {
        timer?.[Symbol.dispose]()
        this.#turns.delete(host)
        this.#report(host, outcomeOf(end, cause), clock.now() - sinceMs)
        this.#next()
      },
    })
    this.#turns.set(host, {
      command,
      stop: () => {
        cause ??= 'cancelled'
        command.stop()
      },
    })
    if (this.#isPaused) command.pause()
  }

  #report(host: string, outcome: RunOutcome, durationMs: number): void {
    this.#options.onEvent({ type: 'end', host, outcome, durationMs })
  }
}
