/**
 * A command on many hosts, from start to end: keeps the output and folds it into groups. Comparing and searching take turns
 * with the keyboard.
 */
import type { Clock } from '../../base/clock.ts'
import { KeptOutput, type OutputText } from '../../ops/run/kept-output.ts'
import type { HostOutput } from '../../ops/run/output-store.ts'
import { HostRun, type RunEvent } from '../../ops/run/run-hosts.ts'
import { unifiedDiff } from '../../ops/run/unified-diff.ts'
import { findIn } from './run-document.ts'
import {
  failedHosts,
  foldRun,
  groupOf,
  isRunning,
  majority,
  type RunGroup,
  type RunView,
  reduceRun,
  restartRun,
  startRun,
} from './run-view.ts'
import type { WorkPort } from './work-port.ts'

export type RunWorkOptions = {
  readonly command: string
  readonly hosts: readonly string[]
  readonly clock: Clock
  readonly by: RunView['by']
  readonly port: Pick<WorkPort, 'startCommand' | 'fanOut' | 'spillDirectory'>
  /** `refresh` would find something new. */
  onDirty(): void
  /** More output cannot be kept; the run goes on. */
  onTrouble(reason: string): void
}

/** Of each output. */
const COMPARED_LINES = 5000
const DIFFERENCE_LINES = 2000
/** Lines searched in one turn. */
const SEARCH_LINES = 5000

type Place = NonNullable<RunView['hit']>
type ComparedText = { readonly lines: readonly string[]; readonly isCut: boolean }

export class RunWork implements Disposable {
  readonly #options: RunWorkOptions
  readonly #output: KeptOutput
  readonly #digests = new Map<string, string>()
  readonly #differences = new Map<string, readonly string[]>()
  #majority: (ComparedText & { readonly digest: string }) | undefined
  #comparing: NodeJS.Immediate | undefined
  #search: object | undefined
  #run: HostRun | undefined
  #isDisposed = false
  view: RunView

  constructor(options: RunWorkOptions) {
    this.#options = options
    this.#output = new KeptOutput(options.port.spillDirectory, options.onTrouble)
    this.view = startRun(options.command, options.hosts, options.by)
    this.#start(options.hosts, false)
  }

  get isBusy(): boolean {
    return isRunning(this.view)
  }

  get isIdle(): boolean {
    return this.#comparing === undefined && this.#search === undefined
  }

  get retryable(): string[] {
    return failedHosts(this.view)
  }

  text(host: string): OutputText {
    return this.#output.text(host)
  }

  outputs(): ReadonlyMap<string, HostOutput> {
    return new Map([...this.view.hosts.keys()].map((host) => [host, this.#output.of(host)]))
  }

  /** Folds the output so far into groups. */
  refresh(): void {
    this.view = foldRun(this.view, (host) => this.#digest(host))
    if (this.view.isDiff) this.#compareSoon()
  }

  /** A diff from the majority's output; undefined: not compared yet. */
  difference(group: RunGroup): readonly string[] | undefined {
    return this.#differences.get(this.#pair(group))
  }

  stop(): void {
    if (!this.isBusy) return
    this.view = { ...this.view, isStopping: true }
    this.#run?.stop()
  }

  restart(hosts: readonly string[]): void {
    for (const host of hosts) {
      this.#output.forget(host)
      this.#digests.delete(host)
    }
    this.#differences.clear()
    this.view = restartRun(this.view, hosts)
    this.#start(hosts, true)
  }

  /** The next match, from the last one or the selected group on, wrapping around; undefined: none, or a newer search. */
  async find(needle: string, by: 1 | -1): Promise<RunView['hit']> {
    let hit: RunView['hit']
    await this.#scan(needle, this.#places(by), (place) => {
      hit = place
      return true
    })
    return hit
  }

  /** Which of all matches this one is, in the order of the groups; undefined: a newer search. */
  async count(needle: string, hit: NonNullable<RunView['hit']>): Promise<RunView['matches']> {
    let [at, of] = [0, 0]
    const isWhole = await this.#scan(needle, this.#lines(), ({ host, line }) => {
      of += 1
      if (host === hit.host && line === hit.line) at = of
      return false
    })
    return isWhole && at > 0 ? { at, of } : undefined
  }

