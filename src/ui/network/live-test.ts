/** A measurement in the Network tab that is drawn as charts, second by second. */
import { sentenceOf } from '../../base/errors.ts'
import { printable } from '../../base/printable.ts'
import { foldHostSet } from '../../inventory/host-set.ts'
import { testSummary } from '../../ops/net/format-test.ts'
import { hasValues, type TestConclusion } from '../../ops/net/kept-test.ts'
import { LazyLineChart } from '../charts/lazy-line-chart.ts'
import type { PaneView, Rect, Theme } from '../compositor/scene.ts'
import { activeCommandOf, keyTable } from '../keys/key-table.ts'
import type { ConsoleState } from '../state/console-state.ts'
import { NetTest } from './net-test.ts'
import type { LiveRun, LiveTestId } from './network-view.ts'
import type { PaneContext } from './pane-screen.ts'
import { openExport, testExport } from './result-export.ts'

type TestRecord = { readonly failures: string[] }

/** `help`: the ends of the help sentences of the keys that stop and repeat it. */
export function liveTestKeys(
  id: LiveTestId,
  name: string,
  help: { readonly stop: string; readonly again: string; readonly otherKey: string; readonly other: string },
) {
  const on =
    (isMeasuring: boolean) =>
    ({ network }: ConsoleState): boolean =>
      network[id]?.isMeasuring === isMeasuring
  const isMeasured = ({ network }: ConsoleState): boolean => {
    const test = network[id]?.conclusion?.test
    return test !== undefined && hasValues(test)
  }
  return keyTable<ConsoleState>()(
    ['stop', 'Esc q Ctrl-c c', 'stop', `${name}: stop measuring${help.stop}.`, on(true)],
    ['leave', 'Esc q', 'hosts', `${name}: go back to the table of hosts.`, on(false)],
    ['write', 'w', 'write', `${name}: write the result as SVG or CSV.`, isMeasured],
    ['again', 'r', 'repeat', `${name}: measure ${help.again} again.`, on(false)],
    ['other', help.otherKey, help.other, `${name}: measure ${help.other}.`, on(false)],
    ['results', 'v', 'results', `${name}: list the kept results.`, on(false)],
  )
}

/** `O`: the order of the user, `R`: the record of the measurement. */
export abstract class LiveTest<O, R extends TestRecord> extends NetTest<O> {
  readonly #chart = new LazyLineChart()
  #order: O | undefined
  #run: LiveRun<R> | undefined

  protected abstract readonly id: LiveTestId
  protected abstract readonly keys: ReturnType<typeof liveTestKeys>
  /** For the log and for the question before leaving. */
  protected abstract readonly title: string
  protected abstract readonly draw: (run: LiveRun<R>, context: PaneContext) => readonly PaneView[]
  protected abstract hostsOf(order: O): readonly string[]
  protected abstract newRecord(order: O): R
  /** Fills the record, and calls `changed` after each change. */
  protected abstract measure(order: O, record: R, signal: AbortSignal, changed: () => void): Promise<TestConclusion>

  get busy() {
    if (this.working === undefined || this.#order === undefined) return undefined
    return { title: this.title, hosts: this.hostsOf(this.#order) }
  }

  panes(rect: Rect, theme: Theme): readonly PaneView[] {
    const run = this.#run
    return run === undefined ? [] : this.draw(run, { rect, theme, chart: this.#chart.draw })
  }

  handleKey(label: string): boolean | 'leave' {
    const { context, port, show } = this.parts
    const command = activeCommandOf(this.keys, label, context.state)
    const conclusion = this.#run?.conclusion
    if (command === 'leave') return 'leave'
    if (command === 'stop') this.working?.abort()
    if (command === 'again' && this.#order !== undefined) this.begin(this.#order)
    if (command === 'other') this.askOther()
    if (command === 'write' && conclusion !== undefined) openExport(context, port, testExport(conclusion))
    if (command === 'results') show('results')
    return command !== undefined
  }

  /** How long it takes; undefined: that is not known. */
  protected secondsOf(_order: O): number | undefined {
    return undefined
  }

  /** Asks for another order. */
  protected abstract askOther(): void

  scrollBy(): void {}

  protected begin(order: O): void {
    const working = new AbortController()
    const record = this.newRecord(order)
    this.working = working
    this.#order = order
    this.#run = { record, isMeasuring: true, seconds: this.secondsOf(order), conclusion: undefined }
    this.#chart.load(
      () => this.isDisposed || this.publish(),
      () => this.parts.context.notice('cannot load the charts', 'error'),
    )
    this.showing.now()
    this.parts.show(this.id)
    void this.#measure(order, record, working)
  }

  protected publish(): void {
    this.parts.context.change(({ network }) => ({ network: { ...network, [this.id]: this.#run } }))
  }

  async #measure(order: O, record: R, working: AbortController): Promise<void> {
    let conclusion: TestConclusion | undefined
    try {
      conclusion = await this.measure(order, record, working.signal, () => {
        if (!this.isDisposed) this.showing.soon()
      })
    } catch (error) {
      record.failures.push(sentenceOf(error))
    }
    if (this.working !== working) return
    this.working = undefined
    if (this.isDisposed) return
    this.#run = { record, isMeasuring: false, conclusion }
    const hosts = foldHostSet(this.hostsOf(order))
    const found = conclusion?.findings.map(({ text }) => text) ?? []
    const words = [...record.failures, ...(conclusion === undefined ? [] : testSummary(conclusion.test)), ...found]
    for (const text of words) this.parts.context.log(hosts, printable(`${this.title}: ${text}`))
    this.showing.now()
  }
}
