/** The list of kept results in the Network tab, to open one or compare two. */
import { printable } from '../../base/printable.ts'
import { compareTests, judgeTest, type KeptTest, type TestConclusion } from '../../ops/net/kept-test.ts'
import { judgeMesh } from '../../ops/net/mesh/judge.ts'
import { compareMesh, earlierLinks, type KeptMesh, reportOfKept } from '../../ops/net/mesh/kept-mesh.ts'
import { udpRateOf } from '../../ops/net/mesh/mesh-plan.ts'
import type { PaneView, Rect, Theme } from '../compositor/scene.ts'
import { commandOf, type KeyEntry, keyTable } from '../keys/key-table.ts'
import { centredOn, rowsPane } from '../rows/rows-pane.ts'
import { orderText, shownRows } from '../rows/table-view.ts'
import { ThrottledAction } from '../rows/throttled-action.ts'
import { type ConsoleState, type PageContext, tableView } from '../state/console-state.ts'
import { type MeshPicture, openPicture, pictureOf } from './mesh-picture.ts'
import type { NetTestsPort } from './net-tests-port.ts'
import type { NetworkView, NetworkViewId } from './network-view.ts'
import { meshExport, openExport, testExport } from './result-export.ts'
import {
  type KeptRow,
  keptRow,
  RESULTS,
  RESULTS_FRAME,
  type ResultsState,
  resultColumns,
  resultsDocument,
  unreadableRow,
} from './results-table.ts'

const hasRows = ({ network: { results } }: ConsoleState): boolean => results.rows.length > 0

const listKeys = keyTable<ConsoleState>()(
  ['back', 'Esc q', 'back', 'Results: go back.'],
  ['open', 'Enter', 'open', 'Results: open the selected one.', hasRows],
  ['mark', 'Space', 'mark', 'Results: mark or unmark the selected one.', hasRows],
  [
    'compare',
    'd',
    'compare',
    'Results: compare the two marked results, or the selected one with the previous one.',
    hasRows,
  ],
  ['write', 'w', 'write', 'Results: write the selected one as SVG or CSV.', hasRows],
  ['up', 'Up k', '', 'Results: select the one above.'],
  ['down', 'Down j', '', 'Results: select the one below.'],
  ['page-up', 'PageUp', '', 'Results: move ten up.'],
  ['page-down', 'PageDown', '', 'Results: move ten down.'],
  ['first', 'Home g', '', 'Results: select the first one.'],
  ['last', 'End G', '', 'Results: select the last one.'],
)

export const resultsKeys: readonly KeyEntry<ConsoleState>[] = listKeys

/** Whether it is an earlier result of the same test and hosts. */
const isEarlier = (row: KeptRow, than: KeptRow): boolean =>
  row.test === than.test && row.hosts === than.hosts && isAlike(row, than) && row.timeMs < than.timeMs

/** Rates of UDP are as high as was asked for: they say nothing about those of TCP or at another rate. */
const isAlike = ({ way }: KeptRow, than: KeptRow): boolean => udpRateOf(way) === udpRateOf(than.way)

const SHOW_EVERY_MS = 100
const PAGE_ROWS = 10
const ALL = Number.MAX_SAFE_INTEGER
const STEPS = { up: -1, down: 1, 'page-up': -PAGE_ROWS, 'page-down': PAGE_ROWS, first: -ALL, last: ALL }

export class ResultsView implements NetworkView {
  readonly #context: PageContext
  readonly #port: NetTestsPort
  readonly #show: (id: NetworkViewId) => void
  readonly #showing: ThrottledAction
  #rows: KeptRow[] = []
  /** Incremented when reading starts again. */
  #reading = 0

  constructor(context: PageContext, port: NetTestsPort, show: (id: NetworkViewId) => void) {
    this.#context = context
    this.#port = port
    this.#show = show
    this.#showing = new ThrottledAction({ clock: context.clock, everyMs: SHOW_EVERY_MS }, () => this.#publish(true))
  }

  open(): void {
    void this.#read()
  }

