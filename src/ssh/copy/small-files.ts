/** Small files in batches: each is read once for all hosts that keep up, offered to a host, and what the host lacks sent in one piece. */

import { createHash } from 'node:crypto'
import { setImmediate } from 'node:timers/promises'
import { getOrMake } from '../../base/collections.ts'
import { printable } from '../../base/printable.ts'
import { type BytePath, partialOf, showPath } from './byte-path.ts'
import type { CopyAction } from './events.ts'
import type { RemoteHelper } from './remote-helper.ts'
import { type CopySource, type SourceReader, systemReason } from './source.ts'

type SmallBatch = readonly CopySource[]

type SmallFile = { readonly file: CopySource; readonly bytes: Buffer; readonly sha256: string }

type Unreadable = { readonly file: CopySource; readonly reason: string }

const SMALL_BYTES = 64 * 1024
const BATCH_FILES = 256
const BATCH_BYTES = 2 * 1024 * 1024
/** For fewer files, do not start the helper on the host. */
const WORTH_FILES = 8
const KEPT_BATCHES = 8
/** Files that are read in a row, while this program does nothing else. */
const READ_AT_ONCE = 16

export class SmallFiles {
  readonly batches: readonly SmallBatch[]
  readonly #reader: SourceReader
  readonly #loaded = new Map<SmallBatch, Promise<readonly (SmallFile | Unreadable)[]>>()

  constructor(files: readonly CopySource[], reader: SourceReader) {
    this.#reader = reader
    const small = files.filter(({ sizeBytes }) => sizeBytes <= SMALL_BYTES)
    this.batches = small.length < WORTH_FILES ? [] : inBatches(small)
  }

  load(batch: SmallBatch): Promise<readonly (SmallFile | Unreadable)[]> {
    const loading = getOrMake(this.#loaded, batch, () => this.#load(batch))
    const [oldest = batch] = this.#loaded.keys()
    if (this.#loaded.size > KEPT_BATCHES) this.#loaded.delete(oldest)
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

function inBatches(files: readonly CopySource[]): readonly SmallBatch[] {
  const batches: CopySource[][] = []
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

type BatchTask = {
  readonly helper: RemoteHelper
  readonly isDryRun: boolean
  pathOf(file: CopySource): BytePath
  modeOf(file: CopySource): number
  /** It is below a directory that could not be made. */
  isLeftOut(path: BytePath): boolean
  onLeftOut(file: CopySource): void
  onFile(file: CopySource, action: CopyAction, isSent: boolean, reason?: string): void
}

/** Rejects with HelperLost: files without an event by then are not copied. */
export async function sendBatch(loaded: readonly (SmallFile | Unreadable)[], task: BatchTask): Promise<void> {
  const { helper, isDryRun, onFile } = task
  const items: (SmallFile & { readonly path: BytePath })[] = []
  for (const each of loaded) {
    const path = task.pathOf(each.file)
    if (task.isLeftOut(path)) task.onLeftOut(each.file)
    else if ('reason' in each) onFile(each.file, 'failed', false, `${showPath(each.file.path)}: ${each.reason}`)
    else items.push({ ...each, path })
  }
  const facts = ({ file, sha256 }: SmallFile) => [file.sizeBytes, task.modeOf(file), String(file.mtimeNs), sha256]
  const offer = items.map((item) => [item.path, ...facts(item)])
  const { answers = [] } = await helper.ask({ op: 'offer', files: offer, setsAttributes: !isDryRun })
  const needed: typeof items = []
  for (const [index, item] of items.entries()) {
    const answer = answers[index]
    if (answer === 'same') onFile(item.file, 'identical', false)
    else if (answer !== 'need') onFile(item.file, 'failed', false, printable(answer?.slice(1) ?? '') || 'failed')
    else if (isDryRun) onFile(item.file, 'would-copy', false)
    else needed.push(item)
  }
  if (needed.length === 0) return
  const pack = needed.map((item) => [item.path, partialOf(item.path), ...facts(item)])
  const { failures = [] } = await helper.ask(
    { op: 'pack', files: pack },
    needed.map(({ bytes }) => bytes),
  )
  const reasons = new Map(failures)
  for (const [index, { file }] of needed.entries()) {
    const reason = reasons.get(index)
    if (reason === undefined) onFile(file, 'copied', true)
    else onFile(file, 'failed', true, printable(reason) || 'failed')
  }
}
