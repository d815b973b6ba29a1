/** The Network tab: live resources of the console's hosts, from its first opening on. It is drawn once a second while shown. */
import { closeSync, openSync, readdirSync, readFileSync, statSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { messageOf } from '../../base/errors.ts'
import { foreignDirectory } from '../../base/foreign-place.ts'
import { printable } from '../../base/printable.ts'
import { stateDirectory } from '../../base/user-directories.ts'
import { parseRecording, Replay, recordingLine } from '../../ops/net/watch/recording.ts'
import type { Sample } from '../../ops/net/watch/sample.ts'
import type { lineChart } from '../charts/line-chart.ts'
import { labelStyle, type PaneView, type Rect, type Span, type Theme } from '../compositor/scene.ts'
import { createRecordingDirectory } from '../console/recording.ts'
import { commandOf, type KeyEntry, keyTable } from '../keys/key-table.ts'
import { ThrottledAction } from '../rows/throttled-action.ts'
import type { ConsoleState, Page, PageContext } from '../state/console-state.ts'
import { watchPanes } from './watch-panes.ts'
import { changeWatch, moveSelection, type WatchState, type WatchView, watchKeys } from './watch-view.ts'
import type { WatchedHosts } from './watched-hosts.ts'

const REPLAY_HELP =
  'Replay the newest recording; press again for the previous one. `p` pauses, Left and Right skip ten seconds, `q` leaves.'

/** Only in the tab. */
const recordingKeys = keyTable<ConsoleState>()(
  ['record', 'r', 'record', 'Start recording what the tab shows to a file, or stop.'],
  ['replay', 'o', 'replay', REPLAY_HELP],
)

export const networkKeys: readonly KeyEntry<ConsoleState>[] = [
  ...watchKeys.map(({ isActive, ...rest }) =>
    isActive === undefined ? rest : { ...rest, isActive: ({ watch }: ConsoleState) => isActive(watch.view) },
  ),
  ...recordingKeys,
]

const GATHER_MS = 100
const SHOW_EVERY_MS = 1000

export class NetworkPage implements Page {
  /** Samples arrive like the output of hosts. */
  readonly isIdle = true
  readonly busy = undefined
  readonly #context: PageContext
  readonly #watched: WatchedHosts
  readonly #subscription: Disposable
  readonly #showing: ThrottledAction
  #chart: typeof lineChart | undefined
  #isLoading = false
  #isDisposed = false
  readonly #recordings: TabRecordings
  #playing: Disposable | undefined

  constructor(context: PageContext, watched: WatchedHosts, environment: Readonly<Record<string, string | undefined>>) {
    this.#context = context
    this.#watched = watched
    this.#recordings = new TabRecordings(environment)
    const every = { clock: context.clock, everyMs: SHOW_EVERY_MS, gatherMs: GATHER_MS }
    this.#showing = new ThrottledAction(every, () => this.#update())
    this.#subscription = watched.changes.on((change) => {
      const ended = change && this.#recordings.write(change.host, change.sample)
      if (ended !== undefined) context.notice(ended, 'warning')
      this.#showSoon()
    })
  }

  open(): void {
    this.#loadChart()
    this.#watched.follow([...this.#context.state.hosts.keys()])
    this.#update()
  }

  panes(rect: Rect, theme: Theme): readonly PaneView[] {
    const { hosts, view, recording } = this.#context.state.watch
    const nowMs = typeof recording === 'string' ? this.#context.clock.now() : recording.nowMs
    const badge = badgeOf(recording, theme)
    return watchPanes(hosts, view, {
      rect,
      theme,
      nowMs,
      chart: this.#chart,
      ...(badge === undefined ? {} : { badge }),
    })
  }

  handleKey(label: string): boolean {
    const { state } = this.#context
    const command = commandOf(recordingKeys, label)
    if (command !== undefined) return this.#record(command)
    const shown = this.#recordings.shown
    if (shown?.replay.handleKey(label) === true) return this.#update()
    const next = changeWatch(state.watch.view, state.watch.hosts, label)
    if (next === undefined) return false
    if (next !== 'leave') this.#show(next)
    else if (shown === undefined) this.#context.showTab('shells')
    else {
      this.#recordings.leaveReplay()
      this.#update()
    }
    return true
  }

  scrollBy(rows: number): void {
    const { view, hosts } = this.#context.state.watch
    this.#show(moveSelection(view, hosts, Math.sign(rows)))
  }

  [Symbol.dispose](): void {
    this.#isDisposed = true
    this.#showing[Symbol.dispose]()
    this.#playing?.[Symbol.dispose]()
    this.#recordings[Symbol.dispose]()
    this.#subscription[Symbol.dispose]()
  }

  #record(command: 'record' | 'replay'): true {
    try {
      if (command === 'record') this.#context.notice(this.#recordings.toggle(this.#context.clock.now()))
      else {
        const problem = this.#recordings.showOlder()
        if (problem !== undefined) this.#context.notice(problem, 'warning')
        this.#play()
      }
    } catch (error) {
      this.#context.notice(`cannot ${command}: ${printable(messageOf(error))}`, 'error')
    }
    return this.#update()
  }

  /** Moves the replay on with the clock. */
  #play(): void {
    this.#playing ??= this.#context.clock.after(SHOW_EVERY_MS, () => {
      this.#playing = undefined
      const shown = this.#recordings.shown
      if (shown === undefined) return
      if (shown.replay.advance(SHOW_EVERY_MS)) this.#update()
      this.#play()
    })
  }

  #show(view: WatchView): void {
    this.#context.change(({ watch }) => ({ watch: { ...watch, view } }))
  }

  #update(): true {
    const { shown, isRecording } = this.#recordings
    const hosts = shown?.replay.hosts() ?? this.#watched.hosts
    const recording =
      shown === undefined
        ? isRecording
          ? 'on'
          : 'off'
        : { title: shown.replay.title, index: shown.index, count: shown.count, nowMs: shown.replay.nowMs }
    this.#context.change(({ watch }) => ({ watch: { ...watch, hosts, recording } }))
    return true
  }

  #showSoon(): void {
    const { state } = this.#context
    if (this.#isDisposed || state.tab !== 'network') return
    this.#watched.follow([...state.hosts.keys()])
    this.#showing.soon()
  }

  #loadChart(): void {
    if (this.#isLoading) return
    this.#isLoading = true
    import('../charts/line-chart.ts').then(
      (module) => {
        this.#chart = module.lineChart
        this.#showSoon()
      },
      () => this.#context.notice('cannot load the charts', 'error'),
    )
  }
}

