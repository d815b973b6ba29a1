/**
 * The Network tab: live resources of the console's hosts, sampled over the shells' own connections from when it is first
 * opened. What is new is shown once a second, and only while somebody looks at it.
 */
import { messageOf } from '../../base/errors.ts'
import { printable } from '../../base/printable.ts'
import type { WatchedHost } from '../../ops/net/watch/watch-hosts.ts'
import type { lineChart } from '../charts/line-chart.ts'
import type { PaneView, Rect, Span } from '../compositor/scene.ts'
import { commandOf } from '../keys/key-table.ts'
import type { Page } from '../tabs/page.ts'
import type { PageContext } from '../tabs/page-context.ts'
import { labelStyle, type Theme } from '../theme/theme.ts'
import { TabRecordings } from './tab-recordings.ts'
import { changeWatch, recordingKeys } from './watch-keys.ts'
import { watchPanes } from './watch-panes.ts'
import { moveSelection, type WatchView } from './watch-view.ts'
import type { WatchedHosts } from './watched-hosts.ts'

const GATHER_MS = 100
const SHOW_EVERY_MS = 1000

export class NetworkPage implements Page {
  /** Samples come as output of hosts does. */
  readonly isIdle = true
  readonly busy = undefined
  readonly #context: PageContext
  readonly #watched: WatchedHosts
  readonly #subscription: Disposable
  #showing: Disposable | undefined
  #shownMs = 0
  #chart: typeof lineChart | undefined
  #isLoading = false
  #isDisposed = false
  readonly #recordings: TabRecordings
  #playing: Disposable | undefined

  constructor(context: PageContext, watched: WatchedHosts, environment: Readonly<Record<string, string | undefined>>) {
    this.#context = context
    this.#watched = watched
    this.#recordings = new TabRecordings(environment)
    this.#subscription = watched.changes.on((change) => {
      const ended = change && this.#recordings.write(change.host, change.sample)
      if (ended !== undefined) context.notice(ended, 'warning')
      this.#showSoon()
    })
  }

  open(): void {
    this.#loadChart()
    this.#watched.follow([...this.#context.state.hosts.keys()])
  }

  panes(rect: Rect, theme: Theme): readonly PaneView[] {
    const { state, clock } = this.#context
    const nowMs = this.#recordings.shown?.replay.nowMs ?? clock.now()
    const sign = this.#sign(theme)
    const look = { rect, theme, nowMs, chart: this.#chart, ...(sign === undefined ? {} : { sign }) }
    return watchPanes(this.#hosts(), state.watch.view, look)
  }

  handleKey(label: string): boolean {
    const { state } = this.#context
    const command = commandOf(recordingKeys, label)
    if (command !== undefined) return this.#record(command)
    const shown = this.#recordings.shown
    if (shown?.replay.handleKey(label) === true) return this.#redraw()
    const next = changeWatch(state.watch.view, this.#hosts(), label)
    if (next === undefined) return false
    if (next !== 'leave') this.#show(next)
    else if (shown === undefined) this.#context.showTab('shells')
    else {
      this.#recordings.leaveReplay()
      this.#redraw()
    }
    return true
  }

  scrollBy(rows: number): void {
    const { view } = this.#context.state.watch
    this.#show(moveSelection(view, this.#hosts(), Math.sign(rows)))
  }

  [Symbol.dispose](): void {
    this.#isDisposed = true
    this.#showing?.[Symbol.dispose]()
    this.#playing?.[Symbol.dispose]()
    this.#recordings[Symbol.dispose]()
    this.#subscription[Symbol.dispose]()
  }

  #record(command: 'record' | 'replay'): true {
    try {
      if (command === 'record') this.#context.notice(this.#recordings.toggle(this.#context.clock.now()))
      else {
        const words = this.#recordings.showOlder()
        if (words !== undefined) this.#context.notice(words, 'warning')
        this.#play()
      }
    } catch (error) {
      this.#context.notice(`the recording: ${printable(messageOf(error))}`, 'error')
    }
    return this.#redraw()
  }

  /** The time of what is shown again goes on. */
  #play(): void {
    this.#playing ??= this.#context.clock.after(SHOW_EVERY_MS, () => {
      this.#playing = undefined
      const shown = this.#recordings.shown
      if (shown === undefined) return
      if (shown.replay.advance(SHOW_EVERY_MS)) this.#redraw()
      this.#play()
    })
  }

  #show(view: WatchView): void {
    this.#context.change(({ watch }) => ({ watch: { ...watch, view } }))
  }

  #redraw(): true {
    this.#context.change(({ watch }) => ({ watch: { ...watch, revision: watch.revision + 1 } }))
    return true
  }

  #sign(theme: Theme): Span | undefined {
    const shown = this.#recordings.shown
    if (shown !== undefined) {
      const { replay, index, count } = shown
      const text = ` replay ${replay.title} · ${index + 1} of ${count} `
      return { text, style: labelStyle(theme, theme.receivingText, theme.receiving) }
    }
    if (!this.#recordings.isRecording) return undefined
    return { text: ' ● recording ', style: labelStyle(theme, theme.dangerText, theme.danger) }
  }

  #hosts(): readonly WatchedHost[] {
    return this.#recordings.shown?.replay.hosts() ?? this.#watched.hosts
  }

  #showSoon(): void {
    const { state, clock } = this.#context
    if (this.#isDisposed || state.tab !== 'network') return
    this.#watched.follow([...state.hosts.keys()])
    const waitMs = Math.max(GATHER_MS, this.#shownMs + SHOW_EVERY_MS - clock.now())
    this.#showing ??= clock.after(waitMs, () => {
      this.#showing = undefined
      this.#shownMs = clock.now()
      this.#redraw()
    })
  }

  #loadChart(): void {
    if (this.#isLoading) return
    this.#isLoading = true
    import('../charts/line-chart.ts').then(
      (module) => {
        this.#chart = module.lineChart
        this.#showSoon()
      },
      () => this.#context.notice('the charts cannot be loaded', 'error'),
    )
  }
}
