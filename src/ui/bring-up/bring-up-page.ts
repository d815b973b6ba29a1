/** The Bring-up tab: its keys and panes. It checks the hosts when first opened and on demand. */
import { nearest } from '../../base/collections.ts'
import type { ChangeDirection } from '../../ops/kernel/area.ts'
import { type PaneView, type Rect, type Theme, themes } from '../compositor/scene.ts'
import { commandOf } from '../keys/key-table.ts'
import {
  centredOn,
  documentRows,
  firstRow,
  type RowDocument,
  rowsPane,
  type ScrollPlace,
  splitColumns,
  splitRows,
} from '../rows/rows-pane.ts'
import { noMatchText, orderText } from '../rows/table-view.ts'
import { isBareAction, type Page, type PageContext, tableView, tabOfKey } from '../state/console-state.ts'
import { areaOf } from '../work-views/panel.ts'
import { type BringUpCommand, bringUpKeys } from './bring-up-keys.ts'
import { allHosts, columnsOf, HOSTS, shownHosts } from './bring-up-table.ts'
import { type BringUpPort, type BringUpView, hasRows, isChanging, isOnlyArea, retryable } from './bring-up-view.ts'
import { BringUpWork } from './bring-up-work.ts'
import { sideDocument } from './side-document.ts'
import { tableDocument } from './table-document.ts'

/** The keys that read a plan or answer it. */
const ANSWERS: ReadonlySet<BringUpCommand> = new Set([
  ...(['yes', 'no', 'cancel', 'back-to-table', 'mark', 'left', 'right'] as const),
  ...(['row-up', 'row-down', 'page-up', 'page-down', 'top', 'end'] as const),
])

const BESIDE_COLUMNS = 140
const BELOW_ROWS = 36
/** The frame and head of the table; each host adds a row. */
const TABLE_ROWS = 5
const TABLE_COLUMNS = 104
/** The least height of the pane below the whole table. */
const LEAST_SIDE_ROWS = 8

/** The table and the pane beside it: both where there is room, else the one with the keys. */
function layout(area: Rect, hostCount: number, hasSideKeys: boolean): readonly [Rect | undefined, Rect | undefined] {
  if (area.width >= BESIDE_COLUMNS) return splitColumns(area, Math.min(TABLE_COLUMNS, Math.floor(area.width / 2)))
  const whole = TABLE_ROWS + hostCount
  if (area.height >= BELOW_ROWS) return splitRows(area, Math.min(whole, Math.floor(area.height / 2)))
  if (!hasSideKeys && area.height >= whole + LEAST_SIDE_ROWS) return splitRows(area, whole)
  return hasSideKeys ? [undefined, area] : [area, undefined]
}

type Drawn = { readonly document: RowDocument; readonly rect: Rect; readonly place: ScrollPlace }

export class BringUpPage implements Page {
  readonly #context: PageContext
  readonly #work: BringUpWork

  constructor(context: PageContext, port: BringUpPort) {
    this.#context = context
    this.#work = new BringUpWork(context, port)
  }

  get isIdle(): boolean {
    return this.#work.isIdle
  }

  get busy() {
    return this.#work.busy
  }

