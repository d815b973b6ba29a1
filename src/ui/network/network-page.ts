/**
 * The Network tab: live resources of the console's hosts, sampled over the shells' own connections from when it is first
 * opened. What is new is shown at most four times a second, and only while somebody looks at it.
 */
import { OwnMachine } from '../../ops/net/watch/own-machine.ts'
import { HostWatch, type WatchedHost, type WatchPort } from '../../ops/net/watch/watch-hosts.ts'
import { formatOutcome } from '../../ops/run/outcome.ts'
import type { lineChart } from '../charts/line-chart.ts'
import type { PaneView, Rect } from '../compositor/compositor.ts'
import type { Console } from '../console/console.ts'
import type { Page } from '../tabs/page.ts'
import type { Theme } from '../theme/theme.ts'
import { changeWatch } from './change-watch.ts'
import { watchPanes } from './watch-panes.ts'

const SHOW_EVERY_MS = 250

export class NetworkPage implements Page {
  /** Samples come as output of hosts does. */
  readonly isIdle = true
  readonly busy = undefined
  readonly #console: Console
  #watch: HostWatch | undefined
  #own: OwnMachine | undefined
  #showing: Disposable | undefined
  #chart: typeof lineChart | undefined
  #isLoading = false
  #isDisposed = false

  constructor(console: Console) {
    this.#console = console
  }

  open(): void {
    const { state, ports } = this.#console
    const names = [...state.hosts.keys()]
    if (this.#watch !== undefined) return this.#watch.follow(names)
    const show = () => this.#showSoon()
    this.#watch = new HostWatch(names, {
      port: portOf(this.#console),
      clock: ports.clock,
      onSample: show,
      onTrouble: show,
    })
    const { clock, ownMachine } = ports
    if (ownMachine !== undefined) this.#own = new OwnMachine({ port: ownMachine, clock, onChange: show })
  }

  panes(rect: Rect, theme: Theme): readonly PaneView[] {
    const { state, ports } = this.#console
    return watchPanes(this.#hosts(), state.watch.view, { rect, theme, nowMs: ports.clock.now(), chart: this.#chart })
  }

  handleKey(label: string): boolean {
    const { state } = this.#console
    const next = changeWatch(state.watch.view, this.#hosts(), label)
    if (next === undefined) return false
    if (next === 'leave') this.#console.showTab('shells')
    else this.#console.change(({ watch }) => ({ watch: { ...watch, view: next } }))
    if (next !== 'leave' && next.isDetailed) this.#loadChart()
    return true
  }

  scrollBy(rows: number): void {
    this.handleKey(rows < 0 ? 'Up' : 'Down')
  }

  [Symbol.dispose](): void {
    this.#isDisposed = true
    this.#showing?.[Symbol.dispose]()
    this.#watch?.[Symbol.dispose]()
    this.#own?.[Symbol.dispose]()
  }

  #hosts(): readonly WatchedHost[] {
    return [...(this.#watch?.hosts ?? []), ...(this.#own === undefined ? [] : [this.#own.view])]
  }

  #showSoon(): void {
    const { state, ports } = this.#console
    if (this.#isDisposed || state.tab !== 'network') return
    this.#watch?.follow([...state.hosts.keys()])
    this.#showing ??= ports.clock.after(SHOW_EVERY_MS, () => {
      this.#showing = undefined
      this.#console.change(({ watch }) => ({ watch: { ...watch, revision: watch.revision + 1 } }))
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
