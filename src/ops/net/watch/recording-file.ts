/** A recording while it is written, mode 0600. It has whole lines only, also when the disk is full. */
import { closeSync, ftruncateSync, openSync, writeFileSync } from 'node:fs'
import { type Recorded, recordingLine } from './recording.ts'

export class RecordingFile implements Disposable {
  readonly #descriptor: number
  #sizeBytes = 0

  /** @throws what node:fs throws, also if the path exists */
  constructor(path: string) {
    this.#descriptor = openSync(path, 'wx', 0o600)
  }

  get sizeBytes(): number {
    return this.#sizeBytes
  }

  /** @throws what node:fs throws; the file then ends with the line before, and takes no more */
  write(recorded: Recorded): void {
    const line = Buffer.from(recordingLine(recorded))
    try {
      writeFileSync(this.#descriptor, line)
    } catch (error) {
      ftruncateSync(this.#descriptor, this.#sizeBytes)
      throw error
    }
    this.#sizeBytes += line.length
  }

  [Symbol.dispose](): void {
    closeSync(this.#descriptor)
  }
}
