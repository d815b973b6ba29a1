/**
 * Checks and changes of the Bring-up tab. It keeps the tab's part of the state; progress is shown at most ten times a
 * second, the effect of a key at once.
 */
import { fileReason, sentenceOf } from '../../base/errors.ts'
import { printable } from '../../base/printable.ts'
import { foldHostSet } from '../../inventory/host-set.ts'
import { ThrottledAction } from '../rows/throttled-action.ts'
import type { Busy, PageContext } from '../state/console-state.ts'
import {
  type AreaColumn,
  areasOf,
  type BringUpPort,
  type BringUpView,
  beginChange,
  type ChangeView,
  cellKey,
  changeEnd,
  endChange,
  isChanging,
  lastBegun,
  notWorking,
  oldestFactMs,
  rowsOf,
  statusesByCell,
  takePlan,
  takeStep,
  untouched,
  withFailures,
} from './bring-up-view.ts'

type ReadFiles = NonNullable<PageContext['readFiles']>

const SHOW_EVERY_MS = 100
const TICK_MS = 1000
/** While the tab is not shown, or ages are minutes. */
const SLOW_TICK_MS = 15_000
const SECONDS_MATTER_MS = 60_000

export class BringUpWork implements Disposable {
  readonly #context: PageContext
  readonly #port: BringUpPort
  #view: BringUpView
  readonly #showing: ThrottledAction
  #ticking: Disposable | undefined
  #checking: AbortController | undefined
  #changing: AbortController | undefined
  /** The answer to the plan that is shown. */
  #answer: ((isYes: boolean) => void) | undefined
  #isClosed = false
  /** Resolves with the end of the last check. */
  checked: Promise<void> = Promise.resolve()

  constructor(context: PageContext, port: BringUpPort) {
    this.#context = context
    this.#port = port
    this.#view = context.state.bringUp
    this.#showing = new ThrottledAction({ clock: context.clock, everyMs: SHOW_EVERY_MS }, () => this.#show())
  }

  get view(): BringUpView {
    return this.#view
  }

  get isIdle(): boolean {
    return !this.#showing.isWaiting
  }

  get busy(): readonly Busy[] {
    const { change } = this.#view
    // A plan that is made or shown has started nothing.
    if (change === undefined || !isChanging(change) || this.isDeciding) return []
    const { direction, hosts } = change.order
    return [{ title: direction === 'up' ? 'bring-up' : 'take-down', hosts, endsWith: hosts }]
  }

  /** A plan is being made or waits for an answer. */
  get isDeciding(): boolean {
    const phase = this.#view.change?.phase
    return phase === 'check' || phase === 'ask'
  }

