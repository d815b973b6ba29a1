/**
 * A shell that opens after others were typed into (a connection that came back, a slow login, an added host) has not seen those
 * keys: the rest of a line, or a line for a program that runs on the others, would be a command of its own there. Such a host gets
 * no keys beside others until no line is half typed and its shell waits for one as theirs do. Once the others have run commands, equal
 * prompts prove nothing: it has none of their variables and nested shells. Then only the user lets it in.
 * A host whose last shell got a whole line lacks what that shell had (a directory, variables, a program). Only the user lets its new
 * shell in, alone or beside others; one that is let in alone is not let in beside older shells. If only the beginning of a line was
 * lost, its rest goes nowhere. late-shells-model.test.ts plays random losses and selections against these rules.
 */
import type { Clock } from '../../base/clock.ts'
import { getOrMake } from '../../base/collections.ts'
import type { ShellState } from '../../ssh/create-fleet.ts'
import { type ConsoleState, getsKeysBeside, isLive } from '../state/console-state.ts'

/** Why a late shell does not get keys. */
export const lateReason = (
  { lostInput }: Pick<ConsoleState, 'lostInput'>,
  { hasMissed = false }: { readonly hasMissed?: boolean } = {},
): string =>
  lostInput === 'line'
    ? 'a line, or its beginning, reached no shell'
    : lostInput === 'shell'
      ? 'its shell is new and lacks what ran in the last one'
      : hasMissed
        ? 'it missed what the others got'
        : 'its shell is new and lacks what the others ran'

