/** Live resources of the console's hosts, from the first opening of the Network tab on; drawn once a second while shown. */
import { fileReason } from '../../base/errors.ts'
import { LazyLineChart } from '../charts/lazy-line-chart.ts'
import { labelStyle, type PaneView, type Rect, type Span, type Theme } from '../compositor/scene.ts'
import { commandOf, type KeyEntry, keyTable } from '../keys/key-table.ts'
import type { TableFrame } from '../rows/table-view.ts'
import { ThrottledAction } from '../rows/throttled-action.ts'
import { type ConsoleState, type PageContext, tableView } from '../state/console-state.ts'
import type { NetworkView } from './network-view.ts'
import { PROCESSES, processesFrame, shownProcesses } from './process-table.ts'
import { TabRecordings } from './tab-recordings.ts'
import { HOSTS, hostsFrame, shownHosts } from './watch-columns.ts'
import { watchPanes } from './watch-panes.ts'
import {
  changeWatch,
  keptSelection,
  lastOf,
  moveSelection,
  type WatchRows,
  type WatchState,
  type WatchView,
  watchKeys,
} from './watch-view.ts'
import type { WatchedHosts } from './watched-hosts.ts'

const isReplaying = ({ watch: { recording } }: ConsoleState): boolean => typeof recording !== 'string'
const isPaused = ({ watch: { recording } }: ConsoleState): boolean =>
  typeof recording !== 'string' && recording.isPaused

/** Only in the tab. */
const recordingKeys = keyTable<ConsoleState>()(
  ['record', 'r', 'record', 'Start recording the live data to a file.', ({ watch }) => watch.recording === 'off'],
  ['stop-recording', 'r', 'stop recording', 'Stop recording.', ({ watch }) => watch.recording === 'on'],
  ['pause', 'p', 'pause', 'Replay: pause.', (state) => isReplaying(state) && !isPaused(state)],
  ['continue', 'p', 'continue', 'Replay: continue.', isPaused],
  ['later', 'Right', 'skip 10 s', 'Replay: skip ten seconds.', isReplaying],
  ['earlier', 'Left', '', 'Replay: go back ten seconds.', isReplaying],
  ['replay', 'o', 'replay', 'Replay the newest recording; press again for the previous one.'],
)

const canGoBack = (state: ConsoleState): boolean => state.watch.view.isDetailed || isReplaying(state)

const backKeys = keyTable<ConsoleState>()([
  'back',
  'Esc q',
  'back',
  'Go back from the page of a host to the table, or from a replay to live data.',
  canGoBack,
])

export const liveKeys: readonly KeyEntry<ConsoleState>[] = [
  ...backKeys,
  ...watchKeys
    .filter(({ id }) => id !== 'back')
    .map(({ isActive, ...rest }) =>
      isActive === undefined ? rest : { ...rest, isActive: ({ watch }: ConsoleState) => isActive(watch.view) },
    ),
  ...recordingKeys,
]

/** The table of the hosts, or of the processes on the page of one. */
export function liveTable({ watch }: ConsoleState): TableFrame | undefined {
  return watch.view.isDetailed ? processesFrame(watch.processes) : hostsFrame(watch.hosts)
}

const tablesOf = (state: ConsoleState) => ({ hosts: tableView(state, HOSTS), processes: tableView(state, PROCESSES) })

export function watchRows(state: ConsoleState): WatchRows {
  const { hosts, view, processes } = state.watch
  const tables = tablesOf(state)
  const sample = hosts.filter(({ host }) => host === view.selected).map(lastOf)[0]
  return { hosts: shownHosts(hosts, tables.hosts), processes: shownProcesses(processes, sample, tables.processes) }
}

const GATHER_MS = 100
const SHOW_EVERY_MS = 1000

