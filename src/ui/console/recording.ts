/** Recording what receivers print: one asciicast file a host, in a folder of its own for each start. */

import { messageOf } from '../../base/errors.ts'
import { foldHostSet } from '../../inventory/host-set.ts'
import { createAsciicastRecorder } from '../../terminal/asciicast.ts'
import { receiverList } from '../state/console-state.ts'
import type { PageContext } from '../tabs/page-context.ts'
import type { HostViews } from './host-views.ts'
import { createRecordingDirectory } from './recordings.ts'

export class Recording implements Disposable {
  readonly #context: PageContext
  readonly #views: HostViews
  readonly #environment: Readonly<Record<string, string | undefined>>
  readonly #hosts = new Set<string>()

  constructor(context: PageContext, views: HostViews, environment: Readonly<Record<string, string | undefined>>) {
    this.#context = context
    this.#views = views
    this.#environment = environment
  }

  toggle(): void {
    if (this.#hosts.size > 0) return this.stop()
    const { clock } = this.#context
    const hosts = receiverList(this.#context.state)
    try {
      const directory = createRecordingDirectory(this.#environment, clock.now())
      for (const host of hosts) {
        const { columns, rows } = this.#views.size(host)
        const recorder = createAsciicastRecorder({
          directory,
          host,
          columns,
          rows,
          clock,
          term: 'xterm-256color',
          onError: (error) => {
            this.#context.notice(`recording of ${host} stopped: ${messageOf(error)}`, 'error')
            this.#stopHost(host)
          },
        })
        this.#views.record(host, recorder)
        this.#hosts.add(host)
      }
      this.#mark(hosts, true)
      this.#tell(`recording ${foldHostSet(hosts)} into ${directory}`)
    } catch (error) {
      this.stop()
      this.#context.notice(`cannot record: ${messageOf(error)}`, 'error')
    }
  }

  stop(): void {
    const hosts = [...this.#hosts]
    for (const host of hosts) this.#stopHost(host)
    if (hosts.length > 0) this.#tell(`stopped recording ${foldHostSet(hosts)}`)
  }

  #stopHost(host: string): void {
    if (!this.#hosts.delete(host)) return
    this.#views.stopRecording(host)
    this.#mark([host], false)
  }

  #mark(names: readonly string[], isRecording: boolean): void {
    this.#context.change(({ hosts }) => ({
      hosts: new Map([...hosts].map(([name, host]) => [name, names.includes(name) ? { ...host, isRecording } : host])),
    }))
  }

  #tell(text: string): void {
    this.#context.notice(text)
    this.#context.log('', text)
  }

  [Symbol.dispose](): void {
    for (const host of [...this.#hosts]) this.#views.stopRecording(host)
    this.#hosts.clear()
  }
}
