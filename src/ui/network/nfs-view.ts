/** An NFS mount in the Network tab: how fast its client writes and reads, second by second. */
import { MusterError } from '../../base/errors.ts'
import { printable } from '../../base/printable.ts'
import { type NfsOptions, type NfsRecord, newNfsRecord } from '../../ops/net/nfs/measure-nfs.ts'
import { completeHostSet } from '../dialogs/prompt-line.ts'
import { LiveTest, liveTestKeys } from './live-test.ts'
import { splitOrder } from './network-view.ts'
import { nfsPanes } from './nfs-panes.ts'

type Order = { readonly host: string; readonly options: NfsOptions }

export const nfsKeys = liveTestKeys('nfs', 'NFS', {
  stop: ', and remove what was written',
  again: 'the same directory',
  otherKey: 'n',
  other: 'another directory',
})

export class NfsTest extends LiveTest<Order, NfsRecord> {
  protected readonly id = 'nfs'
  protected readonly title = 'NFS test'
  protected readonly keys = nfsKeys
  protected readonly draw = nfsPanes

  /** Shows what would be written and where, and asks. */
  ask(host: string | undefined): void {
    if (this.busy !== undefined) return this.parts.show('nfs')
    this.prompt(
      {
        id: 'nfs-test',
        title: 'Measure an NFS mount from its client',
        label: 'Host, directory:',
        complete: (text) => (text.includes(' ') ? undefined : completeHostSet(text)),
        ...(host === undefined ? {} : { initial: host }),
        submitTitle: 'measure',
        help: [{ text: 'm8     m8 /data --time 20     m10 /srv/data (on the server itself)', tone: 'muted' }],
      },
      ({ host: client, options: { directory = 'its first NFS mount', seconds } }) => [
        {
          text: `${client}, ${printable(directory)}: writes for ${seconds} s, then reads for ${seconds} s`,
          tone: 'ok',
        },
        { text: 'at most 64 MiB in a new directory, which is removed at the end', tone: 'muted' },
      ],
    )
  }

  protected askOther(): void {
    const { nfs } = this.parts.context.state.network
    this.ask(nfs === undefined ? undefined : `${nfs.record.host} `)
  }

  protected read(text: string): Order {
    const { target, words } = splitOrder(text)
    const [host = '', ...path] = target.split(/\s+/)
    if (!this.parts.context.state.hosts.has(host)) throw new MusterError('usage', `${host} is not an open host`)
    const directory = path.length === 0 ? undefined : path.join(' ')
    if (directory !== undefined && !directory.startsWith('/'))
      throw new MusterError('usage', 'the directory must be an absolute path')
    return { host, options: { directory, seconds: this.parts.port.nfsSeconds(words) } }
  }

  protected hostsOf = ({ host }: Order): readonly string[] => [host]

  protected newRecord = ({ host }: Order): NfsRecord => newNfsRecord(host)

  protected measure = ({ options }: Order, record: NfsRecord, signal: AbortSignal, changed: () => void) =>
    this.parts.port.measureNfs(record, options, signal, changed)
}