  /** Why no check can start. */
  get busyReason(): string | undefined {
    return this.changingReason ?? (this.#checking === undefined ? undefined : 'a check is running: c cancels it')
  }

  /** Why no change can start. A check does not matter: a plan checks the hosts itself. */
  get changingReason(): string | undefined {
    return this.#changing === undefined ? undefined : 'a change is running: c cancels it'
  }

  [Symbol.dispose](): void {
    this.#isClosed = true
    this.#checking?.abort()
    this.#changing?.abort()
    this.#answer?.(false)
    this.#showing[Symbol.dispose]()
    this.#ticking?.[Symbol.dispose]()
  }

  decide(isYes: boolean): void {
    const answer = this.#answer
    if (answer === undefined) return this.#refuse()
    if (isYes && this.#context.readFiles !== undefined) return void this.#decideNow(answer, this.#context.readFiles)
    this.#give(answer, isYes)
  }

  /** The file may have been saved a moment ago; what follows from it discards the plan. */
  async #decideNow(answer: (isYes: boolean) => void, readFiles: ReadFiles): Promise<void> {
    const refusal = await readFiles()
    if (refusal !== undefined && this.#answer === answer) {
      this.cancel()
      return this.#context.notice(refusal, 'error')
    }
    await this.readAreas()
    if (this.#answer === answer) this.#give(answer, true)
  }

  #give(answer: (isYes: boolean) => void, isYes: boolean): void {
    this.#answer = undefined
    if (isYes) this.#changeChange((change) => ({ ...change, phase: 'lock' }))
    else this.showTable()
    answer(isYes)
  }

  /** No plan waits for an answer. */
  #refuse(): void {
    if (this.isDeciding) this.#context.notice(NOT_READY, 'warning', 'key')
    else if (isChanging(this.#view.change)) this.#context.notice('the plan is being applied already', 'info', 'key')
    else this.#context.notice('no plan to apply: u makes one', 'warning')
  }

  cancel(): void {
    const working = this.#changing ?? this.#checking
    if (working === undefined) return this.#context.notice('nothing is running', 'warning')
    if (this.isDeciding) this.showTable()
    working.abort()
    this.#answer?.(false)
    this.#answer = undefined
    if (this.#changing) this.#changeChange((change) => ({ ...change, isStopping: true }))
  }

  /** Reads what hosts.yaml declares now. The hosts are not checked: that takes a while, and the user may be editing it. */
  async readAreas(): Promise<void> {
    try {
      const columns = await this.#port.areas()
      if (!this.#isClosed) this.#setColumns(columns)
    } catch (error) {
      if (!this.#isClosed) this.#context.notice(printable(sentenceOf(error)), 'error')
    }
  }

  #setColumns(columns: readonly AreaColumn[]): void {
    const { cursor, columns: before } = this.#view
    const isDeclared = ({ hosts }: AreaColumn): boolean => hosts !== undefined
    // If nothing was declared before, the user did not choose the area that the cursor is on.
    const isChosen = cursor.area !== undefined && (before === undefined || before.some(isDeclared))
    const area = isChosen ? cursor.area : (columns.find(isDeclared) ?? columns[0])?.name
    const host = cursor.host ?? rowsOf({ ...this.#view, columns }, this.#context.state.hosts.keys())[0]
    // What is known of an area for which hosts.yaml declared something else says nothing about what it declares now.
    const isSame = ({ name, digest }: AreaColumn) => before?.some((old) => old.name === name && old.digest === digest)
    const changed = columns.filter((column) => before !== undefined && !isSame(column)).map(({ name }) => name)
    const cells = new Set(
      columns.filter(isSame).flatMap(({ name, hosts = [] }) => hosts.map((each) => cellKey(name, each))),
    )
    const statuses = new Map([...this.#view.statuses].filter(([cell]) => cells.has(cell)))
    const { file } = this.#port
    this.set({ columns, file, statuses, cursor: { host, area }, trouble: undefined })
    const order = this.isDeciding ? this.#view.change?.order : undefined
    if (order === undefined || !order.areas.some((name) => changed.includes(name))) return
    this.cancel()
    const key = order.direction === 'up' ? 'u' : 'd'
    this.#context.notice(
      `${file}, or a file that it names, has changed since this plan: ${key} makes a new one`,
      'warning',
    )
  }

  /** Reads hosts.yaml, then checks the hosts. */
  check(): Promise<void> {
    this.checked = this.#check()
    return this.checked
  }

  async #check(): Promise<void> {
    const checking = new AbortController()
    this.#checking = checking
    this.set({ check: { answered: new Set() }, trouble: undefined })
    try {
      const refusal = await this.#context.readFiles?.()
      if (refusal !== undefined) throw new Error(refusal)
      const columns = await this.#port.areas()
      this.#setColumns(columns)
      if (columns.some(({ hosts }) => hosts !== undefined)) {
        const statuses = await this.#port.check(checking.signal, (host) => {
          const { check } = this.#view
          if (check) this.#take({ check: { answered: new Set([...check.answered, host]) } })
        })
        if (!checking.signal.aborted) this.#view = { ...this.#view, statuses: statusesByCell(statuses) }
      }
    } catch (error) {
      if (this.#checking !== checking) return
      this.#view = { ...this.#view, trouble: printable(sentenceOf(error)) }
      if (this.#view.columns !== undefined && !this.#isClosed)
        this.#context.notice(printable(sentenceOf(error)), 'error')
    }
    if (this.#checking !== checking) return
    this.#checking = undefined
    if (this.#isClosed) return
    this.set({ check: undefined })
    this.readJournal()
    this.tick()
  }

  async change(order: ChangeView['order']): Promise<void> {
    const { clock } = this.#context
    const changing = new AbortController()
    this.#changing = changing
    const wasChecking = this.#checking !== undefined
    this.#checking?.abort()
    this.#checking = undefined
    const past = lastBegun(this.#view)
    this.set({ change: beginChange(order, clock.now()), past, isWhole: false, check: undefined })
    this.showSide('plan')
    this.tick()
    let end: NonNullable<ChangeView['end']> = 'error'
    let isKnown = false
    try {
      const result = await this.#port.change(
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
            if (change) this.#take({ change: takeStep(change, event, clock.now()) })
          },
          onSay: (text, isDetail) => {
            if (!isDetail) this.#changeChange((change) => ({ ...change, said: [...change.said, text] }))
          },
        },
      )
      end = result.kind
      const after = statusesByCell(withFailures(result.statuses ?? [], this.#view.change))
      this.set({ statuses: new Map([...untouched(this.#view), ...after]) })
      // A plan with nothing to do has verified nothing, and one may have ended a check: a check follows.
      isKnown = result.statuses !== undefined || (end === 'declined' && !wasChecking)
    } catch (error) {
      this.#changeChange((change) => ({ ...change, said: [...change.said, printable(sentenceOf(error))] }))
      this.set({ statuses: untouched(this.#view) })
    }
    this.#changing = undefined
    this.#changeChange((change) => endChange(change, end, clock.now()))
    if (this.#isClosed) return
    const areas = this.#view.change ? areasOf(this.#view.change) : order.areas
    const words = `${order.direction === 'up' ? 'bring up' : 'take down'} ${areas.join(', ')}`
    // A discarded plan is no change; what was done before is shown again.
    if (end === 'declined') this.set({ change: past, past: undefined, side: 'details' })
    const { text, isWhole } = this.#endOf(end)
    const said = `${words}: ${text}`
    this.#context.log(foldHostSet(order.hosts), said, isWhole ? 'info' : 'warning')
    if (this.#context.state.tab !== 'bring-up') this.#context.notice(said, isWhole ? 'info' : 'warning')
    if (isKnown) this.readJournal()
    else void this.check()
  }

  #endOf(end: NonNullable<ChangeView['end']>): { readonly text: string; readonly isWhole: boolean } {
    const { change } = this.#view
    if (end === 'error') return { text: [END_TEXT.error, ...(change?.said.slice(-1) ?? [])].join(': '), isWhole: false }
    if (change === undefined || (end !== 'done' && end !== 'unchanged'))
      return { text: END_TEXT[end], isWhole: end === 'done' }
    const failed = notWorking(this.#view, change).map(({ host }) => host)
    const known = changeEnd(change, failed)
    return end === 'done' && known.isWhole ? { text: END_TEXT.done, isWhole: true } : known
  }

  #confirm(): Promise<boolean> {
    this.#changeChange((change) => ({ ...change, phase: 'ask' }))
    this.showSide('plan')
    if (this.#context.state.notice?.text === NOT_READY) this.#context.change(() => ({ notice: undefined }))
    if (this.#context.state.tab !== 'bring-up') this.#context.notice('plan ready on the tab Bring-up')
    return new Promise((resolve) => {
      this.#answer = resolve
    })
  }

  /** From the plan to its steps, while the plan is shown. */
  #followSteps(): void {
    if (this.#view.side === 'plan') this.set({ side: 'steps', sideOffset: 0 })
  }

  showSide(side: BringUpView['side']): void {
    this.set({ side, hasSideKeys: true, sideOffset: 0 })
  }

  showTable(): void {
    this.set({ hasSideKeys: false, side: 'details', sideOffset: 0 })
  }

  /** Reads the journal of the selected cell. */
  readJournal(): void {
    const { host, area } = this.#view.cursor
    if (host === undefined || area === undefined) return
    this.#port.journal(area, host).then(
      (lines) => this.#take({ journal: new Map(this.#view.journal).set(cellKey(area, host), lines) }),
      (error: unknown) => this.#context.log('', `cannot read the journal: ${fileReason(error)}`, 'warning'),
    )
  }

  #changeChange(change: (change: ChangeView) => ChangeView): void {
    if (this.#view.change) this.set({ change: change(this.#view.change) })
  }

  /** Shown at once. */
  set(patch: Partial<BringUpView>): void {
    this.#view = { ...this.#view, ...patch }
    this.#showing.now()
  }

  /** Shown soon. */
  #take(patch: Partial<BringUpView>): void {
    this.#view = { ...this.#view, ...patch }
    if (!this.#isClosed) this.#showing.soon()
  }

  #show(): void {
    if (!this.#isClosed) this.#context.change(() => ({ bringUp: this.#view }))
  }

  /** Ages count up. */
  tick(): void {
    const { clock } = this.#context
    const oldest = oldestFactMs(this.#view)
    this.#ticking?.[Symbol.dispose]()
    if (this.#isClosed || (oldest === undefined && !isChanging(this.#view.change))) return
    const isWatched = this.#context.state.tab === 'bring-up'
    const isYoung = isChanging(this.#view.change) || clock.now() - (oldest ?? 0) < SECONDS_MATTER_MS
    this.#ticking = clock.after(isWatched && isYoung ? TICK_MS : SLOW_TICK_MS, () => {
      this.#context.change(() => ({ clockMs: clock.now() }))
      this.tick()
    })
  }
}

const NOT_READY = 'the plan is not ready yet'

const END_TEXT = {
  unchanged: 'nothing to do',
  declined: 'plan discarded',
  locked: 'not started',
  lost: 'stopped: a host is no longer locked',
  cancelled: 'cancelled',
  done: 'done',
  error: 'stopped',
} as const
