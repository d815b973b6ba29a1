/** An NFS mount in the Network tab: how fast its client writes and reads, second by second. */
import { MusterError, sentenceOf } from '../../base/errors.ts'
import { printable } from '../../base/printable.ts'
import {
  type NfsOptions,
  type NfsRecord,
  newNfsRecord,
  nfsSummary,
  takeNfsEvent,
} from '../../ops/net/nfs/measure-nfs.ts'
import type { lineChart } from '../charts/line-chart.ts'
import type { PaneView, Rect, Theme } from '../compositor/scene.ts'
import { promptDialog } from '../dialogs/prompt-dialog.ts'
import { completeHostSet } from '../dialogs/prompt-line.ts'
import { commandOf, type KeyEntry, keyTable } from '../keys/key-table.ts'
import { ThrottledAction } from '../rows/throttled-action.ts'
import type { ConsoleState, PageContext } from '../state/console-state.ts'
import type { NetTestsPort } from './net-tests-port.ts'
import { type NetworkView, type NetworkViewId, splitOrder } from './network-view.ts'
import { nfsPanes } from './nfs-panes.ts'

type Order = { readonly host: string; readonly options: NfsOptions }

const onNfs =
  (isMeasuring: boolean) =>
  ({ network: { nfs } }: ConsoleState): boolean =>
    nfs?.isMeasuring === isMeasuring

export const nfsKeys: readonly KeyEntry<ConsoleState>[] = keyTable<ConsoleState>()(
  ['stop', 'Esc q Ctrl-c c', 'stop', 'NFS: stop measuring, and remove what was written.', onNfs(true)],
  ['leave', 'Esc q', 'hosts', 'NFS: go back to the table of hosts.', onNfs(false)],
  ['again', 'r', 'repeat', 'NFS: measure the same directory again.', onNfs(false)],
)

const SHOW_EVERY_MS = 200

export class NfsTestView implements NetworkView {
  readonly #context: PageContext
  readonly #port: NetTestsPort
  readonly #show: (id: NetworkViewId) => void
  readonly #showing: ThrottledAction
  #chart: typeof lineChart | undefined
  #record: NfsRecord | undefined
  #order: Order | undefined
  #working: AbortController | undefined
  #isDisposed = false

  constructor(context: PageContext, port: NetTestsPort, show: (id: NetworkViewId) => void) {
    this.#context = context
    this.#port = port
    this.#show = show
    this.#showing = new ThrottledAction({ clock: context.clock, everyMs: SHOW_EVERY_MS }, () => this.#publish())
  }

  get busy() {
    const host = this.#order?.host
    return this.#working === undefined || host === undefined ? undefined : { title: 'NFS test', hosts: [host] }
  }

  /** Shows what would be written and where, and asks. */
  ask(host: string | undefined): void {
    if (this.busy !== undefined) return this.#show('nfs')
    this.#context.openDialog(
      promptDialog({
        id: 'nfs-test',
        title: 'Measure an NFS mount from its client',
        label: 'Host, directory:',
        complete: (text) => (text.includes(' ') ? undefined : completeHostSet(text)),
        ...(host === undefined ? {} : { initial: host }),
        submitTitle: 'measure',
        help: [{ text: 'm8     m8 /data --time 20     m10 /srv/data (on the server itself)', tone: 'muted' }],
        check: (text) => {
          try {
            const { host: client, options } = this.#read(text)
            const where = options.directory ?? 'its first NFS mount'
            return {
              preview: [
                {
                  text: `${client}, ${printable(where)}: writes for ${options.seconds} s, then reads for ${options.seconds} s`,
                  tone: 'ok',
                },
                { text: 'at most 64 MiB in a new directory, which is removed at the end', tone: 'muted' },
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
    const { nfs } = this.#context.state.network
    return nfs === undefined ? [] : nfsPanes(nfs, { rect, theme, chart: this.#chart })
  }

  handleKey(label: string): boolean | 'leave' {
    switch (
      commandOf(
        nfsKeys.filter(({ isActive }) => isActive?.(this.#context.state) !== false),
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

  /** @throws MusterError */
  #read(text: string): Order {
    const { target, words } = splitOrder(text)
    const [host = '', ...path] = target.split(/\s+/)
    if (!this.#context.state.hosts.has(host)) throw new MusterError('usage', `${host} is not an open host`)
    const directory = path.length === 0 ? undefined : path.join(' ')
    if (directory !== undefined && !directory.startsWith('/'))
      throw new MusterError('usage', 'the directory must be an absolute path')
    const seconds = this.#port.nfsSeconds(words)
    return { host, options: { directory, seconds } }
  }

  #begin(order: Order): void {
    const working = new AbortController()
    const record = newNfsRecord(order.host)
    this.#working = working
    this.#order = order
    this.#record = record
    this.#loadChart()
    this.#showing.now()
    this.#show('nfs')
    void this.#measure(order, record, working)
  }

  async #measure({ host, options }: Order, record: NfsRecord, working: AbortController): Promise<void> {
    try {
      await this.#port.measureNfs(host, options, working.signal, (event) => {
        takeNfsEvent(record, event)
        if (!this.#isDisposed) this.#showing.soon()
      })
    } catch (error) {
      record.failures.push(sentenceOf(error))
    }
    if (this.#working !== working) return
    this.#working = undefined
    if (this.#isDisposed) return
    for (const text of nfsSummary(record)) this.#context.log(host, `NFS: ${text}`)
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
    const record = this.#record
    if (record === undefined) return
    const nfs = { record, isMeasuring: this.#working !== undefined }
    this.#context.change(({ network }) => ({ network: { ...network, nfs } }))
  }
}
