/**
 * The bytes of one file to its temporary name on a host: carried on where an earlier copy was cut, from here or from other
 * hosts. It gives the file no name.
 */
import type { Clock } from '../../base/clock.ts'
import type { BytePath } from './byte-path.ts'
import { CHAIN_BYTES } from './chain.ts'
import { Pace } from './pace.ts'
import type { RelayHop } from './relay.ts'
import { type RemoteFiles, RemoteRefusal } from './remote-files.ts'
import type { RemoteHelper } from './remote-helper.ts'
import { UNIT_BYTES } from './remote-script.ts'
import { BLOCK_BYTES, SourceChanged, type SourceFile, type SourceReader } from './source.ts'

export type SendTask = {
  readonly clock: Clock
  readonly reader: SourceReader
  /** Undefined where there is none. */
  readonly helper?: Promise<RemoteHelper | undefined>
  /** Undefined: the host takes this file from here. */
  joinRelay?(file: SourceFile, path: BytePath, have: number): RelayHop | undefined
  onProgress(bytes: number, isSent: boolean): void
}

export type Sent = {
  /** They were there from an earlier copy. */
  readonly resumedBytes: number
  /** Some of it came from another host. */
  readonly isRelayed: boolean
}

/** Of a file; without chunks, a hole. */
type Extent = { readonly chunks: readonly Buffer[]; readonly bytes: number }

export class FileSender {
  readonly #remote: RemoteFiles
  readonly #task: SendTask
  readonly #pace: Pace
  /** How the temporary names of this copy end. */
  #suffix: Promise<string> | undefined

  constructor(remote: RemoteFiles, task: SendTask) {
    this.#remote = remote
    this.#task = task
    this.#pace = new Pace(task.clock)
  }

  /** `isAlone`: from here only. @throws RemoteRefusal, RemoteLost, SourceChanged */
  async send(file: SourceFile, temporary: BytePath, leftOver: number, isAlone: boolean): Promise<Sent> {
    const { onProgress } = this.#task
    const resumedBytes = await this.#usablePrefix(file, temporary, leftOver)
    // Not awaited: where it is refused, so is every order behind it.
    const begun = this.#remote.call('T', temporary)
    begun.catch(() => {})
    if (leftOver > 0 || resumedBytes > 0) await this.#remote.call('C', temporary, resumedBytes / UNIT_BYTES)
    if (file.sizeBytes >= CHAIN_BYTES) await begun
    if (resumedBytes > 0) onProgress(resumedBytes, false)
    const hop = isAlone ? undefined : await this.#joinRelay(file, temporary, resumedBytes)
    let have = resumedBytes
    let isRelayed = false
    try {
      do {
        have = await this.#sendFrom(file, temporary, have, hop)
        await begun
        if (have >= file.sizeBytes || hop === undefined) break
        const relayedTo = await this.#remote.orLost(hop.relayed(have))
        isRelayed ||= relayedTo > have
        have = relayedTo === file.sizeBytes ? relayedTo : relayedTo - (relayedTo % UNIT_BYTES)
      } while (have < file.sizeBytes)
    } catch (error) {
      if (error instanceof RemoteRefusal || error instanceof SourceChanged) await this.#remote.call('Z', temporary)
      throw error
    } finally {
      hop?.leave()
    }
    return { resumedBytes, isRelayed }
  }

  async #joinRelay(file: SourceFile, temporary: BytePath, have: number): Promise<RelayHop | undefined> {
    const { helper, joinRelay } = this.#task
    if (joinRelay === undefined || file.sizeBytes < CHAIN_BYTES || (await helper) === undefined) return undefined
    this.#suffix ??= this.#remote.call('E')
    return joinRelay(file, `${temporary}.${await this.#suffix}`, have)
  }

  /** From here, until the end or until others bring it. Returns how much the host has then: nothing is under way. */
  async #sendFrom(file: SourceFile, temporary: BytePath, from: number, hop: RelayHop | undefined): Promise<number> {
    const { onProgress } = this.#task
    const answers: Promise<void>[] = []
    let failure: unknown
    let have = from
    let inFlight = 0
    const send = ({ chunks, bytes }: Extent, start: number) => {
      inFlight += bytes
      const flight = this.#pace.send(inFlight)
      const { written, done } = this.#remote.send(chunks, 'W', temporary, start / UNIT_BYTES, bytes)
      answers.push(
        done.then(
          () => {
            this.#pace.handleAnswer(flight)
            inFlight -= bytes
            onProgress(bytes, true)
            if (failure !== undefined) return
            have = start + bytes
            hop?.advance(have)
          },
          (error: unknown) => {
            failure ??= error
          },
        ),
      )
      return written
    }
    try {
      let at = from
      do {
        if (hop?.isRelayed) break
        const extent = await this.#nextExtent(file, at, this.#segmentBytes(hop))
        if (extent.chunks.length === 0) onProgress(extent.bytes, false)
        else await send(extent, at)
        at += extent.bytes
        while (answers.length > 0 && inFlight + this.#segmentBytes(hop) > this.#windowBytes(hop)) await answers.shift()
      } while (at < file.sizeBytes && failure === undefined)
    } catch (error) {
      failure ??= error
    }
    await Promise.all(answers)
    if (failure !== undefined) throw failure
    return have
  }

  #windowBytes(hop: RelayHop | undefined): number {
    return Math.min(this.#pace.windowBytes, hop?.allowedBytes ?? Number.POSITIVE_INFINITY)
  }

  #segmentBytes(hop: RelayHop | undefined): number {
    return Math.min(this.#pace.segmentBytes, this.#windowBytes(hop))
  }

  /** A hole, or what is to be sent up to the next one. The last block is always sent: it gives the file its size. */
  async #nextExtent(file: SourceFile, from: number, most: number): Promise<Extent> {
    const lastIndex = Math.ceil(file.sizeBytes / BLOCK_BYTES) - 1
    const chunks: Buffer[] = []
    let bytes = 0
    do {
      const at = from + bytes
      const index = Math.floor(at / BLOCK_BYTES)
      const block = (await this.#task.reader.read(file, index)).subarray(at % BLOCK_BYTES)
      if (file.isSparse && index < lastIndex && isZero(block)) {
        return chunks.length === 0 ? { chunks, bytes: block.length } : { chunks, bytes }
      }
      const chunk = block.subarray(0, most - bytes)
      chunks.push(chunk)
      bytes += chunk.length
    } while (bytes < most && from + bytes < file.sizeBytes)
    return { chunks, bytes }
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
