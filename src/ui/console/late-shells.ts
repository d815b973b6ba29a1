/**
 * A shell that opens after others were typed into (a connection that came back, a slow login, an added host) has not seen those
 * keys: the rest of a line, or a line for a program that runs on the others, would be a command of its own there. Such a host gets
 * no keys until its shell waits for a line as the others do, or until the user selects it.
 */
import { type Clock, hasPassed, remainingMs } from '../../base/clock.ts'
import type { ShellState } from '../../ssh/create-fleet.ts'
import { type ConsoleState, canReceive, isLive } from '../state/console-state.ts'
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

type LateShellsOptions = {
  readonly clock: Clock
  readonly state: () => ConsoleState
  /** Its shell and at least half of these wait at the same prompt, and nothing is typed after it. */
  isInStep(host: string, others: readonly string[]): boolean
  setBehind(host: string, isBehind: boolean): void
}

export class LateShells implements Disposable {
  readonly #options: LateShellsOptions
  /** Hosts whose shell got keys since it opened. */
  readonly #typed = new Set<string>()
  #isLineOpen = false
  #typedMs: number | undefined
  #timer: Disposable | undefined

  constructor(options: LateShellsOptions) {
    this.#options = options
  }

  /** After the state has it. */
  noteShell(host: string, { kind }: ShellState): void {
    if (kind !== 'open') return void this.#typed.delete(host)
    if (this.#typed.has(host) || !this.#mustWait(host)) return
    this.#options.setBehind(host, true)
    this.check()
  }

  /** `hosts`: those that got the bytes, and those that did not because their shells are late. */
  noteTyped(hosts: readonly string[], bytes: Uint8Array): void {
    for (const host of hosts) this.#typed.add(host)
    this.#isLineOpen = !ENDS.has(bytes.at(-1) ?? 0)
    this.#typedMs = this.#options.clock.now()
    this.check()
  }

  /** The user has selected these: they get keys at once. */
  noteSelected(hosts: Iterable<string>): void {
    const { hosts: known } = this.#options.state()
    for (const host of hosts) if (known.get(host)?.isBehind) this.#options.setBehind(host, false)
  }

  /** Screens have changed, or shells. */
  check(): void {
    const late = [...this.#options.state().hosts.values()].filter((host) => host.isBehind && isLive(host))
    if (late.length === 0) return
    const others = this.#others()
    for (const { host } of late) {
      const isReady =
        others.length === 0 ? !this.#isTyping() : !this.#isLineOpen && this.#options.isInStep(host, others)
      if (isReady) this.#options.setBehind(host, false)
    }
    if (others.length > 0 || !this.#isTyping()) return
    const { clock } = this.#options
    this.#timer?.[Symbol.dispose]()
    this.#timer = clock.after(remainingMs(this.#typedMs ?? 0, PAUSE_MS, clock.now()), () => this.check())
  }

  #mustWait(host: string): boolean {
    const state = this.#options.state()
    if (!comparedHosts(state).includes(host)) return false
    const others = this.#others().filter((each) => each !== host)
    return others.length === 0 ? this.#isTyping() : others.some((each) => this.#typed.has(each))
  }

  /** The receivers that get keys. */
  #others(): readonly string[] {
    const state = this.#options.state()
    return comparedHosts(state).filter((name) => {
      const host = state.hosts.get(name)
      return host !== undefined && canReceive(host)
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
