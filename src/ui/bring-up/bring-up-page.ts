/**
 * The Bring-up tab: what its keys do, and what of it is drawn. Facts are read when it is opened and on demand, beside the
 * shells; what is new is shown at most ten times a second, what a key did at once.
 */
import { MusterError, messageOf } from '../../base/errors.ts'
import { printable } from '../../base/printable.ts'
import { foldHostSet } from '../../inventory/host-set.ts'
import type { Direction } from '../../ops/kernel/area.ts'
import type { PaneView, Rect } from '../compositor/compositor.ts'
import type { Console } from '../console/console.ts'
import { commandOf } from '../keys/key-table.ts'
import { documentRows, firstRow, type RowDocument, type ScrollPlace } from '../rows/row-document.ts'
import { rowsPane } from '../rows/rows-pane.ts'
import type { Page } from '../tabs/page.ts'
import { tabOfKey } from '../tabs/tabs.ts'
import { type Theme, themes } from '../theme/theme.ts'
import { areaOf } from '../work-views/panel.ts'
import { type BringUpCommand, bringUpKeys } from './bring-up-keys.ts'
import { layoutBringUp } from './bring-up-layout.ts'
import {
  type BringUpView,
  beginChange,
  type ChangeView,
  cellKey,
  isChanging,
  oldestFactMs,
  retryable,
  rowsOf,
  standingsByCell,
  takePlan,
  takeStep,
  withFailures,
} from './bring-up-view.ts'
import { sideDocument } from './side-document.ts'
import { tableDocument } from './table-document.ts'

const SHOW_EVERY_MS = 100
const TICK_MS = 1000
/** While nobody looks at the tab, or all is known for long. */
const SLOW_TICK_MS = 15_000
const SECONDS_MATTER_MS = 60_000
const SIDE_TITLES = { details: 'details', plan: 'plan', steps: 'steps' } as const

/** Keys that read a plan or answer it. */
const ANSWERS: ReadonlySet<BringUpCommand> = new Set([
  ...(['yes', 'no', 'cancel', 'back-to-table', 'mark', 'left', 'right'] as const),
  ...(['row-up', 'row-down', 'page-up', 'page-down', 'top', 'end'] as const),
])

/** What is drawn now, and how far. */
type Look = { readonly document: RowDocument; readonly rect: Rect; readonly place: ScrollPlace }

export class BringUpPage implements Page {
  readonly #console: Console
  #view: BringUpView
  #showing: Disposable | undefined
  #ticking: Disposable | undefined
  #lastShownMs = Number.NEGATIVE_INFINITY
  #looking: AbortController | undefined
  #changing: AbortController | undefined
  /** The answer to the plan that is shown. */
  #answer: ((isYes: boolean) => void) | undefined
  #isClosed = false

  constructor(console: Console) {
    this.#console = console
    this.#view = console.state.bringUp
  }

  get isIdle(): boolean {
    return this.#showing === undefined
  }

  get busy() {
    const { change } = this.#view
    if (change === undefined || !isChanging(change)) return undefined
    return { title: change.order.direction === 'up' ? 'bring-up' : 'take-down', hosts: change.order.hosts }
  }

