/** Recording what receivers print: one asciicast file a host, in a folder of its own for each start. */

import { messageOf } from '../../base/errors.ts'
import { foldHostSet } from '../../inventory/host-set.ts'
import { createAsciicastRecorder } from '../../terminal/asciicast.ts'
import { receiverList } from '../state/console-state.ts'
import type { Console } from './console.ts'
import { createRecordingDirectory } from './recordings.ts'

export class Recording implements Disposable {
  readonly #console: Console
  readonly #hosts = new Set<string>()

  constructor(console: Console) {
    this.#console = console
  }

  toggle(): void {
    if (this.#hosts.size > 0) return this.stop()
    const { environment, clock } = this.#console.ports
    const hosts = receiverList(this.#console.state)
    try {
      const directory = createRecordingDirectory(environment, clock.now())
      for (const host of hosts) {
        const { columns, rows } = this.#console.views.size(host)
        const recorder = createAsciicastRecorder({
          directory,
          host,
          columns,
          rows,
          clock,
          term: 'xterm-256color',
          onError: (error) => {
            this.#console.notice(`recording of ${host} stopped: ${messageOf(error)}`, 'error')
            this.#stopHost(host)
          },
        })
        this.#console.views.record(host, recorder)
        this.#hosts.add(host)
      }
      this.#console.setRecording(hosts, true)
      this.#tell(`recording ${foldHostSet(hosts)} into ${directory}`)
    } catch (error) {
      this.stop()
      this.#console.notice(`cannot record: ${messageOf(error)}`, 'error')
    }
  }

  stop(): void {
    const hosts = [...this.#hosts]
    for (const host of hosts) this.#stopHost(host)
    if (hosts.length > 0) this.#tell(`stopped recording ${foldHostSet(hosts)}`)
  }

  #stopHost(host: string): void {
    if (!this.#hosts.delete(host)) return
    this.#console.views.stopRecording(host)
    this.#console.setRecording([host], false)
  }

  #tell(text: string): void {
    this.#console.notice(text)
    this.#console.log('', text)
  }

  [Symbol.dispose](): void {
    for (const host of [...this.#hosts]) this.#console.views.stopRecording(host)
    this.#hosts.clear()
  }
}
