/**
 * What goes on behind the Bring-up tab: asking the hosts, and changing them. It keeps the tab's part of the state; what is
 * new is shown at most ten times a second, what a key did at once.
 */
import { MusterError, messageOf } from '../../base/errors.ts'
import { printable } from '../../base/printable.ts'
import { foldHostSet } from '../../inventory/host-set.ts'
import type { PageContext } from '../tabs/page-context.ts'
import type { BringUpPort } from './bring-up-port.ts'
import {
  type BringUpView,
  beginChange,
  type ChangeView,
  cellKey,
  isChanging,
  oldestFactMs,
  rowsOf,
  standingsByCell,
  takePlan,
  takeStep,
  withFailures,
} from './bring-up-view.ts'

const SHOW_EVERY_MS = 100
const TICK_MS = 1000
/** While nobody looks at the tab, or all is known for long. */
const SLOW_TICK_MS = 15_000
const SECONDS_MATTER_MS = 60_000

export class BringUpWork implements Disposable {
  readonly #context: PageContext
  readonly #port: BringUpPort
  #view: BringUpView
  #showing: Disposable | undefined
  #ticking: Disposable | undefined
  #lastShownMs = Number.NEGATIVE_INFINITY
  #looking: AbortController | undefined
  #changing: AbortController | undefined
  /** The answer to the plan that is shown. */
  #answer: ((isYes: boolean) => void) | undefined
  #isClosed = false
  /** The end of the last look. */
  looked: Promise<void> = Promise.resolve()

  constructor(context: PageContext, port: BringUpPort) {
    this.#context = context
    this.#port = port
    this.#view = context.state.bringUp
  }

  get view(): BringUpView {
    return this.#view
  }

  /** Everything new is shown. */
  get isIdle(): boolean {
    return this.#showing === undefined
  }

  get busy() {
    const { change } = this.#view
    if (change === undefined || !isChanging(change)) return undefined
    return { title: change.order.direction === 'up' ? 'bring-up' : 'take-down', hosts: change.order.hosts }
  }

  /** A plan is being made, or waits for its answer. */
  get isDeciding(): boolean {
    const phase = this.#view.change?.phase
    return phase === 'look' || phase === 'ask'
  }