  /** Asks the hosts the first time; later only `r` does. */
  open(): void {
    if (this.#view.columns === undefined && this.#looking === undefined) void this.#look()
    this.#tick()
  }

  panes(area: Rect, theme: Theme): readonly PaneView[] {
    const looks = this.#looks(area, theme)
    const { hasSideKeys, side, look, change } = this.#view
    return (['table', 'side'] as const).flatMap((part) => {
      const drawn = looks[part]
      if (drawn === undefined) return []
      const isTable = part === 'table'
      const pane = rowsPane({
        ...drawn,
        id: ` ${part}`,
        title: isTable ? 'bring-up' : SIDE_TITLES[side],
        hasKeys: isTable !== hasSideKeys,
        isBusy: isTable ? look !== undefined || isChanging(change) : false,
        theme,
      })
      return [pane]
    })
  }

  handleKey(label: string): boolean {
    // One key may stand for two things: in the footer is the one that is meant.
    const { state } = this.#console
    const meant = bringUpKeys.find(
      (entry) => (entry.keys as readonly string[]).includes(label) && (!('isMeant' in entry) || entry.isMeant(state)),
    )
    const command = meant?.id ?? commandOf(bringUpKeys, label)
    if (this.#isDeciding && tabOfKey(label) === undefined && (command === undefined || !ANSWERS.has(command))) {
      this.#refuse(label)
      return true
    }
    if (command === undefined) return false
    this.#do(command)
    return true
  }

  scrollBy(rows: number): void {
    if (this.#view.hasSideKeys) this.#scrollSide(rows)
    else this.#move(rows)
  }

  [Symbol.dispose](): void {
    this.#isClosed = true
    this.#looking?.abort()
    this.#changing?.abort()
    this.#answer?.(false)
    this.#showing?.[Symbol.dispose]()
    this.#ticking?.[Symbol.dispose]()
  }

  #do(command: BringUpCommand): void {
    const view = this.#view
    const isOnSide = view.hasSideKeys
    switch (command) {
      case 'yes':
        return this.#decide(true)
      case 'cancel':
        return this.#cancel()
      case 'no':
        return this.#decide(false)
      case 'back-to-table':
        return this.#set({ hasSideKeys: false, side: 'details', sideOffset: 0 })
      case 'to-shells':
        return this.#console.showTab('shells')
      case 'up':
      case 'down':
        return this.#begin(command, this.#chosenHosts())
      case 'again':
        return this.#ask()
      case 'retry':
        return this.#retry()
      case 'mark':
        if (isOnSide) return this.#scrollSide(this.#pageRows())
        return this.#mark()
      case 'mark-all':
        return this.#set({ marked: new Set(view.marked.size > 0 ? [] : this.#hosts()) })
      case 'only':
        return this.#set({ onlyArea: view.onlyArea === undefined ? view.cursor.area : undefined })
      case 'open':
        return this.#showSide('details')
      case 'whole':
        return this.#set({ isWhole: !view.isWhole })
      case 'change':
        if (view.change === undefined) return this.#console.notice('nothing was changed yet: u makes a plan', 'warning')
        return this.#showSide(isPlanOf(view.change) ? 'plan' : 'steps')
      case 'left':
      case 'right':
        return this.#moveArea(command === 'left' ? -1 : 1)
      case 'row-up':
      case 'row-down':
        return this.scrollBy(command === 'row-up' ? -1 : 1)
      case 'page-up':
      case 'page-down':
        return this.scrollBy(command === 'page-up' ? -this.#pageRows() : this.#pageRows())
      case 'top':
      case 'end':
        return this.scrollBy(command === 'top' ? Number.NEGATIVE_INFINITY : Number.POSITIVE_INFINITY)
    }
  }

  /** A plan is being made, or waits for its answer. */
  get #isDeciding(): boolean {
    const phase = this.#view.change?.phase
    return phase === 'look' || phase === 'ask'
  }

  /** Who types a command here by mistake must not come upon the `y` in it. */
  #refuse(label: string): void {
    this.#cancel()
    this.#set({ hasSideKeys: false, side: 'details', sideOffset: 0 })
    this.#console.notice(`nothing is done: ${label} is no answer to a plan`, 'warning')
  }

