/** A pair of hosts in the Network tab: both directions and the round trips, second by second. */
import { MusterError, sentenceOf } from '../../base/errors.ts'
import { printable } from '../../base/printable.ts'
import type { PairOptions } from '../../ops/net/pair/measure-pair.ts'
import type { lineChart } from '../charts/line-chart.ts'
import type { PaneView, Rect, Theme } from '../compositor/scene.ts'
import { promptDialog } from '../dialogs/prompt-dialog.ts'
import { completeHostSet } from '../dialogs/prompt-line.ts'
import { commandOf, type KeyEntry, keyTable } from '../keys/key-table.ts'
import { ThrottledAction } from '../rows/throttled-action.ts'
import type { ConsoleState, PageContext } from '../state/console-state.ts'
import type { ResolveHosts } from '../work-views/work-questions.ts'
import type { NetTestsPort } from './net-tests-port.ts'
import { type NetworkView, type NetworkViewId, splitOrder } from './network-view.ts'
import { newPairRecord, type PairRecord, pairPanes, pairSummary, takePairEvent } from './pair-panes.ts'

type Order = { readonly first: string; readonly second: string; readonly options: PairOptions }

const onPair =
  (isMeasuring: boolean) =>
  ({ network: { pair } }: ConsoleState): boolean =>
    pair?.isMeasuring === isMeasuring

export const pairKeys: readonly KeyEntry<ConsoleState>[] = keyTable<ConsoleState>()(
  ['stop', 'Esc q Ctrl-c c', 'stop', 'Pair: stop measuring.', onPair(true)],
  ['leave', 'Esc q', 'hosts', 'Pair: go back to the table of hosts.', onPair(false)],
  ['again', 'r', 'repeat', 'Pair: measure the same hosts again.', onPair(false)],
)

const SHOW_EVERY_MS = 200

export class PairTestView implements NetworkView {
  readonly #context: PageContext
  readonly #port: NetTestsPort
  readonly #resolveHosts: ResolveHosts
  readonly #show: (id: NetworkViewId) => void
  readonly #showing: ThrottledAction
  #chart: typeof lineChart | undefined
  #record: PairRecord | undefined
  #order: Order | undefined
  #working: AbortController | undefined
  #isDisposed = false

  constructor(context: PageContext, port: NetTestsPort, resolveHosts: ResolveHosts, show: (id: NetworkViewId) => void) {
    this.#context = context
    this.#port = port
    this.#resolveHosts = resolveHosts
    this.#show = show
    this.#showing = new ThrottledAction({ clock: context.clock, everyMs: SHOW_EVERY_MS }, () => this.#publish())
  }

  get busy() {
    const { first, second } = this.#order ?? {}
    if (this.#working === undefined || first === undefined || second === undefined) return undefined
    return { title: 'pair', hosts: [first, second] }
  }

  /** Measures the two marked hosts, or asks for two. */
  ask(marked: readonly string[]): void {
    if (this.busy !== undefined) return this.#show('pair')
    const [first, second] = marked
    if (first !== undefined && second !== undefined && marked.length === 2)
      return this.#begin({ first, second, options: this.#port.pairOptions([], marked) })
    this.#context.openDialog(
      promptDialog({
        id: 'pair',
        title: 'Measure the link between two hosts',
        label: 'Hosts, options:',
        ...(marked.length === 0 ? {} : { initial: `${marked.join(',')},` }),
        submitTitle: 'measure',
        complete: completeHostSet,
        help: [{ text: 'm1,m2     m[1-2] --time 10 --one-way     Space marks hosts in the table.', tone: 'muted' }],
        check: (text) => {
          try {
            const { first, second, options } = this.#read(text)
            return {
              preview: [
                { text: `${first} ${options.isOneWay ? '→' : '↔'} ${second}, ${options.seconds} s`, tone: 'ok' },
              ],
            }
          } catch (error) {
            return { error: sentenceOf(error) }
          }
        },
        onSubmit: (text) => this.#begin(this.#read(text)),
      }),
    )
  }

  open(): void {}

  panes(rect: Rect, theme: Theme): readonly PaneView[] {
    const { pair } = this.#context.state.network
    return pair === undefined ? [] : pairPanes(pair.view, { rect, theme, chart: this.#chart })
  }

  handleKey(label: string): boolean | 'leave' {
    switch (
      commandOf(
        pairKeys.filter(({ isActive }) => isActive?.(this.#context.state) !== false),
        label,
      )
    ) {
      case 'stop':
        this.#working?.abort()
        return true
      case 'again':
        if (this.#order !== undefined) this.#begin(this.#order)
        return true
      case 'leave':
        return 'leave'
      default:
        return false
    }
  }

  scrollBy(): void {}

  [Symbol.dispose](): void {
    this.#isDisposed = true
    this.#working?.abort()
    this.#showing[Symbol.dispose]()
  }

  /** In the order in which they are written. @throws MusterError */
  #read(text: string): Order {
    const { target, words } = splitOrder(text)
    const { hosts: all, groups } = this.#context.state
    const hosts = this.#resolveHosts(target.replace(/,\s*$/, ''), [...all.keys()], groups)
    const [first, second] = hosts
    if (first === undefined || second === undefined || hosts.length !== 2)
      throw new MusterError('usage', `name two hosts, not ${hosts.length}`)
    return {
      first,
      second,
      options: this.#port.pairOptions(words, hosts),
    }
  }

  #begin(order: Order): void {
    const working = new AbortController()
    const record = newPairRecord(order.first, order.second)
    this.#working = working
    this.#order = order
    this.#record = record
    this.#loadChart()
    this.#showing.now()
    this.#show('pair')
    void this.#measure(order, record, working)
  }

  async #measure({ first, second, options }: Order, record: PairRecord, working: AbortController): Promise<void> {
    try {
      await this.#port.measurePair(first, second, options, working.signal, (event) => {
        takePairEvent(record, event)
        if (!working.signal.aborted) this.#showing.soon()
      })
    } catch (error) {
      record.words.push(printable(sentenceOf(error)))
    }
    const words = pairSummary(record)
    record.words.push(...words)
    if (this.#working !== working) return
    this.#working = undefined
    if (this.#isDisposed) return
    for (const text of words) this.#context.log('', `pair: ${text}`)
    this.#showing.now()
  }

  #loadChart(): void {
    if (this.#chart !== undefined) return
    import('../charts/line-chart.ts').then(
      (module) => {
        this.#chart = module.lineChart
        if (!this.#isDisposed) this.#publish()
      },
      () => this.#context.notice('cannot load the charts', 'error'),
    )
  }

  #publish(): void {
    const view = this.#record
    if (view === undefined) return
    const pair = { view, isMeasuring: this.#working !== undefined }
    this.#context.change(({ network }) => ({ network: { ...network, pair } }))
  }
}
