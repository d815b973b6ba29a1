/**
 * Closes panes some time after their shells have ended (`auto_close`), but not after a lost connection, which may come back, and not
 * before a run, a copy or the like on this host has ended.
 */
import { type Clock, hasPassed, remainingMs } from '../../base/clock.ts'
import { foldHostSet } from '../../inventory/host-set.ts'
import type { ShellState } from '../../ssh/create-fleet.ts'
import type { PageContext } from '../state/console-state.ts'
import { shellEnd } from './fleet-reducer.ts'

/** Panes whose shells ended this close together close with one message. */
const TOGETHER_MS = 250

type Ended = Extract<ShellState, { kind: 'ended' }>

type AutoCloseOptions = {
  readonly clock: Clock
  readonly context: Pick<PageContext, 'state' | 'log' | 'notice'>
  /** Seconds; 0: never. */
  afterS(): number
  /** Something beside its shell would end with the pane. */
  isBusy(host: string): boolean
  removeHosts(hosts: readonly string[]): void
}

export class AutoClose implements Disposable {
  readonly #options: AutoCloseOptions
  /** Hosts whose shell has ended, in that order. */
  readonly #ended = new Map<string, { readonly state: Ended; readonly atMs: number }>()
  /** Hosts whose shell got a key: without one, the user has not seen why it ended. */
  readonly #used = new Set<string>()
  #timer: Disposable | undefined

  constructor(options: AutoCloseOptions) {
    this.#options = options
  }

  noteTyped(hosts: readonly string[]): void {
    for (const host of hosts) this.#used.add(host)
  }

  noteShell(host: string, state: ShellState): void {
    this.#ended.delete(host)
    if (state.kind !== 'ended') {
      if (state.kind === 'opening') this.#used.delete(host)
      return
    }
    // The message of a shell that fails by itself stays on the screen.
    if (state.end.kind === 'lost' || (!this.#used.has(host) && !(state.end.kind === 'exit' && state.end.code === 0)))
      return
    this.#ended.set(host, { state, atMs: this.#options.clock.now() })
    this.#wait()
  }

  #wait(): void {
    const [first] = this.#ended.values()
    const afterS = this.#options.afterS()
    this.#timer?.[Symbol.dispose]()
    this.#timer = undefined
    if (first === undefined || afterS === 0) return
    const { clock } = this.#options
    const dueMs = remainingMs(first.atMs, afterS * 1000, clock.now()) + TOGETHER_MS
    this.#timer = clock.after(dueMs, () => this.#close(afterS))
  }

  #close(afterS: number): void {
    const { clock, context, isBusy, removeHosts } = this.#options
    const nowMs = clock.now()
    const due = [...this.#ended].filter(([host, { atMs }]) => hasPassed(atMs, afterS * 1000, nowMs) && !isBusy(host))
    const names = due.map(([host]) => host).filter((host) => context.state.hosts.has(host))
    for (const [host, { state }] of due) {
      this.#ended.delete(host)
      this.#used.delete(host)
      if (names.includes(host)) context.log(host, `closed ${afterS} s after its ${shellEnd(state.end)} (auto_close)`)
    }
    if (names.length > 0) {
      removeHosts(names)
      context.notice(
        `closed ${foldHostSet(names)}: ${names.length === 1 ? 'its shell has' : 'their shells have'} ended`,
      )
    }
    this.#wait()
  }

  [Symbol.dispose](): void {
    this.#timer?.[Symbol.dispose]()
  }
}