  #decide(isYes: boolean): void {
    const answer = this.#answer
    if (answer === undefined) return this.#console.notice('no plan waits for an answer: u makes one', 'warning')
    this.#answer = undefined
    if (!isYes) this.#set({ hasSideKeys: false, side: 'details', sideOffset: 0 })
    answer(isYes)
  }

  #cancel(): void {
    const working = this.#changing ?? this.#looking
    if (working === undefined) return this.#console.notice('nothing goes on', 'warning')
    working.abort()
    this.#answer?.(false)
    this.#answer = undefined
    this.#changeChange((change) => ({ ...change, isStopping: true }))
  }

  #ask(): void {
    const reason = this.#busyReason()
    if (reason !== undefined) return this.#console.notice(reason, 'warning')
    void this.#look()
  }

  #retry(): void {
    const { change } = this.#view
    if (change) this.#begin(change.order.direction, retryable(this.#view), change.order.areas)
  }

  #busyReason(): string | undefined {
    if (this.#changing !== undefined) return 'a change goes on: c ends it'
    return this.#looking === undefined ? undefined : 'the hosts are being asked: c ends that'
  }

  #chosenHosts(): readonly string[] {
    const { marked, columns = [] } = this.#view
    const declared = new Set(columns.flatMap(({ hosts }) => hosts ?? []))
    return this.#hosts().filter((host) => declared.has(host) && (marked.size === 0 || marked.has(host)))
  }

  /** What hosts.yaml declares, then how the hosts stand. */
  async #look(): Promise<void> {
    const { bringUp: port } = this.#console.ports
    const looking = new AbortController()
    this.#looking = looking
    this.#set({ look: { answered: new Set() }, trouble: undefined })
    try {
      const columns = await port.areas()
      const { cursor } = this.#view
      const area = cursor.area ?? columns.find(({ hosts }) => hosts !== undefined)?.name ?? columns[0]?.name
      this.#set({
        columns,
        cursor: { host: cursor.host ?? rowsOf({ ...this.#view, columns }, this.#known())[0], area },
      })
      if (columns.some(({ hosts }) => hosts !== undefined)) {
        const standings = await port.look(looking.signal, (host) => {
          const { look } = this.#view
          if (look) this.#take({ look: { answered: new Set([...look.answered, host]) } })
        })
        if (!looking.signal.aborted) this.#view = { ...this.#view, standings: standingsByCell(standings) }
      }
    } catch (error) {
      this.#view = { ...this.#view, trouble: sentence(error) }
      if (this.#view.columns !== undefined && !this.#isClosed) this.#console.notice(sentence(error), 'error')
    }
    this.#looking = undefined
    if (this.#isClosed) return
    this.#set({ look: undefined })
    this.#readJournal()
    this.#tick()
  }

  #begin(direction: Direction, hosts: readonly string[], areas: readonly string[] = this.#chosenAreas()): void {
    const reason = this.#busyReason()
    if (reason !== undefined) return this.#console.notice(reason, 'warning')
    if (hosts.length === 0 || areas.length === 0) {
      return this.#console.notice('hosts.yaml declares nothing for these hosts', 'warning')
    }
    void this.#change({ direction, hosts, areas })
  }

  #chosenAreas(): string[] {
    const { columns = [], onlyArea } = this.#view
    const declared = columns.filter(({ hosts }) => hosts !== undefined).map(({ name }) => name)
    return declared.filter((name) => onlyArea === undefined || name === onlyArea)
  }

  async #change(order: ChangeView['order']): Promise<void> {
    const { ports } = this.#console
    const changing = new AbortController()
    this.#changing = changing
    const words = `${order.direction === 'up' ? 'bring up' : 'take down'} ${order.areas.join(', ')}`
    this.#set({ change: beginChange(order, ports.clock.now()), isWhole: false })
    this.#showSide('plan')
    this.#tick()
    let end: NonNullable<ChangeView['end']> = 'error'
    let isKnown = false
    try {
      const result = await ports.bringUp.change(
        { ...order, signal: changing.signal },
        {
          onPhase: (phase) => {
            this.#changeChange((change) => ({ ...change, phase }))
            if (phase === 'lock' || phase === 'apply') this.#followSteps()
          },
          onPlan: (plan, isAgain) => this.#changeChange((change) => takePlan(change, plan, isAgain)),
          confirm: () => this.#confirm(),
          onEvent: (event) => {
            const { change } = this.#view
            if (change) this.#take({ change: takeStep(change, event, ports.clock.now()) })
          },
          onSay: (text, isDetail) => {
            if (!isDetail) this.#changeChange((change) => ({ ...change, said: [...change.said, text] }))
          },
        },
      )
      end = result.kind
      const after = standingsByCell(withFailures(result.standings ?? [], this.#view.change))
      this.#set({ standings: new Map([...this.#view.standings, ...after]) })
      isKnown = result.standings !== undefined || end === 'unchanged' || end === 'declined'
    } catch (error) {
      this.#changeChange((change) => ({ ...change, said: [...change.said, sentence(error)] }))
    }
    this.#changing = undefined
    this.#changeChange((change) => ({ ...change, phase: 'ended', end, isStopping: false }))
    if (this.#isClosed) return
    this.#console.log(foldHostSet(order.hosts), `${words}: ${END_WORDS[end]}`, end === 'done' ? 'info' : 'warning')
    if (this.#console.state.tab !== 'bring-up') this.#console.notice(`${words}: ${END_WORDS[end]}`)
    if (isKnown) this.#readJournal()
    else void this.#look()
  }

  #confirm(): Promise<boolean> {
    this.#changeChange((change) => ({ ...change, phase: 'ask' }))
    this.#showSide('plan')
    if (this.#console.state.tab !== 'bring-up') this.#console.notice('a plan waits for an answer on the tab Bring-up')
    return new Promise((resolve) => {
      this.#answer = resolve
    })
  }

  /** From the plan to its steps, for who still looks at the plan. */
  #followSteps(): void {
    if (this.#view.side === 'plan') this.#set({ side: 'steps', sideOffset: 0 })
  }

  #showSide(side: BringUpView['side']): void {
    this.#set({ side, hasSideKeys: true, sideOffset: 0 })
  }

  #known(): Iterable<string> {
    return this.#console.state.hosts.keys()
  }

  #hosts(): string[] {
    return rowsOf(this.#view, this.#known())
  }

  #mark(): void {
    const { host } = this.#view.cursor
    if (host === undefined) return
    const marked = new Set(this.#view.marked)
    if (!marked.delete(host)) marked.add(host)
    this.#set({ marked })
    this.#move(1)
  }

  #move(by: number): void {
    const hosts = this.#hosts()
    const at = hosts.indexOf(this.#view.cursor.host ?? '')
    const host = hosts[Math.max(0, Math.min(hosts.length - 1, at + by))]
    this.#set({ cursor: { ...this.#view.cursor, host }, sideOffset: 0 })
    this.#readJournal()
  }

  #moveArea(by: number): void {
    if (this.#view.hasSideKeys) return
    const names = this.#view.columns?.map(({ name }) => name) ?? []
    const at = names.indexOf(this.#view.cursor.area ?? '')
    const area = names[Math.max(0, Math.min(names.length - 1, at + by))]
    this.#set({ cursor: { ...this.#view.cursor, area }, sideOffset: 0 })
    this.#readJournal()
  }

  #scrollSide(by: number): void {
    const side = this.#looksNow().side
    if (side === undefined) return
    const rows = documentRows(side.rect.height, side.document)
    const last = Math.max(0, side.document.length - rows)
    this.#set({ sideOffset: Math.max(0, Math.min(last, firstRow(side.place, side.document, rows) + by)) })
  }

  #pageRows(): number {
    const { table, side } = this.#looksNow()
    const look = this.#view.hasSideKeys ? side : table
    return look === undefined ? 1 : Math.max(1, documentRows(look.rect.height, look.document) - 1)
  }

  /** What was done in the cell under the cursor, once it is known. */
  #readJournal(): void {
    const { host, area } = this.#view.cursor
    if (host === undefined || area === undefined) return
    this.#console.ports.bringUp.journal(area, host).then(
      (lines) => this.#take({ journal: new Map(this.#view.journal).set(cellKey(area, host), lines) }),
      (error: unknown) => this.#console.log('', `the journal cannot be read: ${messageOf(error)}`, 'warning'),
    )
  }

  #looksNow() {
    const { state } = this.#console
    return this.#looks(areaOf(state), themes[state.themeName])
  }

  #looks(area: Rect, theme: Theme): { readonly table: Look | undefined; readonly side: Look | undefined } {
    const view = this.#console.state.bringUp
    const hosts = this.#hosts()
    const nowMs = this.#console.ports.clock.now()
    const { table, side } = layoutBringUp(area, hosts.length, view.hasSideKeys)
    const lookOf = ({ width, height }: Rect) => ({ theme, columns: width - 2, rows: height - 2, nowMs })
    const tableLook = table && { rect: table, document: tableDocument(view, hosts, lookOf(table)) }
    const at = Math.max(0, hosts.indexOf(view.cursor.host ?? ''))
    return {
      // The row of the cursor in the middle, as far as there are rows.
      table: tableLook && {
        ...tableLook,
        place: aroundRow(at, documentRows(tableLook.rect.height, tableLook.document)),
      },
      side: side && {
        rect: side,
        document: sideDocument(view, lookOf(side)),
        place: { offset: view.sideOffset, isFollowing: false },
      },
    }
  }

  #changeChange(change: (change: ChangeView) => ChangeView): void {
    if (this.#view.change) this.#set({ change: change(this.#view.change) })
  }

  /** Shown at once. */
  #set(patch: Partial<BringUpView>): void {
    this.#view = { ...this.#view, ...patch }
    this.#showNow()
  }

  /** Shown soon. */
  #take(patch: Partial<BringUpView>): void {
    this.#view = { ...this.#view, ...patch }
    const { clock } = this.#console.ports
    if (this.#isClosed) return
    this.#showing ??= clock.after(Math.max(0, this.#lastShownMs + SHOW_EVERY_MS - clock.now()), () => this.#showNow())
  }

  #showNow(): void {
    this.#showing?.[Symbol.dispose]()
    this.#showing = undefined
    if (this.#isClosed) return
    this.#lastShownMs = this.#console.ports.clock.now()
    this.#console.change(() => ({ bringUp: this.#view }))
  }

  /** Ages that count, here and in the header. */
  #tick(): void {
    const { clock } = this.#console.ports
    const oldest = oldestFactMs(this.#view)
    this.#ticking?.[Symbol.dispose]()
    if (this.#isClosed || (oldest === undefined && !isChanging(this.#view.change))) return
    const isWatched = this.#console.state.tab === 'bring-up'
    const isYoung = isChanging(this.#view.change) || clock.now() - (oldest ?? 0) < SECONDS_MATTER_MS
    this.#ticking = clock.after(isWatched && isYoung ? TICK_MS : SLOW_TICK_MS, () => {
      this.#console.change(() => ({ clockMs: clock.now() }))
      this.#tick()
    })
  }
}

const END_WORDS = {
  unchanged: 'nothing was to be done',
  declined: 'not wanted',
  locked: 'not begun',
  cancelled: 'ended before its end',
  done: 'done',
  error: 'broken off',
} as const

/** Whether it has not come to its steps. */
const isPlanOf = ({ phase, end }: ChangeView): boolean =>
  phase === 'look' || phase === 'ask' || end === 'unchanged' || end === 'declined'

const aroundRow = (row: number, rows: number): ScrollPlace => ({
  offset: Math.max(0, row - Math.floor(rows / 2)),
  isFollowing: false,
})

function sentence(error: unknown): string {
  const text = error instanceof MusterError && error.hint ? `${error.message}. ${error.hint}` : messageOf(error)
  return printable(text)
}