  /** Checks the hosts the first time; later only `r` does. */
  open(): void {
    if (this.#view.columns === undefined && this.#work.busyReason === undefined) void this.#work.check()
    this.#work.tick()
  }

  /** Shows the status of one area, or a plan for these hosts after a check. */
  async begin(what: 'status' | ChangeDirection, area: string, hosts: readonly string[]): Promise<void> {
    const wasOpened = this.#view.columns !== undefined
    this.#context.showTab('bring-up')
    this.#work.set({ cursor: { ...this.#view.cursor, area } })
    if (what === 'status') return wasOpened ? this.#check() : undefined
    await this.#work.checked
    this.#begin(what, hosts, [area])
  }

  panes(area: Rect, theme: Theme): readonly PaneView[] {
    const drawnParts = this.#draw(area, theme)
    const { hasSideKeys, side, check, change } = this.#view
    const { state } = this.#context
    const view = tableView(state, HOSTS)
    const table = hasRows(this.#view) && {
      table: { view, noun: 'host', all: allHosts(state).length, order: orderText(view, columnsOf(state.bringUp)) },
    }
    return (['table', 'side'] as const).flatMap((part) => {
      const drawn = drawnParts[part]
      if (drawn === undefined) return []
      const isTable = part === 'table'
      const pane = rowsPane({
        ...drawn,
        id: isTable ? HOSTS : ' side',
        title: isTable ? 'bring-up' : side,
        hasKeys: isTable !== hasSideKeys,
        isBusy: isTable ? check !== undefined || isChanging(change) : false,
        theme,
        ...(isTable ? { list: { select: (row: number) => this.#select(row) }, ...table } : {}),
        scroll: (rows) => (isTable ? this.#move(rows) : this.#scrollSide(rows)),
      })
      return [pane]
    })
  }

  isAnswer(label: string): boolean {
    return this.#context.state.bringUp.change?.phase === 'ask' && commandOf(bringUpKeys, label) === 'yes'
  }

  handleKey(label: string): boolean {
    const command = commandOf(bringUpKeys, label, this.#context.state)
    if (
      this.#work.isDeciding &&
      tabOfKey(label) === undefined &&
      label !== '/' &&
      !isBareAction(label) &&
      (command === undefined || !ANSWERS.has(command))
    ) {
      this.#refuse(label)
      return true
    }
    if (command === undefined) return false
    this.#actions[command]()
    return true
  }

  scrollBy(rows: number): void {
    if (this.#view.hasSideKeys) this.#scrollSide(rows)
    else this.#move(rows)
  }

  onTableChange(): void {
    this.#move(0)
  }

  onDeclared(): void {
    if (this.#view.columns !== undefined) void this.#work.readAreas()
  }

  [Symbol.dispose](): void {
    this.#work[Symbol.dispose]()
  }

  get #view(): BringUpView {
    return this.#work.view
  }

  readonly #actions: Readonly<Record<BringUpCommand, () => void>> = {
    yes: () => this.#work.decide(true),
    no: () => this.#work.decide(false),
    cancel: () => this.#work.cancel(),
    'back-to-table': () => this.#work.showTable(),
    up: () => this.#withFiles(() => this.#begin('up', this.#chosenHosts())),
    down: () => this.#withFiles(() => this.#begin('down', this.#chosenHosts())),
    again: () => this.#check(),
    retry: () => this.#retry(),
    mark: () => (this.#view.hasSideKeys ? this.#scrollSide(this.#pageRows()) : this.#mark()),
    'mark-all': () => this.#work.set({ marked: new Set(this.#view.marked.size > 0 ? [] : this.#shown) }),
    only: () => this.#work.set({ onlyArea: isOnlyArea(this.#view) ? undefined : this.#view.cursor.area }),
    open: () => {
      if (hasRows(this.#view) && this.#isCursorShown) this.#work.showSide('details')
    },
    whole: () => this.#work.set({ isWhole: !this.#view.isWhole }),
    change: () => this.#showChange(),
    left: () => this.#moveArea(-1),
    right: () => this.#moveArea(1),
    'row-up': () => this.scrollBy(-1),
    'row-down': () => this.scrollBy(1),
    'page-up': () => this.scrollBy(-this.#pageRows()),
    'page-down': () => this.scrollBy(this.#pageRows()),
    top: () => this.scrollBy(Number.NEGATIVE_INFINITY),
    end: () => this.scrollBy(Number.POSITIVE_INFINITY),
  }

  /** The plan until there are steps. */
  #showChange(): void {
    const { change } = this.#view
    if (change === undefined) return this.#context.notice('no change yet: u makes a plan', 'warning')
    const { phase, end } = change
    const isPlan = phase === 'check' || phase === 'ask' || end === 'unchanged' || end === 'declined'
    this.#work.showSide(isPlan ? 'plan' : 'steps')
  }

  /** A command typed here by mistake must not reach the `y` in it. */
  #refuse(label: string): void {
    this.#work.cancel()
    this.#context.notice(`plan discarded: ${label} does not apply it`, 'warning')
  }

  /** With hosts.yaml as it is now: it may have been saved a moment ago. */
  #withFiles(act: () => void): void {
    const { readFiles } = this.#context
    if (readFiles === undefined || this.#view.columns === undefined) return act()
    void readFiles().then(async (refusal) => {
      if (refusal !== undefined) return this.#context.notice(refusal, 'error')
      await this.#work.readAreas()
      act()
    })
  }

  #check(): void {
    const { busyReason } = this.#work
    if (busyReason !== undefined) return this.#context.notice(busyReason, 'warning')
    void this.#work.check()
  }

  #retry(): void {
    const { change } = this.#view
    if (change) this.#begin(change.order.direction, retryable(this.#view), change.order.areas)
  }

  #chosenHosts(): readonly string[] {
    const { marked, columns = [] } = this.#view
    const declared = new Set(columns.flatMap(({ hosts }) => hosts ?? []))
    const chosen = marked.size === 0 ? this.#shown : allHosts(this.#context.state).filter((host) => marked.has(host))
    return chosen.filter((host) => declared.has(host))
  }

  #begin(direction: ChangeDirection, hosts: readonly string[], areas: readonly string[] = this.#chosenAreas()): void {
    const { busyReason, changingReason } = this.#work
    const reason = this.#view.columns === undefined ? busyReason : changingReason
    if (reason !== undefined) return this.#context.notice(reason, 'warning')
    if (hosts.length === 0 || areas.length === 0) {
      const isFiltered = this.#shown.length === 0 && this.#view.marked.size === 0
      const filtered = noMatchText(tableView(this.#context.state, HOSTS), 'host')
      return this.#context.notice(
        isFiltered ? `${filtered}: Esc clears the filter` : `${this.#view.file} declares nothing for these hosts`,
        'warning',
      )
    }
    void this.#work.change({ direction, hosts, areas })
  }

  #chosenAreas(): string[] {
    const { columns = [], onlyArea } = this.#view
    const declared = columns.filter(({ hosts }) => hosts !== undefined).map(({ name }) => name)
    return declared.filter((name) => onlyArea === undefined || name === onlyArea)
  }

  get #shown(): readonly string[] {
    return shownHosts(this.#context.state)
  }

  /** A filter that matches nothing hides the row of the cursor. */
  get #isCursorShown(): boolean {
    return this.#shown.includes(this.#view.cursor.host ?? '')
  }

  #mark(): void {
    const { host } = this.#view.cursor
    if (host === undefined || !this.#isCursorShown) return
    const marked = new Set(this.#view.marked)
    if (!marked.delete(host)) marked.add(host)
    this.#work.set({ marked })
    this.#move(1)
  }

  #move(by: number): void {
    const hosts = this.#shown
    // Keeps the cursor, so that its row is selected again when the filter is cleared.
    if (hosts.length === 0) return
    const at = hosts.indexOf(this.#view.cursor.host ?? '')
    const host = nearest(hosts, at + by)
    this.#work.set({ cursor: { ...this.#view.cursor, host }, sideOffset: 0 })
    this.#work.readJournal()
  }

  #select(row: number): void {
    if (this.#work.isDeciding) return
    this.#work.showTable()
    this.#move(row - this.#shown.indexOf(this.#view.cursor.host ?? ''))
  }

  #moveArea(by: number): void {
    if (this.#view.hasSideKeys) return
    const names = this.#view.columns?.map(({ name }) => name) ?? []
    const at = names.indexOf(this.#view.cursor.area ?? '')
    const area = nearest(names, at + by)
    this.#work.set({ cursor: { ...this.#view.cursor, area }, sideOffset: 0 })
    this.#work.readJournal()
  }

  #scrollSide(by: number): void {
    const side = this.#drawnNow().side
    if (side === undefined) return
    const rows = documentRows(side.rect.height, side.document)
    const last = Math.max(0, side.document.length - rows)
    this.#work.set({ sideOffset: Math.max(0, Math.min(last, firstRow(side.place, side.document, rows) + by)) })
  }

  #pageRows(): number {
    const { table, side } = this.#drawnNow()
    const drawn = this.#view.hasSideKeys ? side : table
    return drawn === undefined ? 1 : Math.max(1, documentRows(drawn.rect.height, drawn.document) - 1)
  }

  #drawnNow() {
    const { state } = this.#context
    return this.#draw(areaOf(state), themes[state.themeName])
  }

  #draw(area: Rect, theme: Theme): { readonly table: Drawn | undefined; readonly side: Drawn | undefined } {
    const view = this.#context.state.bringUp
    const hosts = this.#shown
    const nowMs = this.#context.clock.now()
    // Counts all hosts, so that a filter does not move the other pane.
    const [table, side] =
      hasRows(view) || view.hasSideKeys
        ? layout(area, allHosts(this.#context.state).length, view.hasSideKeys)
        : [area, undefined]
    const contextOf = ({ width, height }: Rect) => ({ theme, columns: width - 2, rows: height - 2, nowMs })
    const order = tableView(this.#context.state, HOSTS)
    const drawnTable = table && { rect: table, document: tableDocument(view, hosts, order, contextOf(table)) }
    const at = Math.max(0, hosts.indexOf(view.cursor.host ?? ''))
    return {
      table: drawnTable && { ...drawnTable, place: centredOn(at, drawnTable.rect.height, drawnTable.document) },
      side: side && {
        rect: side,
        document: sideDocument(view, contextOf(side)),
        place: { offset: view.sideOffset, isFollowing: false },
      },
    }
  }
}