  /** Why no look can begin now. */
  get busyReason(): string | undefined {
    return this.changingReason ?? (this.#looking === undefined ? undefined : 'the hosts are being asked: c stops that')
  }

  /** Why no change can begin now. A look is no reason: a plan asks the hosts itself. */
  get changingReason(): string | undefined {
    return this.#changing === undefined ? undefined : 'a change is running: c stops it'
  }

  [Symbol.dispose](): void {
    this.#isClosed = true
    this.#looking?.abort()
    this.#changing?.abort()
    this.#answer?.(false)
    this.#showing?.[Symbol.dispose]()
    this.#ticking?.[Symbol.dispose]()
  }

  decide(isYes: boolean): void {
    const answer = this.#answer
    if (answer === undefined) return this.#context.notice('no plan waits for an answer: u makes one', 'warning')
    this.#answer = undefined
    if (isYes) this.#changeChange((change) => ({ ...change, phase: 'lock' }))
    else this.showTable()
    answer(isYes)
  }

  cancel(): void {
    const working = this.#changing ?? this.#looking
    if (working === undefined) return this.#context.notice('nothing goes on', 'warning')
    working.abort()
    this.#answer?.(false)
    this.#answer = undefined
    if (this.#changing) this.#changeChange((change) => ({ ...change, isStopping: true }))
  }

  /** What hosts.yaml declares, then how the hosts stand. */
  look(): Promise<void> {
    this.looked = this.#look()
    return this.looked
  }

  async #look(): Promise<void> {
    const looking = new AbortController()
    this.#looking = looking
    this.set({ check: { answered: new Set() }, trouble: undefined })
    try {
      const columns = await this.#port.areas()
      const { cursor } = this.#view
      const area = cursor.area ?? columns.find(({ hosts }) => hosts !== undefined)?.name ?? columns[0]?.name
      this.set({
        columns,
        cursor: { host: cursor.host ?? rowsOf({ ...this.#view, columns }, this.#context.state.hosts.keys())[0], area },
      })
      if (columns.some(({ hosts }) => hosts !== undefined)) {
        const standings = await this.#port.look(looking.signal, (host) => {
          const { check } = this.#view
          if (check) this.#take({ check: { answered: new Set([...check.answered, host]) } })
        })
        if (!looking.signal.aborted) this.#view = { ...this.#view, standings: standingsByCell(standings) }
      }
    } catch (error) {
      if (this.#looking !== looking) return
      this.#view = { ...this.#view, trouble: sentence(error) }
      if (this.#view.columns !== undefined && !this.#isClosed) this.#context.notice(sentence(error), 'error')
    }
    if (this.#looking !== looking) return
    this.#looking = undefined
    if (this.#isClosed) return
    this.set({ check: undefined })
    this.readJournal()
    this.tick()
  }

  async change(order: ChangeView['order']): Promise<void> {
    const { clock } = this.#context
    const changing = new AbortController()
    this.#changing = changing
    this.#looking?.abort()
    this.#looking = undefined
    const words = `${order.direction === 'up' ? 'bring up' : 'take down'} ${order.areas.join(', ')}`
    this.set({ change: beginChange(order, clock.now()), isWhole: false, check: undefined })
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
      const after = standingsByCell(withFailures(result.standings ?? [], this.#view.change))
      this.set({ standings: new Map([...this.#view.standings, ...after]) })
      // A plan with nothing to do has asked the hosts, and tried nothing: a look says how they stand now.
      isKnown = result.standings !== undefined || end === 'declined'
    } catch (error) {
      this.#changeChange((change) => ({ ...change, said: [...change.said, sentence(error)] }))
    }
    this.#changing = undefined
    this.#changeChange((change) => ({ ...change, phase: 'ended', end, isStopping: false }))
    if (this.#isClosed) return
    this.#context.log(foldHostSet(order.hosts), `${words}: ${END_WORDS[end]}`, end === 'done' ? 'info' : 'warning')
    if (this.#context.state.tab !== 'bring-up') this.#context.notice(`${words}: ${END_WORDS[end]}`)
    if (isKnown) this.readJournal()
    else void this.look()
  }

  #confirm(): Promise<boolean> {
    this.#changeChange((change) => ({ ...change, phase: 'ask' }))
    this.showSide('plan')
    if (this.#context.state.tab !== 'bring-up') this.#context.notice('a plan waits for an answer on the tab Bring-up')
    return new Promise((resolve) => {
      this.#answer = resolve
    })
  }

  /** From the plan to its steps, for who still looks at the plan. */
  #followSteps(): void {
    if (this.#view.side === 'plan') this.set({ side: 'steps', sideOffset: 0 })
  }

  showSide(side: BringUpView['side']): void {
    this.set({ side, hasSideKeys: true, sideOffset: 0 })
  }

  showTable(): void {
    this.set({ hasSideKeys: false, side: 'details', sideOffset: 0 })
  }

  /** What was done in the cell under the cursor, once it is known. */
  readJournal(): void {
    const { host, area } = this.#view.cursor
    if (host === undefined || area === undefined) return
    this.#port.journal(area, host).then(
      (lines) => this.#take({ journal: new Map(this.#view.journal).set(cellKey(area, host), lines) }),
      (error: unknown) => this.#context.log('', `the journal cannot be read: ${messageOf(error)}`, 'warning'),
    )
  }

  #changeChange(change: (change: ChangeView) => ChangeView): void {
    if (this.#view.change) this.set({ change: change(this.#view.change) })
  }

  /** Shown at once. */
  set(patch: Partial<BringUpView>): void {
    this.#view = { ...this.#view, ...patch }
    this.#showNow()
  }

  /** Shown soon. */
  #take(patch: Partial<BringUpView>): void {
    this.#view = { ...this.#view, ...patch }
    const { clock } = this.#context
    if (this.#isClosed) return
    this.#showing ??= clock.after(Math.max(0, this.#lastShownMs + SHOW_EVERY_MS - clock.now()), () => this.#showNow())
  }

  #showNow(): void {
    this.#showing?.[Symbol.dispose]()
    this.#showing = undefined
    if (this.#isClosed) return
    this.#lastShownMs = this.#context.clock.now()
    this.#context.change(() => ({ bringUp: this.#view }))
  }

  /** Ages that count, here and in the header. */
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

const END_WORDS = {
  unchanged: 'nothing was to be done',
  declined: 'not wanted',
  locked: 'not begun',
  lost: 'stopped: a host is not locked any more',
  cancelled: 'ended before its end',
  done: 'done',
  error: 'broken off',
} as const

function sentence(error: unknown): string {
  const text = error instanceof MusterError && error.hint ? `${error.message}. ${error.hint}` : messageOf(error)
  return printable(text)
}