export class LiveView implements NetworkView {
  readonly #context: PageContext
  readonly #watched: WatchedHosts
  readonly #subscription: Disposable
  readonly #showing: ThrottledAction
  readonly #chart = new LazyLineChart()
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
    this.#chart.load(
      () => this.#showSoon(),
      () => this.#context.notice('cannot load the charts', 'error'),
    )
    this.#watched.follow([...this.#context.state.hosts.keys()])
    this.#update()
  }

  panes(rect: Rect, theme: Theme): readonly PaneView[] {
    const { watch, network } = this.#context.state
    const { hosts, view, recording } = watch
    const nowMs = typeof recording === 'string' ? this.#context.clock.now() : recording.nowMs
    const badge = badgeOf(recording, theme)
    return watchPanes(
      hosts,
      { ...view, marked: network.marked },
      {
        rect,
        theme,
        nowMs,
        chart: this.#chart.draw,
        tables: tablesOf(this.#context.state),
        processes: watch.processes,
        select: (chosen) => this.#show({ ...view, ...chosen }),
        ...(badge === undefined ? {} : { badge }),
      },
    )
  }

  handleKey(label: string): boolean | 'leave' {
    const { state } = this.#context
    const keys = recordingKeys.filter(({ isActive }) => isActive?.(state) !== false)
    const command = commandOf(keys, label)
    const shown = this.#recordings.shown
    if (shown?.replay.handleKey(label) === true) return this.#update()
    if (command !== undefined) return this.#record(command === 'replay')
    const next = changeWatch(state.watch.view, watchRows(state), label)
    if (next === undefined) return false
    if (next !== 'leave') this.#show(next)
    else if (shown === undefined) return 'leave'
    else {
      this.#recordings.leaveReplay()
      this.#update()
    }
    return true
  }

  scrollBy(rows: number): void {
    const { state } = this.#context
    this.#show(moveSelection(state.watch.view, watchRows(state), Math.sign(rows)))
  }

  keepRow(): void {
    const { state } = this.#context
    this.#show(keptSelection(state.watch.view, watchRows(state)))
  }

  [Symbol.dispose](): void {
    this.#isDisposed = true
    this.#showing[Symbol.dispose]()
    this.#playing?.[Symbol.dispose]()
    this.#recordings[Symbol.dispose]()
    this.#subscription[Symbol.dispose]()
  }

  #record(isReplay: boolean): true {
    try {
      if (!isReplay) this.#context.notice(this.#recordings.toggle(this.#context.clock.now()))
      else {
        const problem = this.#recordings.showOlder()
        if (problem !== undefined) this.#context.notice(problem, 'warning')
        this.#play()
      }
    } catch (error) {
      this.#context.notice(`cannot ${isReplay ? 'replay' : 'record'}: ${fileReason(error)}`, 'error')
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
    this.#update()
  }

  /** Only while the page of a host is shown, and not of a recording. */
  #followProcesses(): void {
    const { tab, network, watch } = this.#context.state
    const { isDetailed, selected } = watch.view
    const isShown = tab === 'network' && network.views.at(-1) === 'live' && isDetailed
    const host = this.#watched.hosts.find((one) => one.host === selected && one.isOwn !== true)?.host
    this.#watched.watchProcesses(isShown && this.#recordings.shown === undefined ? host : undefined)
  }

  #update(): true {
    const { shown, isRecording } = this.#recordings
    const replay = shown?.replay
    const hosts = replay?.hosts() ?? this.#watched.hosts
    const recording =
      shown === undefined || replay === undefined
        ? isRecording
          ? 'on'
          : 'off'
        : {
            title: replay.title,
            isPaused: replay.isPaused,
            index: shown.index,
            count: shown.count,
            nowMs: replay.nowMs,
          }
    this.#followProcesses()
    this.#context.change(({ watch }) => ({ watch: { ...watch, hosts, processes: this.#watched.processes, recording } }))
    return true
  }

  #showSoon(): void {
    const { state } = this.#context
    if (this.#isDisposed) return
    if (state.tab !== 'network') return this.#followProcesses()
    this.#watched.follow([...state.hosts.keys()])
    this.#showing.soon()
  }
}

function badgeOf(recording: WatchState['recording'], theme: Theme): Span | undefined {
  if (recording === 'off') return undefined
  if (recording === 'on') return { text: ' ● recording ', style: labelStyle(theme, theme.dangerText, theme.danger) }
  const text = ` replay ${recording.title} · ${recording.index + 1} of ${recording.count} `
  return { text, style: labelStyle(theme, theme.receivingText, theme.receiving) }
}
