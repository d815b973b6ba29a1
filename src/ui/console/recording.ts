/** Records the output of the receivers: one asciicast file per host, in a new folder for each start. */
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { fileReason, MusterError, notKept } from '../../base/errors.ts'
import { makeOwnDirectories } from '../../base/foreign-place.ts'
import { underFreeName } from '../../base/free-name.ts'
import { nameInFolder } from '../../base/short-path.ts'
import { fileTimeText } from '../../base/time-text.ts'
import { stateDirectory } from '../../base/user-directories.ts'
import { foldHostSet } from '../../inventory/host-set.ts'
import { AsciicastRecorder } from '../../terminal/asciicast.ts'
import { type PageContext, receiverList } from '../state/console-state.ts'
import type { HostViews } from './host-views.ts'

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
        const recorder = new AsciicastRecorder({
          directory,
          host,
          columns,
          rows,
          clock,
          term: 'xterm-256color',
          // The other files are on the same disk.
          onError: (error) => this.stop(error),
        })
        this.#views.record(host, recorder)
        this.#hosts.add(host)
      }
      this.#mark(hosts, true)
      const start = `recording ${foldHostSet(hosts)} into`
      this.#context.notice(`${start} ${nameInFolder(directory, this.#environment)}`)
      this.#context.log('', `${start} ${directory}`)
    } catch (error) {
      this.stop()
      const { cause = error } = error instanceof MusterError ? error : {}
      this.#context.notice(`cannot record: ${fileReason(cause)}`, 'error')
      this.#context.log('', `cannot record: ${fileReason(error)}`, 'error')
    }
  }

  stop(trouble?: Error): void {
    const hosts = [...this.#hosts]
    for (const host of hosts) this.#stopHost(host)
    if (hosts.length === 0) return
    if (trouble === undefined) this.#report(`stopped recording ${foldHostSet(hosts)}`)
    else this.#report(`recording of ${foldHostSet(hosts)} stopped: ${fileReason(trouble)}`, 'error')
  }

  /** Their panes are closed. */
  leave(hosts: readonly string[]): void {
    const recorded = this.among(hosts)
    for (const host of recorded) {
      this.#stopHost(host)
      this.#context.log(host, 'its recording ended: its pane was closed')
    }
  }

  among(hosts: readonly string[]): readonly string[] {
    return hosts.filter((host) => this.#hosts.has(host))
  }

  #stopHost(host: string): void {
    if (!this.#hosts.delete(host)) return
    this.#views.stopRecording(host)
    this.#mark([host], false)
  }

  #mark(names: readonly string[], isRecording: boolean): void {
    const marked = new Set(names)
    this.#context.change(({ hosts }) => ({
      hosts: hosts.map((host) => (marked.has(host.host) ? { ...host, isRecording } : host)),
    }))
  }

  #report(text: string, tone: 'info' | 'error' = 'info'): void {
    this.#context.log('', text, tone)
    this.#context.notice(text, tone)
  }

  [Symbol.dispose](): void {
    for (const host of [...this.#hosts]) this.#views.stopRecording(host)
    this.#hosts.clear()
  }
}

/**
 * Makes `recordings/2026-11-21T10-15-30`, or `…-30-2` if that one exists, readable for the user alone. Returns its path.
 * @throws MusterError
 */
export function createRecordingDirectory(
  environment: Readonly<Record<string, string | undefined>>,
  nowMs: number,
): string {
  const all = join(stateDirectory(environment), 'recordings')
  try {
    makeOwnDirectories(all)
    return underFreeName(join(all, fileTimeText(nowMs)), (directory) => {
      mkdirSync(directory, 0o700)
      return directory
    })
  } catch (error) {
    if (error instanceof MusterError) throw error
    throw new MusterError('configuration', notKept(all, error), { cause: error })
  }
}
