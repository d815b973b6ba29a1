/** A pair of hosts in the Network tab: both directions and the round trips, second by second. */
import { MusterError } from '../../base/errors.ts'
import type { PairOptions } from '../../ops/net/pair/measure-pair.ts'
import { newPairRecord, type PairRecord } from '../../ops/net/pair/pair-record.ts'
import { completeHostSet } from '../dialogs/prompt-line.ts'
import { LiveTest, liveTestKeys } from './live-test.ts'
import { splitOrder } from './network-view.ts'
import { pairPanes } from './pair-panes.ts'

type Order = { readonly first: string; readonly second: string; readonly options: PairOptions }

export const pairKeys = liveTestKeys('pair', 'Pair', {
  stop: '',
  again: 'the same hosts',
  otherKey: 'p',
  other: 'other hosts',
})

export class PairTest extends LiveTest<Order, PairRecord> {
  protected readonly id = 'pair'
  protected readonly title = 'pair'
  protected readonly keys = pairKeys
  protected readonly draw = pairPanes

  /** Measures the two marked hosts, or asks for two. */
  ask(marked: readonly string[]): void {
    if (this.busy !== undefined) return this.parts.show('pair')
    const [first, second] = marked
    if (first !== undefined && second !== undefined && marked.length === 2)
      return this.begin({ first, second, options: this.parts.port.pairOptions([], marked) })
    this.prompt(
      {
        id: 'pair',
        title: 'Measure the link between two hosts',
        label: 'Hosts, options:',
        ...(marked.length === 0 ? {} : { initial: `${marked.join(',')},` }),
        submitTitle: 'measure',
        complete: completeHostSet,
        help: [{ text: 'm1,m2     m[1-2] --time 10 --one-way     Space marks hosts in the table.', tone: 'muted' }],
      },
      ({ first: from, second: to, options: { isOneWay, seconds } }) => [
        { text: `${from} ${isOneWay ? '→' : '↔'} ${to}, ${seconds} s`, tone: 'ok' },
      ],
    )
  }

  protected askOther(): void {
    this.ask([])
  }

  /** In the order in which they are written. */
  protected read(text: string): Order {
    const { target, words } = splitOrder(text)
    const { hosts: all, groups } = this.parts.context.state
    const hosts = this.parts.resolveHosts(target.replace(/,\s*$/, ''), [...all.keys()], groups)
    const [first, second] = hosts
    if (first === undefined || second === undefined || hosts.length !== 2)
      throw new MusterError('usage', `name two hosts, not ${hosts.length}`)
    return { first, second, options: this.parts.port.pairOptions(words, hosts) }
  }

  protected override secondsOf({ options }: Order): number {
    return options.seconds
  }

  protected hostsOf = ({ first, second }: Order): readonly string[] => [first, second]

  protected newRecord = ({ first, second }: Order): PairRecord => newPairRecord(first, second)

  protected measure = ({ options }: Order, record: PairRecord, signal: AbortSignal, changed: () => void) =>
    this.parts.port.measurePair(record, options, signal, changed)
}