function badgeOf(recording: WatchState['recording'], theme: Theme): Span | undefined {
  if (recording === 'off') return undefined
  if (recording === 'on') return { text: ' ● recording ', style: labelStyle(theme, theme.dangerText, theme.danger) }
  const text = ` replay ${recording.title} · ${recording.index + 1} of ${recording.count} `
  return { text, style: labelStyle(theme, theme.receivingText, theme.receiving) }
}

const FILE = 'network.jsonl'
/** Half a day of 64 hosts; `muster net watch --record` can write more. */
const MOST_BYTES = 2 ** 30
/** A replay is read as a whole. */
const MOST_READ_BYTES = 2 ** 28

type Environment = Readonly<Record<string, string | undefined>>

export type Shown = { readonly replay: Replay; readonly index: number; readonly count: number }

export class TabRecordings implements Disposable {
  readonly #environment: Environment
  #file: { readonly descriptor: number; readonly path: string } | undefined
  #writtenBytes = 0
  #shown: Shown | undefined

  constructor(environment: Environment) {
    this.#environment = environment
  }

  get isRecording(): boolean {
    return this.#file !== undefined
  }

  get shown(): Shown | undefined {
    return this.#shown
  }

  /** Starts or stops a recording; returns the notice about it. */
  toggle(nowMs: number): string {
    const file = this.#file
    if (file !== undefined) {
      this.#end()
      return `recorded to ${file.path}; o replays it`
    }
    const path = join(createRecordingDirectory(this.#environment, nowMs), FILE)
    this.#file = { descriptor: openSync(path, 'wx', 0o600), path }
    this.#writtenBytes = 0
    return `recording to ${path}`
  }

  /** Returns a notice when the recording has ended by itself. */
  write(host: string, sample: Sample): string | undefined {
    const file = this.#file
    if (file === undefined) return undefined
    const line = recordingLine({ host, sample })
    try {
      writeSync(file.descriptor, line)
      this.#writtenBytes += line.length
      if (this.#writtenBytes < MOST_BYTES) return undefined
      this.#end()
      return `recording stopped: ${file.path} has reached ${MOST_BYTES / 2 ** 30} GiB`
    } catch (error) {
      this.#end()
      return `recording stopped: ${printable(messageOf(error))}`
    }
  }

  /** Opens the newest recording, or the one before the present one; returns a sentence when there is none. */
  showOlder(): string | undefined {
    const paths = this.#paths()
    const index = this.#shown === undefined ? 0 : this.#shown.index + 1
    const path = paths[index]
    if (path === undefined) {
      return this.#shown === undefined ? 'no recordings yet: r records' : 'no older recording'
    }
    if (statSync(path).size > MOST_READ_BYTES) {
      return `${path} is too large for the tab. Run: muster net watch --replay ${path}`
    }
    const lines = parseRecording(readFileSync(path, 'utf8'))
    if (lines.length === 0) return `${path} is empty`
    this.#shown = { replay: new Replay(lines), index, count: paths.length }
    return undefined
  }

  leaveReplay(): void {
    this.#shown = undefined
  }

  [Symbol.dispose](): void {
    this.#end()
  }

  #end(): void {
    if (this.#file !== undefined) closeSync(this.#file.descriptor)
    this.#file = undefined
  }

  /** Newest first, without the one being written. */
  #paths(): string[] {
    const directory = join(stateDirectory(this.#environment), 'recordings')
    try {
      if (foreignDirectory(directory) !== undefined) return []
      const names = readdirSync(directory).toSorted().toReversed()
      return names
        .map((name) => join(directory, name, FILE))
        .filter((path) => path !== this.#file?.path && statSync(path, { throwIfNoEntry: false })?.isFile())
    } catch {
      return []
    }
  }
}