  panes(rect: Rect, theme: Theme): readonly PaneView[] {
    const { state, clock } = this.#context
    const { results } = state.network
    const rows = this.#shown
    const view = tableView(state, RESULTS)
    const document = resultsDocument(rows, { ...results, view, width: rect.width - 2, nowMs: clock.now(), theme })
    const at = rows.findIndex(({ path }) => path === results.selected)
    return [
      rowsPane({
        id: RESULTS,
        title:
          results.rows.length === 0 && !results.isReading
            ? 'no results yet: go back and press m, p or n'
            : 'kept results',
        hasKeys: true,
        isBusy: results.isReading,
        document,
        table: {
          view,
          noun: 'result',
          all: results.rows.length,
          order: orderText(view, resultColumns(clock.now()), RESULTS_FRAME.sorted),
        },
        place: centredOn(at, rect.height, document),
        list: { select: (row) => this.#change({ selected: rows[row]?.path }) },
        rect,
        theme,
      }),
    ]
  }

  handleKey(label: string): boolean | 'leave' {
    const command = commandOf(listKeys, label)
    switch (command) {
      case undefined:
        return false
      case 'back':
        return 'leave'
      case 'open':
        this.#openKept(this.#selected?.path)
        break
      case 'mark':
        this.#mark()
        break
      case 'compare':
        this.#compare()
        break
      case 'write': {
        const opened = this.#opened(this.#selected?.path)
        if (opened === undefined) break
        openExport(this.#context, this.#port, 'test' in opened ? testExport(opened) : meshExport(opened))
        break
      }
      default:
        this.scrollBy(STEPS[command])
    }
    return true
  }

  scrollBy(by: number): void {
    const rows = this.#shown
    const at = rows.findIndex(({ path }) => path === this.#context.state.network.results.selected)
    const next = rows[Math.max(0, Math.min(rows.length - 1, at + by))]
    this.#change({ selected: next?.path })
  }

  keepRow(): void {
    const selected = this.#selected?.path
    if (selected !== undefined) this.#change({ selected })
  }

  [Symbol.dispose](): void {
    this.#reading += 1
    this.#showing[Symbol.dispose]()
  }

  get #shown(): readonly KeptRow[] {
    const { state, clock } = this.#context
    return shownRows(state.network.results.rows, resultColumns(clock.now()), tableView(state, RESULTS))
  }

  get #selected(): KeptRow | undefined {
    const rows = this.#shown
    return rows.find(({ path }) => path === this.#context.state.network.results.selected) ?? rows[0]
  }

  /** One file a turn: hundreds of results of many hosts are large. */
  async #read(): Promise<void> {
    this.#reading += 1
    const reading = this.#reading
    this.#rows = []
    const paths = this.#port.keptResults()
    // After a measurement, select its result.
    const { rows } = this.#context.state.network.results
    if (paths[0] !== rows[0]?.path) this.#change({ selected: paths[0] })
    for (const path of paths) {
      const kept = this.#port.readKept(path)
      this.#rows.push(kept === undefined ? unreadableRow(path) : keptRow(path, kept))
      this.#showing.soon()
      await new Promise((resolve) => setImmediate(resolve))
      if (reading !== this.#reading) return
    }
    this.#showing[Symbol.dispose]()
    this.#publish(false)
  }

  #publish(isReading: boolean): void {
    const rows = [...this.#rows]
    const { selected, marked } = this.#context.state.network.results
    const paths = new Set(rows.map(({ path }) => path))
    this.#change({
      rows,
      isReading,
      selected: selected !== undefined && (isReading || paths.has(selected)) ? selected : rows[0]?.path,
      marked: isReading ? marked : new Set([...marked].filter((path) => paths.has(path))),
    })
  }

  #change(patch: Partial<ResultsState>): void {
    this.#context.change(({ network }) => ({ network: { ...network, results: { ...network.results, ...patch } } }))
  }

  #mark(): void {
    const path = this.#selected?.path
    if (path === undefined) return
    const marked = new Set(this.#context.state.network.results.marked)
    if (!marked.delete(path)) marked.add(path)
    this.#change({ marked })
    this.scrollBy(1)
  }

  /** The newer one, with the older one as what it is compared with. */
  #compare(): void {
    const { rows, marked } = this.#context.state.network.results
    const selected = this.#selected
    const both = rows.filter(({ path }) => marked.has(path))
    const older = both.length === 2 ? both[1] : rows.find((row) => selected !== undefined && isEarlier(row, selected))
    const newer = both.length === 2 ? both[0] : selected
    if ((marked.size > 0 && both.length !== 2) || older?.test !== (older && newer?.test))
      return this.#context.notice('mark two results of the same test to compare', 'warning')
    if (older !== undefined && newer !== undefined && !isAlike(older, newer))
      return this.#context.notice('UDP is compared only with UDP at the same rate', 'warning')
    if (older === undefined) return this.#context.notice('no earlier result of these hosts', 'warning')
    this.#openKept(newer?.path, older.path)
  }

  #openKept(path: string | undefined, olderPath?: string): void {
    const opened = this.#opened(path, olderPath)
    if (opened === undefined) return
    if ('test' in opened) this.#context.change(({ network }) => ({ network: { ...network, keptTest: opened } }))
    else {
      const kept = { ...openPicture(opened), showsChange: opened.before !== undefined }
      this.#context.change(({ network }) => ({ network: { ...network, kept } }))
    }
    this.#show('test' in opened ? 'kept-test' : 'kept')
  }

  /** Changes come first, because the user asked for them. */
  #opened(path: string | undefined, olderPath?: string): MeshPicture | TestConclusion | undefined {
    const read = (from: string | undefined): KeptMesh | KeptTest | undefined => {
      const kept = from === undefined ? undefined : this.#port.readKept(from)
      if (from !== undefined && kept === undefined)
        this.#context.notice(`cannot be read, as it is damaged or of a later version: ${printable(from)}`, 'error')
      return kept
    }
    const [kept, older] = [read(path), read(olderPath)]
    const nowMs = this.#context.clock.now()
    if (kept === undefined) return undefined
    if ('record' in kept) {
      const last = older !== undefined && 'record' in older ? older : undefined
      const changes = last === undefined ? [] : compareTests(kept, last, nowMs)
      return { test: kept, findings: [...changes, ...judgeTest(kept)], last, problem: undefined }
    }
    const report = reportOfKept(kept)
    const last = older !== undefined && 'links' in older ? older : undefined
    const earlier = last && earlierLinks(kept.links, [last])
    const changes = earlier === undefined ? [] : compareMesh(kept.links, earlier, nowMs)
    return pictureOf(report, Date.parse(kept.time), [...changes, ...judgeMesh(report)], earlier)
  }
}