  /** Ends at the first match for which `onMatch` returns true. False: a newer search has begun. */
  async #scan(needle: string, places: Iterable<Place>, onMatch: (place: Place) => boolean): Promise<boolean> {
    const token = {}
    this.#search = token
    let count = 0
    for (const place of places) {
      if (findIn(this.#output.text(place.host).line(place.line).text, needle) >= 0 && onMatch(place)) break
      count += 1
      if (count % SEARCH_LINES > 0) continue
      await new Promise((resolve) => setImmediate(resolve))
      if (this.#search !== token) return false
    }
    this.#search = undefined
    return true
  }

  [Symbol.dispose](): void {
    this.#isDisposed = true
    this.#search = undefined
    if (this.#comparing) clearImmediate(this.#comparing)
    this.#run?.abandon()
    this.#output[Symbol.dispose]()
  }

  #start(hosts: readonly string[], isRetry: boolean): void {
    const { clock, port, onDirty } = this.#options
    const { command } = this.view
    this.#run = new HostRun(
      hosts,
      { start: (host, handlers) => port.startCommand(host, command, handlers, isRetry) },
      { fanOut: port.fanOut, clock, onEvent: (event) => this.#handle(event) },
    )
    onDirty()
  }

  #handle(event: RunEvent): void {
    if (this.#isDisposed) return
    const { clock, onDirty } = this.#options
    if (event.type === 'stdout' || event.type === 'stderr') this.#keep(event.host, event.type, event.bytes)
    else this.view = reduceRun(this.view, event, clock.now())
    onDirty()
  }

  #keep(host: string, stream: 'stdout' | 'stderr', bytes: Uint8Array): void {
    this.#output.push(host, stream, bytes)
    this.#digests.delete(host)
    if (this.view.matches !== undefined) this.view = { ...this.view, matches: undefined }
  }

  #digest(host: string): string {
    const known = this.#digests.get(host)
    if (known !== undefined) return known
    const digest = this.#output.digest(host)
    this.#digests.set(host, digest)
    return digest
  }

  #pair(group: RunGroup): string {
    return `${majority(this.view)?.digest ?? ''}\n${group.digest}`
  }

  /** One pair of outputs a turn. */
  #compareSoon(): void {
    const against = majority(this.view)
    const next = this.view.groups.find(
      (group) => group !== against && group.state.kind === 'ended' && this.difference(group) === undefined,
    )
    if (this.#comparing || against === undefined || next === undefined) return
    this.#comparing = setImmediate(() => {
      this.#comparing = undefined
      const difference = this.#compare(against, next)
      this.#differences.set(this.#pair(next), difference)
      this.#compareSoon()
      this.#options.onDirty()
    })
  }

  #compare(against: RunGroup, group: RunGroup): readonly string[] {
    const before = this.#comparedMajority(against)
    const after = this.#compared(group)
    const lines = unifiedDiff(before.lines, after.lines)
    if (lines.length === 0 && !before.isCut && !after.isCut) return ['(same output)']
    const shown = lines.slice(0, DIFFERENCE_LINES)
    const notes = [
      ...(lines.length > shown.length ? [`[… ${lines.length - shown.length} more lines]`] : []),
      ...(before.isCut || after.isCut ? [`[… compared only the first ${COMPARED_LINES} lines]`] : []),
    ]
    return [...shown, ...notes]
  }

  /** Keeps the majority's lines: all others are compared with them. */
  #comparedMajority(group: RunGroup): ComparedText {
    if (this.#majority?.digest !== group.digest) {
      this.#majority = { digest: group.digest, ...this.#compared(group) }
      this.#differences.clear()
    }
    return this.#majority
  }

  #compared({ hosts }: RunGroup): ComparedText {
    const text = this.#output.text(hosts[0] ?? '')
    const count = Math.min(text.lineCount, COMPARED_LINES)
    const lines = Array.from({ length: count }, (_, index) => {
      const line = text.line(index)
      return line.kind === 'stderr' ? `! ${line.text}` : line.text
    })
    return { lines, isCut: text.lineCount > count }
  }

  *#lines(): Generator<Place> {
    for (const { hosts } of this.view.groups) {
      const host = hosts[0] ?? ''
      for (let line = 0; line < this.#output.text(host).lineCount; line++) yield { host, line }
    }
  }

  /** Every line of every group, in the order of the search. */
  *#places(by: 1 | -1): Generator<Place> {
    const hosts = this.view.groups.map((group) => group.hosts[0] ?? '')
    const from = this.view.hit
    const start = Math.max(0, hosts.indexOf(groupOf(this.view, from?.host ?? this.view.selected)?.hosts[0] ?? ''))
    for (let step = 0; step <= hosts.length; step += 1) {
      const host = hosts[(((start + by * step) % hosts.length) + hosts.length) % hosts.length]
      if (host === undefined) return
      const { lineCount } = this.#output.text(host)
      let line = by > 0 ? 0 : lineCount - 1
      if (step === 0 && from !== undefined) line = from.line + by
      for (; line >= 0 && line < lineCount; line += by) yield { host, line }
    }
  }
}
