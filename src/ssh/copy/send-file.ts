/**
 * The bytes of one file to its temporary name on a host: carried on where an earlier copy was cut, from here or from other
 * hosts. It gives the file no name.
 */
import type { BytePath } from './byte-path.ts'
import { CHAIN_BYTES } from './chain.ts'
import type { Seat } from './passing-seat.ts'
import { type RemoteFiles, RemoteRefusal } from './remote-files.ts'
import type { RemoteHelper } from './remote-helper.ts'
import { UNIT_BYTES } from './remote-script.ts'
import { BLOCK_BYTES, SourceChanged, type SourceFile, type SourceReader } from './source.ts'

export type SendTask = {
  readonly reader: SourceReader
  /** Undefined where there is none. */
  readonly helper?: Promise<RemoteHelper | undefined>
  /** Undefined: the host takes this file from here. */
  enterChain?(file: SourceFile, path: BytePath, have: number): Seat | undefined
  onProgress(bytes: number, isSent: boolean): void
}

export type Sent = {
  /** They were there from an earlier copy. */
  readonly resumedBytes: number
  /** Some of it came from another host. */
  readonly isCarried: boolean
}

/** Bytes with one order; the host answers each. */
const SEGMENT_BLOCKS = 4
/** Segments on the way that the host has not answered. */
const SEGMENTS_AHEAD = 4
/** As long as the file may yet come from another host. */
const UNDECIDED = { blocks: 1, ahead: 2 }

export class FileSender {
  readonly #remote: RemoteFiles
  readonly #task: SendTask
  /** How the temporary names of this copy end. */
  #suffix: Promise<string> | undefined

  constructor(remote: RemoteFiles, task: SendTask) {
    this.#remote = remote
    this.#task = task
  }

  /** `isAlone`: from here only. @throws RemoteRefusal, RemoteLost, SourceChanged */
  async send(file: SourceFile, temporary: BytePath, leftOver: number, isAlone: boolean): Promise<Sent> {
    const { onProgress } = this.#task
    const resumedBytes = await this.#usablePrefix(file, temporary, leftOver)
    if (leftOver > 0 || resumedBytes > 0) await this.#remote.call('C', temporary, resumedBytes / UNIT_BYTES)
    if (resumedBytes > 0) onProgress(resumedBytes, false)
    const seat = isAlone ? undefined : await this.#enterChain(file, temporary, resumedBytes)
    let have = resumedBytes
    let isCarried = false
    try {
      do {
        have = await this.#sendFrom(file, temporary, have, seat)
        if (have >= file.sizeBytes || seat === undefined) break
        const carriedTo = await this.#remote.orLost(seat.carried(have))
        isCarried ||= carriedTo > have
        // Blocks are sent whole.
        have = carriedTo === file.sizeBytes ? carriedTo : carriedTo - (carriedTo % BLOCK_BYTES)
      } while (have < file.sizeBytes)
    } catch (error) {
      if (error instanceof RemoteRefusal || error instanceof SourceChanged) await this.#remote.call('Z', temporary)
      throw error
    } finally {
      seat?.leave()
    }
    return { resumedBytes, isCarried }
  }

  async #enterChain(file: SourceFile, temporary: BytePath, have: number): Promise<Seat | undefined> {
    const { helper, enterChain } = this.#task
    if (enterChain === undefined || file.sizeBytes < CHAIN_BYTES || (await helper) === undefined) return undefined
    this.#suffix ??= this.#remote.call('E')
    return enterChain(file, `${temporary}.${await this.#suffix}`, have)
  }

  /** From here, until the end or until others bring it. Returns how much the host has then: nothing is under way. */
  async #sendFrom(file: SourceFile, temporary: BytePath, from: number, seat: Seat | undefined): Promise<number> {
    const { reader, onProgress } = this.#task
    const answers: Promise<void>[] = []
    const blockCount = Math.max(1, Math.ceil(file.sizeBytes / BLOCK_BYTES))
    let failure: unknown
    let have = from
    let chunks: Buffer[] = []
    let startIndex = 0
    const flush = async () => {
      if (chunks.length === 0) return
      const bytes = chunks.reduce((sum, chunk) => sum + chunk.length, 0)
      const end = startIndex * BLOCK_BYTES + bytes
      const units = (startIndex * BLOCK_BYTES) / UNIT_BYTES
      const { written, done } = this.#remote.send(chunks, 'W', temporary, units, bytes)
      chunks = []
      answers.push(
        done.then(
          () => {
            onProgress(bytes, true)
            if (failure !== undefined) return
            have = end
            seat?.advance(end)
          },
          (error: unknown) => {
            failure ??= error
          },
        ),
      )
      await written
      while (answers.length > (seat?.isUndecided ? UNDECIDED.ahead : SEGMENTS_AHEAD)) await answers.shift()
    }
    try {
      for (let index = from / BLOCK_BYTES; index < blockCount && failure === undefined; index += 1) {
        if (seat?.isCarried) break
        const block = file.sizeBytes === 0 ? Buffer.alloc(0) : await reader.read(file, index)
        // The last block is always written: it gives the file its size.
        if (file.isSparse && index < blockCount - 1 && isZero(block)) {
          await flush()
          onProgress(block.length, false)
          continue
        }
        if (chunks.length === 0) startIndex = index
        chunks.push(block)
        if (chunks.length >= (seat?.isUndecided ? UNDECIDED.blocks : SEGMENT_BLOCKS)) await flush()
      }
      await flush()
    } catch (error) {
      failure ??= error
    }
    await Promise.all(answers)
    if (failure !== undefined) throw failure
    return have
  }

  /** How much of what is left from an earlier copy is the beginning of this file. */
  async #usablePrefix(file: SourceFile, temporary: BytePath, leftOver: number): Promise<number> {
    const blocks = Math.min(Math.floor(leftOver / BLOCK_BYTES), Math.ceil(file.sizeBytes / BLOCK_BYTES) - 1)
    if (blocks < 1) return 0
    const bytes = blocks * BLOCK_BYTES
    const [theirs, ours] = await Promise.all([
      this.#remote.call('Y', temporary, bytes / UNIT_BYTES),
      this.#task.reader.prefixDigest(file, bytes),
    ])
    return theirs === ours ? bytes : 0
  }
}

const ZEROS = Buffer.alloc(BLOCK_BYTES)

function isZero(block: Buffer): boolean {
  return block.equals(block.length === BLOCK_BYTES ? ZEROS : ZEROS.subarray(0, block.length))
}
