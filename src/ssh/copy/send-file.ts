/** Sends one file to its partial file on a host, from this machine or other hosts, and resumes an earlier copy. No rename. */
import type { Clock } from '../../base/clock.ts'
import type { BytePath } from './byte-path.ts'
import { CHAIN_BYTES, type RelayHop } from './chain.ts'
import { type RemoteFiles, RemoteRefusal } from './remote-files.ts'
import type { RemoteHelper } from './remote-helper.ts'
import { UNIT_BYTES } from './remote-script.ts'
import { BLOCK_BYTES, type CopySource, SourceChanged, type SourceReader } from './source.ts'

const SEGMENT_BYTES = 1024 * 1024
const LEAST_BYTES = 2 * UNIT_BYTES
const MOST_BYTES = 5 * SEGMENT_BYTES
/** How much later than the quickest answer: more in flight would only queue. */
const GROW_MS = 200
const SHRINK_MS = 800

/** One segment in flight. */
type Flight = { readonly sentAtMs: number; readonly window: number; readonly isFull: boolean }

/** How much of a file may be in flight to one host: what its link takes in about a second, so that orders never wait long. */
export class SendWindow {
  readonly #clock: Clock
  #bytes = LEAST_BYTES
  /** Counts resizes: what was sent under an earlier size says nothing about this one. */
  #size = 0
  #quickestMs = Number.POSITIVE_INFINITY

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** For one order. */
  get segmentBytes(): number {
    const bytes = Math.min(SEGMENT_BYTES, this.#bytes / 4)
    return Math.max(UNIT_BYTES, bytes - (bytes % UNIT_BYTES))
  }

  get bytes(): number {
    return this.#bytes
  }

  /** `inFlightBytes`: with this segment. If the sender keeps it small, quick answers say nothing about the link. */
  send(inFlightBytes: number): Flight {
    return { sentAtMs: this.#clock.now(), window: this.#size, isFull: inFlightBytes * 2 > this.#bytes }
  }

  handleAnswer({ sentAtMs, window, isFull }: Flight): void {
    const tookMs = this.#clock.now() - sentAtMs
    // The first answer tells the round trip, and nothing about the queue.
    const isFirst = this.#quickestMs === Number.POSITIVE_INFINITY
    this.#quickestMs = Math.min(this.#quickestMs, tookMs)
    if (isFirst || window !== this.#size) return
    const queuedMs = tookMs - this.#quickestMs
    if (isFull && queuedMs < GROW_MS) this.#resize(this.#bytes * 2)
    else if (queuedMs > SHRINK_MS) this.#resize(this.#bytes / 2)
  }

  #resize(bytes: number): void {
    const resized = Math.min(MOST_BYTES, Math.max(LEAST_BYTES, bytes))
    if (resized === this.#bytes) return
    this.#bytes = resized
    this.#size += 1
  }
}

export type SendTask = {
  readonly clock: Clock
  readonly reader: SourceReader
  /** Undefined: the host has none. */
  readonly helper?: Promise<RemoteHelper | undefined>
  /** Undefined: this machine sends the file. */
  joinRelay?(file: CopySource, path: BytePath, have: number): RelayHop | undefined
  onProgress(bytes: number, isSent: boolean): void
}

export type Sent = {
  /** Kept from an earlier copy. */
  readonly resumedBytes: number
  /** Another host sent some of it. */
  readonly isRelayed: boolean
  /** What the helper read back while the file came; undefined: it did not. */
  readonly sha256?: string | undefined
}

/** A part of a file; a hole if it has no chunks. */
type Extent = { readonly chunks: readonly Buffer[]; readonly bytes: number }

export class FileSender {
  readonly #remote: RemoteFiles
  readonly #task: SendTask
  readonly #window: SendWindow
  /** How the names of this copy's partial files end. */
  #suffix: Promise<string> | undefined

  constructor(remote: RemoteFiles, task: SendTask) {
    this.#remote = remote
    this.#task = task
    this.#window = new SendWindow(task.clock)
  }

  /** `isAlone`: from this machine only. @throws RemoteRefusal, RemoteLost, SourceChanged */
  async send(file: CopySource, partial: BytePath, partialBytes: number, isAlone: boolean): Promise<Sent> {
    const { onProgress } = this.#task
    const resumedBytes = await this.#usablePrefix(file, partial, partialBytes)
    // Not awaited: if it is refused, so is every later order.
    const begun = this.#remote.call('T', partial)
    begun.catch(() => {})
    if (partialBytes > 0 || resumedBytes > 0) await this.#remote.call('C', partial, resumedBytes / UNIT_BYTES)
    if (file.sizeBytes >= CHAIN_BYTES) await begun
    if (resumedBytes > 0) onProgress(resumedBytes, false)
    const hop = isAlone ? undefined : await this.#joinRelay(file, partial, resumedBytes)
    let have = resumedBytes
    let isRelayed = false
    try {
      do {
        have = await this.#sendFrom(file, partial, have, hop)
        await begun
        if (have >= file.sizeBytes || hop === undefined) break
        const relayedTo = await this.#remote.orLost(hop.relayed(have))
        isRelayed ||= relayedTo > have
        have = relayedTo === file.sizeBytes ? relayedTo : relayedTo - (relayedTo % UNIT_BYTES)
      } while (have < file.sizeBytes)
      return { resumedBytes, isRelayed, sha256: await this.#remote.orLost(Promise.resolve(hop?.verified())) }
    } catch (error) {
      if (error instanceof RemoteRefusal || error instanceof SourceChanged) await this.#remote.call('Z', partial)
      throw error
    } finally {
      hop?.leave()
    }
  }

  async #joinRelay(file: CopySource, partial: BytePath, have: number): Promise<RelayHop | undefined> {
    const { helper, joinRelay } = this.#task
    if (joinRelay === undefined || file.sizeBytes < CHAIN_BYTES || (await helper) === undefined) return undefined
    this.#suffix ??= this.#remote.call('E')
    return joinRelay(file, `${partial}.${await this.#suffix}`, have)
  }

  /** Sends until the end, or until another host takes over. Returns how much the host has then, with nothing in flight. */
  async #sendFrom(file: CopySource, partial: BytePath, from: number, hop: RelayHop | undefined): Promise<number> {
    const { onProgress } = this.#task
    const answers: Promise<void>[] = []
    let failure: unknown
    let have = from
    let inFlight = 0
    const send = ({ chunks, bytes }: Extent, start: number) => {
      inFlight += bytes
      const flight = this.#window.send(inFlight)
      const { written, done } = this.#remote.send(chunks, 'W', partial, start / UNIT_BYTES, bytes)
      answers.push(
        done.then(
          () => {
            this.#window.handleAnswer(flight)
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
    return Math.min(this.#window.bytes, hop?.allowedBytes ?? Number.POSITIVE_INFINITY)
  }

  #segmentBytes(hop: RelayHop | undefined): number {
    return Math.min(this.#window.segmentBytes, this.#windowBytes(hop))
  }

  /** A hole, or the data up to the next one. The last block is always sent, because it sets the size of the file. */
  async #nextExtent(file: CopySource, from: number, most: number): Promise<Extent> {
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

  /** How many bytes that an earlier copy left are the beginning of this file. */
  async #usablePrefix(file: CopySource, partial: BytePath, partialBytes: number): Promise<number> {
    const blocks = Math.min(Math.floor(partialBytes / BLOCK_BYTES), Math.ceil(file.sizeBytes / BLOCK_BYTES) - 1)
    if (blocks < 1) return 0
    const bytes = blocks * BLOCK_BYTES
    const [theirs, ours] = await Promise.all([
      this.#remote.callFor(bytes, 'Y', partial, bytes),
      this.#task.reader.prefixDigest(file, bytes),
    ])
    return theirs === ours ? bytes : 0
  }
}

const ZEROS = Buffer.alloc(BLOCK_BYTES)

function isZero(block: Buffer): boolean {
  return block.equals(block.length === BLOCK_BYTES ? ZEROS : ZEROS.subarray(0, block.length))
}
