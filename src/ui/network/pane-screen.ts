/** Panes that fill the terminal, for a verb; at the end the terminal is as it was. */
import { systemClock } from '../../base/clock.ts'
import { DisposableStore } from '../../base/disposable.ts'
import type { WatchedHost } from '../../ops/net/watch/watch-hosts.ts'
import { createCellGrid } from '../../terminal/cells.ts'
import { LazyLineChart, type LineChart } from '../charts/lazy-line-chart.ts'
import type { ColourDepth } from '../compositor/colours.ts'
import { Compositor } from '../compositor/compositor.ts'
import { mutedStyle, type PaneView, type Rect, type Theme, type ThemeName, themes } from '../compositor/scene.ts'
import { InputDecoder, type KeyEvent } from '../keys/decode-input.ts'
import { hintsOf, keyLabel, keyTable } from '../keys/key-table.ts'
import { FIRST_TABLE_VIEW, filterAfterKey, type TableView, tableAfterKey, tableKeys } from '../rows/table-view.ts'
import { ThrottledAction } from '../rows/throttled-action.ts'
import { enterTerminal } from '../tty/terminal-session.ts'
import { TtyWriter } from '../tty/tty-writer.ts'
import { hostsFrame, shownHosts } from './watch-columns.ts'
import { watchPanes } from './watch-panes.ts'
import { changeWatch, FIRST_VIEW, type WatchView, watchKeys } from './watch-view.ts'

export type PaneContext = {
  readonly rect: Rect
  readonly theme: Theme
  /** Undefined: not loaded yet. */
  readonly chart: LineChart | undefined
}

export type PaneTerminal = {
  readonly stdin: NodeJS.ReadStream
  readonly stdout: NodeJS.WriteStream & { readonly fd: number }
  readonly themeName: ThemeName
  readonly colourDepth: ColourDepth
  readonly signal: AbortSignal
}

export type PaneScreenOptions = PaneTerminal & {
  panes(context: PaneContext): readonly PaneView[]
  /** For the frame of the last pane. */
  words(): string
  /** `leave`: the key leaves the screen; false: it does nothing here. */
  handleKey(label: string, event: KeyEvent): boolean | 'leave'
  /** Calls back when there is something new to draw, until disposed. */
  subscribe(changed: () => void): Disposable
}

/** After this long Esc is the key itself and not the beginning of a sequence. */
const ESCAPE_MS = 25
/** Each host reports once a second; what arrives together is drawn together. */
const GATHER_MS = 100
const DRAW_EVERY_MS = 1000

/** Resolves when the user has left and the terminal is as it was. */
export async function openPaneScreen(options: PaneScreenOptions): Promise<void> {
  const { stdin, stdout } = options
  const clock = systemClock
  using owned = new DisposableStore()
  const done = Promise.withResolvers<void>()
  const quit = (): void => done.resolve()
  const writer = owned.own(new TtyWriter(stdout))
  const compositor = owned.own(new Compositor({ writer, clock, colourDepth: options.colourDepth, isUtf8: true }))
  const theme = themes[options.themeName]
  let size = { columns: stdout.columns || 80, rows: stdout.rows || 24 }
  const chart = new LazyLineChart()

  const show = (): void => {
    const { columns, rows } = size
    const panes = options.panes({ rect: { column: 0, row: 0, width: columns, height: rows }, theme, chart: chart.draw })
    const badge = { text: ` ${options.words()} `, style: mutedStyle(theme) }
    const last = panes.at(-1)
    const badged = last === undefined ? [] : [...panes.slice(0, -1), { ...last, badges: [...last.badges, badge] }]
    const chrome = createCellGrid(columns, rows)
    compositor.setScene({ columns, rows, chrome, panes: badged, overlays: [], cursor: undefined })
    chart.load(() => drawing.now(), done.reject)
  }
  const drawing = owned.own(new ThrottledAction({ clock, everyMs: DRAW_EVERY_MS, gatherMs: GATHER_MS }, show))

  const decoder = new InputDecoder()
  const take = (events: ReturnType<InputDecoder['push']>): void => {
    for (const event of events) {
      if (event.type !== 'key' || event.isLate === true) continue
      const label = keyLabel(event.key)
      const taken = label === 'Ctrl-c' ? 'leave' : options.handleKey(label, event)
      if (taken === 'leave') return quit()
      if (taken) drawing.now()
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
        drawing.now()
      },
      onResume: () => compositor.redraw(),
      onFatal: quit,
    }),
  )
  owned.own(options.subscribe(() => drawing.soon()))
  drawing.now()
  if (options.signal.aborted) quit()
  options.signal.addEventListener('abort', quit, { once: true })
  await done.promise
  options.signal.removeEventListener('abort', quit)
}

export type WatchScreenOptions = PaneTerminal & {
  /** Called for each drawing. */
  hosts(): readonly WatchedHost[]
  /** Milliseconds since the epoch; in a replay, of the recording. */
  now(): number
  /** For keys that the table does not know: true when something has changed. */
  handleKey?(label: string): boolean
  /** In the frame, before the keys; undefined: nothing now. */
  title?(): string | undefined
  /** Calls back when there is something new to draw, until disposed. */
  subscribe(changed: () => void): Disposable
}

/** Resolves when the user has left and the terminal is as it was. */
export async function openWatchScreen(options: WatchScreenOptions): Promise<void> {
  let view: WatchView = FIRST_VIEW
  let table: TableView = FIRST_TABLE_VIEW
  const tables = () => ({ hosts: table, processes: FIRST_TABLE_VIEW })
  const tableAfter = (label: string, event: KeyEvent): TableView | undefined => {
    if (view.isDetailed) return undefined
    return table.isTyping
      ? filterAfterKey(table, label, event)
      : tableAfterKey(table, hostsFrame(options.hosts()), label)
  }
  await openPaneScreen({
    ...options,
    panes: (context) => watchPanes(options.hosts(), view, { ...context, nowMs: options.now(), tables: tables() }),
    words() {
      const frameOf = (each: WatchView) => (each.isDetailed ? undefined : hostsFrame(options.hosts()))
      // The filter has the room in the frame.
      if (table.filter.text !== '' || table.isTyping) return 'Esc clear filter'
      const hints = hintsOf([...watchKeys, ...tableKeys(frameOf, () => table), ...quitKeys], view).map(
        ([key, words]) => `${key} ${words}`,
      )
      return [options.title?.() ?? [], hints].flat().join(' · ')
    },
    handleKey(label, event) {
      const sorted = tableAfter(label, event)
      if (sorted !== undefined) {
        table = sorted
        return true
      }
      const next = changeWatch(view, { hosts: shownHosts(options.hosts(), table), processes: [] }, label)
      if (next === 'leave') return next
      if (next === undefined) return options.handleKey?.(label) === true
      view = next
      return true
    },
  })
}

const quitKeys = keyTable<WatchView>()(['quit', 'q', 'quit', '', ({ isDetailed }) => !isDetailed])
