/** The tab Log: what happened, newest at the bottom; long lines are wrapped. */
import { clipName, padEnd, textWidth } from '../../base/text-width.ts'
import { daySecondText, dayText, secondText } from '../../base/time-text.ts'
import {
  boldStyle,
  mutedStyle,
  type PaneView,
  type Rect,
  styleOf,
  type Theme,
  themes,
  toneColour,
} from '../compositor/scene.ts'
import { commandOf, keyTable } from '../keys/key-table.ts'
import {
  documentOf,
  documentRows,
  firstRow,
  type Row,
  type RowDocument,
  rowsPane,
  type ScrollPlace,
  wrapRows,
} from '../rows/rows-pane.ts'
import { findHost, orderText, shownRows, type TableColumn, type TableFrame } from '../rows/table-view.ts'
import { type ConsoleState, type LogEntry, type Page, type PageContext, tableView } from '../state/console-state.ts'

export const logKeys = keyTable<ConsoleState>()(
  ['up', 'Up k', '', 'Scroll one line up.'],
  ['down', 'Down j', '', 'Scroll one line down.'],
  ['page-up', 'PageUp b', 'older', 'Scroll one page up.'],
  ['page-down', 'PageDown Space', 'newer', 'Scroll one page down.'],
  ['first', 'Home g', 'first', 'Go to the oldest line.'],
  ['last', 'End G', 'last', 'Go to the newest line, and follow it.'],
)

export class LogPage implements Page {
  readonly isIdle = true
  readonly busy = []
  readonly #context: PageContext

  constructor(context: PageContext) {
    this.#context = context
  }

  /** The newest line is in view. */
  open(): void {
    this.#context.change(() => ({ logOffset: undefined }))
  }

  panes(rect: Rect, theme: Theme): readonly PaneView[] {
    const { state } = this.#context
    const view = tableView(state, LOG)
    const document = this.#document(rect.width - 2, theme)
    const order = orderText(view, [])
    const table = { view, noun: 'line', all: state.log.length, shown: shownEntries(state).length, order }
    return [rowsPane({ id: LOG, title: 'log', hasKeys: true, document, table, place: this.#place, rect, theme })]
  }

  /** The newest line stays in view: the last one, or the first one in the reversed order. */
  get #place(): ScrollPlace {
    const { state } = this.#context
    const { isReversed } = tableView(state, LOG)
    return { offset: state.logOffset ?? 0, isFollowing: state.logOffset === undefined && !isReversed }
  }

  handleKey(label: string): boolean {
    const command = commandOf(logKeys, label)
    if (command === undefined) return false
    const page = Math.max(1, this.#context.state.rows - 5)
    const all = Number.MAX_SAFE_INTEGER
    const steps = { up: -1, down: 1, 'page-up': -page, 'page-down': page, first: -all, last: all }
    this.scrollBy(steps[command])
    return true
  }

  scrollBy(by: number): void {
    const { state } = this.#context
    const document = this.#document(state.columns - 2, themes[state.themeName])
    // Between header and footer.
    const rows = documentRows(state.rows - 2, document)
    const offset = Math.max(0, firstRow(this.#place, document, rows) + by)
    const end = Math.max(0, document.length - rows)
    const isNewest = tableView(state, LOG).isReversed ? offset === 0 : offset >= end
    this.#context.change(() => ({ logOffset: isNewest ? undefined : Math.min(end, offset) }))
  }

  #document(columns: number, theme: Theme): RowDocument {
    const { state, clock } = this.#context
    if (state.log.length === 0) return documentOf([[{ text: ' Nothing has happened yet.', style: mutedStyle(theme) }]])
    return logDocument(shownEntries(state), columns, theme, clock.now())
  }

  [Symbol.dispose](): void {}
}

const LOG = ' log'

const columns: readonly TableColumn<LogEntry>[] = [
  { title: 'TIME', text: ({ atMs }) => `${dayText(atMs)} ${secondText(atMs)}`, isAmount: true },
  { title: 'HOST', text: ({ host }) => host, find: findHost(({ host }) => host) },
  { title: 'TEXT', text: ({ text }) => text },
]

const shownEntries = (state: ConsoleState): readonly LogEntry[] => shownRows(state.log, columns, tableView(state, LOG))

/** In the order of time alone. */
export const logTable = (): TableFrame => ({ id: LOG, columns: [] })

const MOST_HOST = 16

type Layout = {
  readonly columns: number
  readonly hostColumns: number
  readonly timeColumns: number
  /** When today began; earlier times are shown with their date. */
  readonly todayMs: number
  readonly theme: Theme
}

function logDocument(log: readonly LogEntry[], columns: number, theme: Theme, nowMs: number): RowDocument {
  const hostColumns = Math.min(MOST_HOST, Math.max(0, ...log.map(({ host }) => textWidth(host))))
  const todayMs = new Date(nowMs).setHours(0, 0, 0, 0)
  const timeColumns = log.some(({ atMs }) => atMs < todayMs) ? '2026-11-22 13:51:07'.length : '13:51:07'.length
  const layout = { columns, hostColumns, timeColumns, todayMs, theme }
  return documentOf(log.flatMap((entry) => entryRows(entry, layout, nowMs)))
}

/** A log of thousands of lines is drawn with every key and every new line. */
const wrapped = new WeakMap<LogEntry, Layout & { readonly rows: readonly Row[] }>()

function entryRows(entry: LogEntry, layout: Layout, nowMs: number): readonly Row[] {
  const { columns, hostColumns, timeColumns, theme } = layout
  const known = wrapped.get(entry)
  if (known !== undefined && isSame(known, layout)) return known.rows
  const indent = timeColumns + 2 + (hostColumns === 0 ? 0 : hostColumns + 1)
  const lines = wrapRows(entry.text, columns - indent, '', styleOf(toneColour(theme, entry.tone, theme.text)))
  const head: Row = [
    { text: ` ${padEnd(daySecondText(entry.atMs, nowMs), timeColumns)} `, style: mutedStyle(theme) },
    ...(hostColumns === 0
      ? []
      : [{ text: `${padEnd(clipName(entry.host, hostColumns), hostColumns)} `, style: boldStyle(theme.accent) }]),
  ]
  const blank: Row = [{ text: ' '.repeat(indent), style: styleOf(theme.text) }]
  const rows = lines.map((line, index) => [...(index === 0 ? head : blank), ...line])
  wrapped.set(entry, { ...layout, rows })
  return rows
}

const isSame = (one: Layout, other: Layout): boolean =>
  one.columns === other.columns &&
  one.hostColumns === other.hostColumns &&
  one.timeColumns === other.timeColumns &&
  one.todayMs === other.todayMs &&
  one.theme === other.theme
