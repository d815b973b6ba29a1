/**
 * A shell that opens after others were typed into (a connection that came back, a slow login, an added host) has not seen those
 * keys: the rest of a line, or a line for a program that runs on the others, would be a command of its own there. Such a host gets
 * no keys until its shell waits for a line as the others do, or until the user selects it alone, or all hosts.
 */
import { type Clock, hasPassed, remainingMs } from '../../base/clock.ts'
import type { ShellState } from '../../ssh/create-fleet.ts'
import { type ConsoleState, isLive } from '../state/console-state.ts'
import { comparedHosts } from './divergence.ts'

/** Why a late shell does not get keys; `areAll`: no other host gets them, either. */
export const lateReason = (areAll: boolean): string =>
  areAll
    ? 'its shell is new and has not seen the beginning of the line'
    : 'its shell is new and gets no keys until it waits at the same prompt as the others'

/** Where no other host has a shell, the rest of a line may still be on its way from the fingers. */
const PAUSE_MS = 1000
/** Enter, and the keys that give a line up: Ctrl-C, Ctrl-D, Ctrl-Z, Ctrl-\. */
const ENDS: ReadonlySet<number> = new Set([0x0d, 0x0a, 0x03, 0x04, 0x1a, 0x1c])
/** Keys that put no text into a line: they delete (Backspace, Ctrl-U, Ctrl-K, Ctrl-W), move, or redraw (Ctrl-L). */
const ADDS_NOTHING = /^(?:[\x7f\b\x15\x0b\x17\x01\x05\x0c]|\x1b[[O][CDHF])+$/

type LateShellsOptions = {
  readonly clock: Clock
  readonly state: () => ConsoleState
  /** Its shell and at least half of these wait at the same prompt; they have answered since then, and nothing is typed after it. */
  isInStep(host: string, others: readonly string[], sinceMs: number): boolean
  setBehind(host: string, isBehind: boolean): void
}

export class LateShells implements Disposable {
  readonly #options: LateShellsOptions
  /** Hosts whose shell got keys since it opened. */
  readonly #typed = new Set<string>()
  /** They get no keys, unless they are selected alone. */
  readonly #late = new Set<string>()
  #isLineOpen = false
  #typedMs: number | undefined
  #timer: Disposable | undefined

  constructor(options: LateShellsOptions) {
    this.#options = options
  }

  has(host: string): boolean {
    return this.#late.size > 0 && this.#options.state().hosts.get(host)?.isBehind === true
  }

  /** After the state has it. */
  noteShell(host: string, { kind }: ShellState): void {
    if (kind !== 'open') {
      this.#typed.delete(host)
      this.#late.delete(host)
    } else if (!this.#typed.has(host) && this.#mustWait(host)) {
      this.#late.add(host)
      this.#show()
      this.check()
    }
  }

  /** `hosts`: those that got the bytes. */
  noteTyped(hosts: readonly string[], bytes: Uint8Array): void {
    for (const host of hosts) this.#typed.add(host)
    const text = Buffer.from(bytes).toString('latin1')
    if (ENDS.has(bytes.at(-1) ?? 0)) this.#isLineOpen = false
    else if (!ADDS_NOTHING.test(text)) this.#isLineOpen = true
    this.#typedMs = this.#options.clock.now()
    if (this.#late.size > 0 && this.#others().length === 0) this.check()
  }

  /** Other hosts receive: one that is alone now gets keys. */
  noteReceivers(): void {
    if (this.#late.size > 0) this.#show()
  }

  /** The user has selected all: they get keys at once. */
  letIn(): void {
    this.#late.clear()
    this.#show()
  }

  /** Screens have changed, or shells. */
  check(): void {
    if (this.#late.size === 0) return
    const others = this.#others()
    for (const host of this.#late) {
      const isReady =
        others.length === 0
          ? !this.#isTyping()
          : !this.#isLineOpen && this.#options.isInStep(host, others, this.#typedMs ?? 0)
      if (isReady) this.#late.delete(host)
    }
    this.#show()
    if (others.length > 0 || !this.#isTyping()) return
    const { clock } = this.#options
    this.#timer?.[Symbol.dispose]()
    this.#timer = clock.after(remainingMs(this.#typedMs ?? 0, PAUSE_MS, clock.now()), () => this.check())
  }

  #show(): void {
    const { state, setBehind } = this.#options
    const { hosts, receivers } = state()
    for (const { host, isBehind } of [...hosts.values()]) {
      const isAlone = hosts.size > 1 && receivers.size === 1 && receivers.has(host) && this.#others().length > 0
      const isLate = this.#late.has(host) && !isAlone
      if (isLate !== isBehind) setBehind(host, isLate)
    }
  }

  #mustWait(host: string): boolean {
    if (!comparedHosts(this.#options.state()).includes(host)) return false
    const others = this.#others().filter((each) => each !== host)
    return others.length === 0 ? this.#isTyping() : others.some((each) => this.#typed.has(each))
  }

  /** The receivers that are not late, also while one is selected alone. */
  #others(): readonly string[] {
    const state = this.#options.state()
    return comparedHosts(state).filter((name) => {
      const host = state.hosts.get(name)
      return host !== undefined && isLive(host) && !this.#late.has(name)
    })
  }

  /** In the middle of a line. */
  #isTyping(): boolean {
    const { clock } = this.#options
    return this.#isLineOpen && this.#typedMs !== undefined && !hasPassed(this.#typedMs, PAUSE_MS, clock.now())
  }

  [Symbol.dispose](): void {
    this.#timer?.[Symbol.dispose]()
  }
}
