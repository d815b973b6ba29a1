/** Small files in batches that are read once for all hosts that keep pace, and go to a host in one piece each. */
import { createHash } from 'node:crypto'
import { setImmediate } from 'node:timers/promises'
import { type SourceFile, type SourceReader, systemReason } from './source.ts'

export type SmallBatch = readonly SourceFile[]

export type SmallFile = { readonly file: SourceFile; readonly bytes: Buffer; readonly sha256: string }

export type Unreadable = { readonly file: SourceFile; readonly reason: string }

const SMALL_BYTES = 64 * 1024
const BATCH_FILES = 256
const BATCH_BYTES = 2 * 1024 * 1024
/** Fewer are not worth the start of another program on the host. */
const WORTH_FILES = 8
const KEPT_BATCHES = 8
/** Files that are read in one go, while nothing else can happen here. */
const READ_AT_ONCE = 16

export class SmallFiles {
  readonly batches: readonly SmallBatch[]
  readonly #reader: SourceReader
  readonly #loaded = new Map<SmallBatch, Promise<readonly (SmallFile | Unreadable)[]>>()

  constructor(files: readonly SourceFile[], reader: SourceReader) {
    this.#reader = reader
    const small = files.filter(({ sizeBytes }) => sizeBytes <= SMALL_BYTES)
    this.batches = small.length < WORTH_FILES ? [] : inBatches(small)
  }

  load(batch: SmallBatch): Promise<readonly (SmallFile | Unreadable)[]> {
    const known = this.#loaded.get(batch)
    if (known !== undefined) return known
    const loading = this.#load(batch)
    this.#loaded.set(batch, loading)
    if (this.#loaded.size > KEPT_BATCHES) {
      const [oldest] = this.#loaded.keys()
      if (oldest !== undefined) this.#loaded.delete(oldest)
    }
    return loading
  }

  async #load(batch: SmallBatch): Promise<readonly (SmallFile | Unreadable)[]> {
    const loaded: (SmallFile | Unreadable)[] = []
    for (const [index, file] of batch.entries()) {
      if (index % READ_AT_ONCE === READ_AT_ONCE - 1) await setImmediate()
      try {
        const bytes = this.#reader.readWhole(file)
        loaded.push({ file, bytes, sha256: createHash('sha256').update(bytes).digest('hex') })
      } catch (error) {
        loaded.push({ file, reason: systemReason(error) })
      }
    }
    return loaded
  }
}

function inBatches(files: readonly SourceFile[]): readonly SmallBatch[] {
  const batches: SourceFile[][] = []
  let bytes = Number.POSITIVE_INFINITY
  for (const file of files) {
    const last = batches.at(-1)
    if (last === undefined || last.length >= BATCH_FILES || bytes + file.sizeBytes > BATCH_BYTES) {
      batches.push([file])
      bytes = file.sizeBytes
    } else {
      last.push(file)
      bytes += file.sizeBytes
    }
  }
  return batches
}
