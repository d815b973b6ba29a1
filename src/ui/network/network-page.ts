/**
 * The Network tab: live resources of the console's hosts, sampled over the shells' own connections from when it is first
 * opened. What is new is shown once a second, and only while somebody looks at it.
 */
import { messageOf } from '../../base/errors.ts'
import { printable } from '../../base/printable.ts'
import { OwnMachine } from '../../ops/net/watch/own-machine.ts'
import { HostWatch, type WatchedHost, type WatchPort } from '../../ops/net/watch/watch-hosts.ts'
import { formatOutcome } from '../../ops/run/outcome.ts'
import type { lineChart } from '../charts/line-chart.ts'
import type { PaneView, Rect, Span } from '../compositor/compositor.ts'
import type { Console } from '../console/console.ts'
import { commandOf } from '../keys/key-table.ts'
import type { Page } from '../tabs/page.ts'
import { labelStyle, type Theme } from '../theme/theme.ts'
import { changeWatch } from './change-watch.ts'
import { TabRecordings } from './tab-recordings.ts'
import { recordingKeys } from './watch-keys.ts'
import { watchPanes } from './watch-panes.ts'

const GATHER_MS = 100
const SHOW_EVERY_MS = 1000

export class NetworkPage implements Page {
  /** Samples come as output of hosts does. */
  readonly isIdle = true
  readonly busy = undefined
  readonly #console: Console
  #watch: HostWatch | undefined
  #own: OwnMachine | undefined
  #showing: Disposable | undefined
  #shownMs = 0
  #chart: typeof lineChart | undefined
  #isLoading = false
  #isDisposed = false
  readonly #recordings: TabRecordings
  #playing: Disposable | undefined

  constructor(console: Console) {
    this.#console = console
    this.#recordings = new TabRecordings(console.ports.environment)
  }

  open(): void {
    const { state, ports } = this.#console
    const names = [...state.hosts.keys()]
    this.#loadChart()
    if (this.#watch !== undefined) return this.#watch.follow(names)
    const show = () => this.#showSoon()
    this.#watch = new HostWatch(names, {
      port: portOf(this.#console),
      clock: ports.clock,
      onSample: (host, sample) => {
        const ended = this.#recordings.write(host, sample)
        if (ended !== undefined) this.#console.notice(ended, 'warning')
        show()
      },
      onTrouble: show,
    })
    const { clock, ownMachine } = ports
    if (ownMachine !== undefined) this.#own = new OwnMachine({ port: ownMachine, clock, onChange: show })
  }

  panes(rect: Rect, theme: Theme): readonly PaneView[] {
    const { state, ports } = this.#console
    const nowMs = this.#recordings.shown?.replay.nowMs ?? ports.clock.now()
    const sign = this.#sign(theme)
    const look = { rect, theme, nowMs, chart: this.#chart, ...(sign === undefined ? {} : { sign }) }
    return watchPanes(this.#hosts(), state.watch.view, look)
  }

  /** What is known of the hosts since the tab was first opened; nothing before. */
  get watched(): readonly WatchedHost[] {
    return this.#hosts()
  }

  handleKey(label: string): boolean {
    const { state } = this.#console
    const command = commandOf(recordingKeys, label)
    if (command !== undefined) return this.#record(command)
    const shown = this.#recordings.shown
    if (shown?.replay.handleKey(label) === true) return this.#redraw()
    const next = changeWatch(state.watch.view, this.#hosts(), label)
    if (next === undefined) return false
    if (next !== 'leave') this.#console.change(({ watch }) => ({ watch: { ...watch, view: next } }))
    else if (shown === undefined) this.#console.showTab('shells')
    else {
      this.#recordings.leaveReplay()
      this.#redraw()
    }
    return true
  }

  scrollBy(rows: number): void {
    this.handleKey(rows < 0 ? 'Up' : 'Down')
  }

  [Symbol.dispose](): void {
    this.#isDisposed = true
    this.#showing?.[Symbol.dispose]()
    this.#playing?.[Symbol.dispose]()
    this.#recordings[Symbol.dispose]()
    this.#watch?.[Symbol.dispose]()
    this.#own?.[Symbol.dispose]()
  }

  #record(command: 'record' | 'replay'): true {
    const { ports } = this.#console
    try {
      if (command === 'record') this.#console.notice(this.#recordings.toggle(ports.clock.now()))
      else {
        const words = this.#recordings.showOlder()
        if (words !== undefined) this.#console.notice(words, 'warning')
        this.#play()
      }
    } catch (error) {
      this.#console.notice(`the recording: ${printable(messageOf(error))}`, 'error')
    }
    return this.#redraw()
  }

  /** The time of what is shown again goes on. */
  #play(): void {
    this.#playing ??= this.#console.ports.clock.after(SHOW_EVERY_MS, () => {
      this.#playing = undefined
      const shown = this.#recordings.shown
      if (shown === undefined) return
      if (shown.replay.advance(SHOW_EVERY_MS)) this.#redraw()
      this.#play()
    })
  }

  #redraw(): true {
    this.#console.change(({ watch }) => ({ watch: { ...watch, revision: watch.revision + 1 } }))
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
    const shown = this.#recordings.shown
    if (shown !== undefined) return shown.replay.hosts()
    return [...(this.#watch?.hosts ?? []), ...(this.#own === undefined ? [] : [this.#own.view])]
  }

  #showSoon(): void {
    const { state, ports } = this.#console
    if (this.#isDisposed || state.tab !== 'network') return
    this.#watch?.follow([...state.hosts.keys()])
    const waitMs = Math.max(GATHER_MS, this.#shownMs + SHOW_EVERY_MS - ports.clock.now())
    this.#showing ??= ports.clock.after(waitMs, () => {
      this.#showing = undefined
      this.#shownMs = ports.clock.now()
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
      () => this.#console.notice('the charts cannot be loaded', 'error'),
    )
  }
}

/** The script as a command beside the shell of a host. */
function portOf({ ports }: Console): WatchPort {
  return {
    start(host, script, { onText, onEnd }) {
      const decoder = new TextDecoder()
      // The script has no apostrophe and no per cent sign.
      return ports.work.startCommand(host, `exec /bin/sh -c '${script}'`, {
        onBegin() {},
        onStdout: (bytes) => onText(decoder.decode(bytes, { stream: true })),
        onStderr() {},
        onEnd: (end) => onEnd(formatOutcome(end)),
      })
    },
  }
}
