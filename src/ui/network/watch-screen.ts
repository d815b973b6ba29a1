/** The watched hosts on a terminal of their own: compositor, keys, and everything given back at the end. */
import { type Clock, systemClock } from '../../base/clock.ts'
import { DisposableStore } from '../../base/disposable.ts'
import type { WatchedHost } from '../../ops/net/watch/watch-hosts.ts'
import { createCellGrid } from '../../terminal/cells.ts'
import type { lineChart } from '../charts/line-chart.ts'
import type { ColourDepth } from '../compositor/colours.ts'
import { createCompositor } from '../compositor/create-compositor.ts'
import { InputDecoder } from '../keys/decode-input.ts'
import { keyLabel } from '../keys/key-label.ts'
import { hintsOf } from '../keys/key-table.ts'
import { mutedStyle, type ThemeName, themes } from '../theme/theme.ts'
import { enterTerminal } from '../tty/terminal-session.ts'
import { createTtyWriter } from '../tty/tty-writer.ts'
import { changeWatch } from './change-watch.ts'
import { watchKeys } from './watch-keys.ts'
import { watchPanes } from './watch-panes.ts'
import { FIRST_VIEW, type WatchView } from './watch-view.ts'

export type WatchScreenOptions = {
  readonly stdin: NodeJS.ReadStream
  readonly stdout: NodeJS.WriteStream & { readonly fd: number }
  readonly themeName: ThemeName
  readonly colourDepth: ColourDepth
  readonly signal: AbortSignal
  /** What is known now; asked each time something is drawn. */
  hosts(): readonly WatchedHost[]
  /** Milliseconds since the epoch; that of what is shown, where that is long ago. */
  now(): number
  /** Keys that mean nothing to the view: true when something has changed. */
  handleKey?(label: string): boolean
  /** Besides the hosts, into the frame. */
  title?(): string
  /** Calls back when there is something new, until it is disposed of. */
  subscribe(changed: () => void): Disposable
}

/** A lone Esc is taken for itself after this long. */
const ESCAPE_MS = 25
/** Samples of many hosts come one by one. */
const GATHER_MS = 100

/** Resolves when the user has left and the terminal is as it was. */
export async function openWatchScreen(options: WatchScreenOptions): Promise<void> {
  const { stdin, stdout } = options
  const clock: Clock = systemClock
  using owned = new DisposableStore()
  const done = Promise.withResolvers<void>()
  const quit = (): void => done.resolve()
  const writer = owned.own(createTtyWriter(stdout))
  const compositor = owned.own(createCompositor({ writer, clock, colourDepth: options.colourDepth, isUtf8: true }))
  const theme = themes[options.themeName]
  let size = { columns: stdout.columns || 80, rows: stdout.rows || 24 }
  let view: WatchView = FIRST_VIEW
  let chart: typeof lineChart | undefined
  let isLoading = false
  let timer: Disposable | undefined

  const draw = (): void => {
    const { columns, rows } = size
    const rect = { column: 0, row: 0, width: columns, height: rows }
    const panes = watchPanes(options.hosts(), view, { rect, theme, nowMs: options.now(), chart })
    const hints = hintsOf(watchKeys, view).map(([key, words]) => `${key} ${words}`)
    const words = [...(options.title === undefined ? [] : [options.title()]), ...hints].join(' · ')
    const last = panes.length - 1
    const badged = panes.map((pane, index) =>
      index === last ? { ...pane, badges: [...pane.badges, { text: ` ${words} `, style: mutedStyle(theme) }] } : pane,
    )
    compositor.setScene({
      columns,
      rows,
      chrome: createCellGrid(columns, rows),
      panes: badged,
      overlays: [],
      cursor: undefined,
    })
  }
  const drawSoon = (): void => {
    timer ??= clock.after(GATHER_MS, () => {
      timer = undefined
      draw()
    })
  }
  const loadChart = (): void => {
    if (isLoading) return
    isLoading = true
    import('../charts/line-chart.ts').then((module) => {
      chart = module.lineChart
      drawSoon()
    }, done.reject)
  }

  const decoder = new InputDecoder()
  const take = (events: ReturnType<InputDecoder['push']>): void => {
    for (const event of events) {
      if (event.type !== 'key') continue
      const label = keyLabel(event.key)
      if (label === 'Ctrl-c') return quit()
      const next = changeWatch(view, options.hosts(), label)
      if (next === 'leave') return quit()
      if (next !== undefined) view = next
      else if (options.handleKey?.(label) !== true) continue
      if (view.isDetailed) loadChart()
      draw()
    }
  }
  let escapeTimer: Disposable | undefined
  owned.own(
    enterTerminal({
      stdin,
      stdout,
      writer,
      mouse: false,
      onInput(bytes) {
        escapeTimer?.[Symbol.dispose]()
        take(decoder.push(bytes))
        if (decoder.isWaiting) escapeTimer = clock.after(ESCAPE_MS, () => take(decoder.flush()))
      },
      onResize(columns, rows) {
        size = { columns, rows }
        draw()
      },
      onResume: () => compositor.redraw(),
      onFatal: quit,
    }),
  )
  owned.own(options.subscribe(drawSoon))
  owned.defer(() => timer?.[Symbol.dispose]())
  draw()
  if (options.signal.aborted) quit()
  options.signal.addEventListener('abort', quit, { once: true })
  await done.promise
  options.signal.removeEventListener('abort', quit)
}
