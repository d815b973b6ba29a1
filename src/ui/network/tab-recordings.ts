/** What the Network tab records, and the recordings that it replays: `$XDG_STATE_HOME/muster/recordings/TIME/network.jsonl`. */
import { readdirSync, rmdirSync, rmSync, statSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { fileReason } from '../../base/errors.ts'
import { foreignDirectory } from '../../base/foreign-place.ts'
import { readBoundedSync } from '../../base/read-bounded.ts'
import { nameInFolder } from '../../base/short-path.ts'
import { stateDirectory } from '../../base/user-directories.ts'
import { parseRecording, type Recorded, Replay } from '../../ops/net/watch/recording.ts'
import { RecordingFile } from '../../ops/net/watch/recording-file.ts'
import type { Sample } from '../../ops/net/watch/sample.ts'
import { createRecordingDirectory } from '../console/recording.ts'

const FILE = 'network.jsonl'
/** Half a day of 64 hosts; `muster net watch --record` can write more. */
const MOST_BYTES = 2 ** 30
/** A replay is read as a whole. */
const MOST_READ_BYTES = 2 ** 28

type Environment = Readonly<Record<string, string | undefined>>

export type Shown = { readonly replay: Replay; readonly index: number; readonly count: number }

const listOf = ([first = '', ...more]: readonly string[]): string =>
  more.length === 0 ? first : `${first} (and ${more.length} more)`

export class TabRecordings implements Disposable {
  readonly #environment: Environment
  #current: { readonly file: RecordingFile; readonly path: string } | undefined
  #shown: Shown | undefined

  constructor(environment: Environment) {
    this.#environment = environment
  }

  get isRecording(): boolean {
    return this.#current !== undefined
  }

  get shown(): Shown | undefined {
    return this.#shown
  }

  /** Starts or stops a recording; returns the notice about it. */
  toggle(nowMs: number): string {
    const current = this.#current
    if (current !== undefined) {
      this.#end()
      if (current.file.sizeBytes === 0) return 'stopped recording: no data came, nothing was kept'
      return `recorded, o replays it: ${this.#nameOf(current.path)}`
    }
    const path = join(createRecordingDirectory(this.#environment, nowMs), FILE)
    this.#current = { file: new RecordingFile(path), path }
    return `recording into ${this.#nameOf(path)}`
  }

  /** All files have one name, and a folder of their own. */
  #nameOf(path: string): string {
    return nameInFolder(dirname(path), this.#environment)
  }

  /** Returns a notice if the recording has ended by itself. */
  write(host: string, sample: Sample): string | undefined {
    const current = this.#current
    if (current === undefined) return undefined
    const { file, path } = current
    try {
      file.write({ host, sample })
      if (file.sizeBytes < MOST_BYTES) return undefined
      this.#end()
      return `recording stopped at ${MOST_BYTES / 2 ** 30} GiB: ${this.#nameOf(path)}`
    } catch (error) {
      this.#end()
      return `recording stopped: ${fileReason(error)}`
    }
  }

  /** Opens the newest recording, or the one before the current one; returns a notice if there is none, or if some were skipped. */
  showOlder(): string | undefined {
    const paths = this.#paths()
    const first = this.#shown === undefined ? 0 : this.#shown.index + 1
    const skipped: string[] = []
    for (const [index, path] of paths.entries()) {
      if (index < first) continue
      const lines = this.#read(path)
      if (typeof lines !== 'string') {
        this.#shown = { replay: new Replay(lines), index, count: paths.length }
        return skipped.length === 0 ? undefined : `skipped ${listOf(skipped)}`
      }
      skipped.push(lines)
    }
    if (skipped.length > 0) return `${first === 0 ? 'nothing to replay' : 'no older recording'}: ${listOf(skipped)}`
    return first === 0 ? 'no recordings yet: r records' : 'no older recording'
  }

  /** Text: why it cannot be replayed. */
  #read(path: string): readonly Recorded[] | string {
    const name = basename(dirname(path))
    try {
      if (statSync(path).size > MOST_READ_BYTES)
        return `${name}, which is too large for the tab. Run: muster net watch --replay ${path}`
      const lines = parseRecording(readBoundedSync(path, MOST_READ_BYTES).toString())
      return lines.length > 0 ? lines : `${name}, which has no data`
    } catch (error) {
      return `${name}: ${fileReason(error)}`
    }
  }

  leaveReplay(): void {
    this.#shown = undefined
  }

  [Symbol.dispose](): void {
    this.#end()
  }

  #end(): void {
    const current = this.#current
    if (current === undefined) return
    this.#current = undefined
    const { file, path } = current
    file[Symbol.dispose]()
    if (file.sizeBytes > 0) return
    try {
      rmSync(path)
      rmdirSync(dirname(path))
    } catch {
      // It has gone, or the folder has another file.
    }
  }

  /** Newest first, without the one being written. */
  #paths(): string[] {
    const directory = join(stateDirectory(this.#environment), 'recordings')
    try {
      if (foreignDirectory(directory) !== undefined) return []
      const names = readdirSync(directory).toSorted().toReversed()
      return names
        .map((name) => join(directory, name, FILE))
        .filter((path) => path !== this.#current?.path && statSync(path, { throwIfNoEntry: false })?.isFile())
    } catch {
      return []
    }
  }
}