const ENTERS = [0x0d, 0x0a] as const
const CTRL_U = 0x15
/** Enter, and the keys that give a line up: Ctrl-C, Ctrl-U. */
const ENDS: ReadonlySet<number> = new Set([...ENTERS, 0x03, CTRL_U])
/** Ctrl-A, Ctrl-B, and whatever else begins with Esc: keys that may move the cursor back. */
const MOVES = /[\x01\x02\x1b]/
const MOST_OPEN_LINES = 100
/** Keys that neither put text into a line nor end one everywhere: they delete (Backspace, Ctrl-D, Ctrl-K, Ctrl-W), move, redraw (Ctrl-L), stop (Ctrl-Z, Ctrl-\). */
const ADDS_NOTHING = /^(?:[\x7f\b\x04\x0b\x17\x01\x05\x0c\x1a\x1c]|\x1b[[O][CDHF])+$/

type LateShellsOptions = {
  readonly clock: Clock
  readonly state: () => ConsoleState
  /** Its shell and at least half of these wait at the same prompt; they have answered since their last key, and nothing is typed after it. */
  isInStep(host: string, others: readonly string[], lastKeyMs: (host: string) => number): boolean
  /** Its screen has changed at this time or later. */
  hasChangedSince(host: string, atMs: number): boolean
  /** Its shell waits at a prompt, whatever is typed after it; no program runs in it. */
  isAtPrompt(host: string): boolean
  /** The connections to these hosts were lost before they showed anything of their last lines, to the last of them just now. */
  onLostLines(hosts: readonly string[], lines: number): void
  update(patch: Partial<ConsoleState>): void
}

/** What is typed at a prompt, as far as keys tell. */
class TypedLine {
  /** Something was typed after the last key that ends a line. */
  isOpen = false
  /** The cursor may stand within it: Ctrl-U leaves what is behind. */
  #isWithin = false

  /** True: it ends there. */
  note(bytes: Uint8Array): boolean {
    const text = Buffer.from(bytes).toString('latin1')
    const last = bytes.at(-1) ?? 0
    const isWithin = (this.#isWithin || MOVES.test(text)) && (this.isOpen || bytes.length > 1)
    const isEnd = ENDS.has(last) && !(isWithin && last === CTRL_U)
    this.isOpen = !isEnd && (this.isOpen || !ADDS_NOTHING.test(text))
    this.#isWithin = !isEnd && isWithin
    return isEnd
  }
}

export class LateShells {
  readonly #options: LateShellsOptions
  /** Hosts whose shell got keys since it opened, and when it got the last one. */
  readonly #typedMs = new Map<string, number>()
  /** Hosts whose shell got a whole line, which may have been `cd` or `export`. */
  readonly #gotLines = new Set<string>()
  /** When each line was entered of which the host has shown nothing yet. */
  readonly #openMs = new Map<string, readonly number[]>()
  /** Hosts whose connection was lost before they showed anything of so many last lines. */
  readonly #lostLines = new Map<string, number>()
  /** Hosts whose last shell had got whole lines when it ended, and those that were let in alone: they have got nothing beside an older one. */
  readonly #renewed = new Set<string>()
  /** In which order shells opened and got their first keys. */
  readonly #opened = new Map<string, number>()
  readonly #firstTyped = new Map<string, number>()
  #turn = 0
  /** Hosts whose last shell had got a whole line, or had half a line while others were selected: only the user lets their new shells in. */
  readonly #lost = new Set<string>()
  /** Those of them whose shells ended before their connections, as after `exit`: the user may open new ones. */
  readonly #ended = new Set<string>()
  /** Late hosts that are without a line that others have run: only the user lets them in. */
  readonly #missed = new Set<string>()
  /** How often a shell of the host has ended or begun to open. */
  readonly #changes = new Map<string, number>()
  /** Of what was typed into any host, or none. */
  readonly #line = new TypedLine()
  /** Of each host. */
  readonly #lines = new Map<string, TypedLine>()

  constructor(options: LateShellsOptions) {
    this.#options = options
  }

  /** After the state has it. */
  noteShell(host: string, shell: ShellState): void {
    const state = this.#options.state()
    const { kind } = shell
    const isLost = kind === 'ended' && shell.end.kind === 'lost'
    const lines = isLost ? this.#openLines(host).length : 0
    if (lines > 0) {
      this.#lostLines.set(host, lines)
      const alike = [...this.#lostLines].filter(([, count]) => count === lines)
      this.#options.onLostLines(
        alike.map(([name]) => name),
        lines,
      )
    }
    if (state.receivers.has(host) && !getsKeysBeside(state, host)) this.#noteLast(host, shell)
    // The rest of its line may be typed when it is selected again.
    const isCut = !state.receivers.has(host) && this.#lines.get(host)?.isOpen === true
    if (isCut || (kind === 'ended' && this.#gotLines.has(host))) {
      this.#lost.add(host)
      if (kind === 'ended' && !isLost) this.#ended.add(host)
    }
    if (kind !== 'open') this.#forgetShell(host)
    const lacksOwn = this.#lost.has(host)
    if (kind === 'open') {
      this.#lines.delete(host)
      this.#opened.set(host, ++this.#turn)
      this.#ended.delete(host)
      // It is not let in beside older shells.
      if (this.#isAlone(host)) this.#renewed.add(host)
    }
    if (kind === 'open' && !this.#typedMs.has(host) && (lacksOwn || this.#mustWait(host))) {
      if (lacksOwn || this.#others().some((name) => this.#gotLines.has(name))) this.#missed.add(host)
      this.#setLate((name) => name === host, true)
    }
    this.check()
  }

  /** The user closed the host, and so knows that its next shell is new. */
  noteRemoved(host: string): void {
    this.#forgetShell(host)
    this.#lines.delete(host)
    this.#lost.delete(host)
    this.#ended.delete(host)
    this.#missed.delete(host)
  }

  #forgetShell(host: string): void {
    if (this.#gotLines.has(host)) this.#renewed.add(host)
    this.#changes.set(host, this.#changeOf(host) + 1)
    this.#typedMs.delete(host)
    this.#firstTyped.delete(host)
    this.#gotLines.delete(host)
    this.#openMs.delete(host)
  }

  /** The user opens new shells in place of those that have ended, and so knows that they are new. */
  noteAsked(hosts: readonly string[]): void {
    for (const host of hosts) if (this.#ended.delete(host)) this.#lost.delete(host)
  }

  /** Returns a function that tells later whether a host still has the shell that it has now. */
  remember(hosts: readonly string[]): (host: string) => boolean {
    const known = new Map(hosts.map((host) => [host, this.#changeOf(host)]))
    return (host) => known.get(host) === this.#changeOf(host)
  }

  #changeOf(host: string): number {
    return this.#changes.get(host) ?? 0
  }

  /** `hosts`: those that got the bytes. */
  noteTyped(hosts: readonly string[], bytes: Uint8Array): void {
    const nowMs = this.#options.clock.now()
    for (const host of hosts) {
      this.#typedMs.set(host, nowMs)
      if (!this.#firstTyped.has(host)) this.#firstTyped.set(host, ++this.#turn)
    }
    for (const host of hosts) if (hosts.some((other) => this.#isOlder(other, host))) this.#renewed.delete(host)
    const entered = bytes.filter((byte) => ENTERS.some((key) => key === byte)).length
    const hasLine = (host: string) => bytes.length > 1 || this.#lines.get(host)?.isOpen === true
    const withLines = entered === 0 ? [] : hosts.filter(hasLine)
    for (const host of hosts) getOrMake(this.#lines, host, () => new TypedLine()).note(bytes)
    if (withLines.length > 0)
      for (const { host, isLate } of this.#options.state().hosts.values())
        if (isLate && !hosts.includes(host)) this.#missed.add(host)
    for (const host of withLines) {
      this.#gotLines.add(host)
      this.#openMs.set(host, [...this.#openLines(host), ...Array<number>(entered).fill(nowMs)].slice(-MOST_OPEN_LINES))
    }
    if (this.#options.state().lostInput === 'shell' && hosts.length === 0) return
    if (this.#line.note(bytes)) this.#endLine()
  }

  /** After the key that ends the line that was lost; undefined: none was, or it is not among these. */
  endOfLost(bytes: Uint8Array): number | undefined {
    if (this.#options.state().lostInput !== 'line') return undefined
    const at = bytes.findIndex((byte) => ENDS.has(byte))
    return at < 0 ? undefined : at + 1
  }

  /** Others are selected: a shell that opened, or was let in, while it was alone or no receiver may now be beside older ones. */
  noteReceivers(): void {
    const { hosts } = this.#options.state()
    const all = this.#receiving()
    // The rest of a line that was lost may be typed whenever they are selected again.
    if (this.#options.state().lostInput === 'line')
      for (const { host, isLate } of hosts.values()) if (isLate && !all.includes(host)) this.#missed.add(host)
    const others = all.filter((name) => hosts.get(name)?.isLate !== true)
    const olderThan = (name: string) => others.filter((other) => this.#isOlder(other, name))
    const renewed = all.filter((name) => this.#renewed.has(name) && this.#isOpen(name) && olderThan(name).length > 0)
    if (renewed.length === 0) return
    for (const name of renewed) if (olderThan(name).some((other) => this.#gotLines.has(other))) this.#missed.add(name)
    this.#setLate((name) => renewed.includes(name), true)
    this.check()
  }

  /** These did not get what others got, though they have shells. */
  noteMissed(hosts: readonly string[]): void {
    if (hosts.length === 0) return
    for (const host of hosts) this.#missed.add(host)
    this.#setLate((host) => hosts.includes(host), true, true)
    this.check()
  }

  /** The user wants these to get keys at once. */
  letIn(hosts: readonly string[]): void {
    this.#lostLines.clear()
    for (const host of hosts) this.#lost.delete(host)
    // One that is let in alone is not let in beside older shells.
    for (const host of hosts)
      if (getsKeysBeside(this.#options.state(), host)) this.#renewed.delete(host)
      else this.#renewed.add(host)
    this.#options.update({ lostInput: undefined })
    this.#setLate((host) => hosts.includes(host), false)
  }

  /** Screens have changed. */
  check(): void {
    const late = [...this.#options.state().hosts.values()].filter(({ isLate }) => isLate)
    if (late.length === 0 || this.#line.isOpen || this.#options.state().lostInput !== undefined) return
    const others = this.#others()
    if (others.some((name) => this.#lines.get(name)?.isOpen)) return
    const isReady = (host: string): boolean =>
      !this.#missed.has(host) &&
      (others.length === 0 || this.#options.isInStep(host, others, (name) => this.#typedMs.get(name) ?? 0))
    const ready = new Set(late.flatMap(({ host }) => (isReady(host) ? host : [])))
    if (ready.size === 0) return
    if (others.length > 0) for (const host of ready) this.#renewed.delete(host)
    this.#setLate((host) => ready.has(host), false)
  }

  /** No other host gets keys. */
  #noteLast(host: string, shell: ShellState): void {
    const { state, update, isAtPrompt } = this.#options
    const isLost = shell.kind === 'ended' && shell.end.kind === 'lost' && this.#typedMs.has(host)
    if (isLost && (this.#gotLines.has(host) || !isAtPrompt(host))) update({ lostInput: 'shell' })
    else if ((this.#line.isOpen || this.#lines.get(host)?.isOpen) && state().lostInput === undefined)
      update({ lostInput: 'line' })
  }

  /** It got keys before the other's shell opened. */
  #isOlder(host: string, than: string): boolean {
    return (this.#firstTyped.get(host) ?? Number.POSITIVE_INFINITY) < (this.#opened.get(than) ?? 0)
  }

  #openLines(host: string): readonly number[] {
    return (this.#openMs.get(host) ?? []).filter((atMs) => !this.#options.hasChangedSince(host, atMs))
  }

  #endLine(): void {
    this.#lostLines.clear()
    const { lostInput, receivers } = this.#options.state()
    if (lostInput !== undefined) this.#options.update({ lostInput: undefined })
    // All that its last shell had is this line.
    if (lostInput === 'line') this.letIn([...receivers].filter((host) => this.#isAlone(host) && !this.#lost.has(host)))
    this.check()
  }

  #setLate(isMeant: (host: string) => boolean, isLate: boolean, hasMissed = false): void {
    const { state, update } = this.#options
    if (!isLate) for (const host of state().hosts.keys()) if (isMeant(host)) this.#missed.delete(host)
    update({
      hosts: state().hosts.map((known) =>
        known.isLate !== isLate && isMeant(known.host) ? { ...known, isLate, hasMissed } : known,
      ),
    })
  }

  #isAlone(host: string): boolean {
    const { receivers } = this.#options.state()
    return receivers.size === 1 && receivers.has(host)
  }

  #mustWait(host: string): boolean {
    const state = this.#options.state()
    if (state.lostInput !== undefined) return state.receivers.has(host)
    if (this.#isAlone(host)) return false
    return this.#receiving().includes(host) && this.#others().some((each) => each !== host && this.#typedMs.has(each))
  }

  /** The receivers, also those that are left out while some are selected for a moment. */
  #receiving(): readonly string[] {
    const { hosts, receivers, receiversBeforeSolo } = this.#options.state()
    return [...hosts.keys()].filter((host) => receivers.has(host) || receiversBeforeSolo?.has(host) === true)
  }

  /** Those of them that are not late. */
  #others(): readonly string[] {
    const { hosts } = this.#options.state()
    return this.#receiving().filter((name) => this.#isOpen(name) && hosts.get(name)?.isLate !== true)
  }

  #isOpen(name: string): boolean {
    const host = this.#options.state().hosts.get(name)
    return host !== undefined && isLive(host)
  }
}
