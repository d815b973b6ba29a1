/**
 * Keeps the output of hosts with bounded memory: beyond a few KB for each stream, bytes go to one temporary file, which has no name
 * and vanishes with the process.
 */
import { isUtf8 } from 'node:buffer'
import { createHash, randomUUID } from 'node:crypto'
import { closeSync, openSync, readSync, unlinkSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { getOrMake } from '../../base/collections.ts'

/** Kept in memory for each stream. */
const MEMORY_BYTES = 16 * 1024
const READ_BYTES = 256 * 1024
/** The size of the tail of a stream that stays in memory. */
const TAIL_BYTES = 256

export class SpillFile implements Disposable {
  readonly #directory: string
  #descriptor: number | undefined
  #sizeBytes = 0

  constructor(directory: string) {
    this.#directory = directory
  }

  /** Where the bytes begin. Errors of the disk are thrown. */
  append(chunks: readonly Uint8Array[]): number {
    const start = this.#sizeBytes
    const descriptor = this.#open()
    for (const chunk of chunks) {
      for (let at = 0; at < chunk.length; ) {
        const written = writeSync(descriptor, chunk, at, chunk.length - at, this.#sizeBytes)
        at += written
        this.#sizeBytes += written
      }
    }
    return start
  }

  read(start: number, lengthBytes: number): Buffer {
    const buffer = Buffer.allocUnsafe(lengthBytes)
    let at = 0
    while (at < lengthBytes) {
      const count = readSync(this.#open(), buffer, at, lengthBytes - at, start + at)
      if (count === 0) throw new Error('the temporary file was truncated')
      at += count
    }
    return buffer
  }

  [Symbol.dispose](): void {
    if (this.#descriptor !== undefined) closeSync(this.#descriptor)
    this.#descriptor = undefined
  }

  #open(): number {
    if (this.#descriptor === undefined) {
      const path = join(this.#directory, `.muster-${randomUUID()}`)
      this.#descriptor = openSync(path, 'wx+', 0o600)
      unlinkSync(path)
    }
    return this.#descriptor
  }
}

type Extent = { start: number; lengthBytes: number }

/** One stream of one host. */
export class StreamStore {
  readonly #spill: SpillFile
  readonly #extents: Extent[] = []
  readonly #hash = createHash('sha1')
  /** Copies the bytes, because views would keep their larger buffers alive. */
  #memory: Buffer = Buffer.alloc(0)
  #memoryBytes = 0
  #tail: Buffer = Buffer.alloc(0)
  sizeBytes = 0

  constructor(spill: SpillFile) {
    this.#spill = spill
  }

  /** All of it, or nothing if the disk refuses it. Errors of the disk are thrown. */
  push(bytes: Uint8Array): void {
    if (this.#memoryBytes + bytes.length > MEMORY_BYTES) this.#spillTo(bytes)
    else this.#keep(bytes)
    this.sizeBytes += bytes.length
    this.#hash.update(bytes)
    const tail = bytes.length < TAIL_BYTES ? Buffer.concat([this.#tail, bytes]) : Buffer.from(bytes)
    this.#tail = tail.subarray(Math.max(0, tail.length - TAIL_BYTES))
  }

  /** Of all bytes so far. */
  digest(): string {
    return this.#hash.copy().digest('base64')
  }

  /** Whether all of it is UTF-8. Reads all of it. */
  isText(): boolean {
    let rest: Uint8Array = Buffer.alloc(0)
    for (const bytes of this.read()) {
      const all = rest.length === 0 ? bytes : Buffer.concat([rest, bytes])
      const cut = all.length - unfinishedBytes(all)
      if (!isUtf8(all.subarray(0, cut))) return false
      rest = all.subarray(cut)
    }
    return rest.length === 0
  }

  /** The last line that is not empty, or its end. */
  lastLine(): string {
    return this.#tail.toString().trimEnd().split('\n').at(-1) ?? ''
  }

  /** All bytes, in pieces. */
  *read(): Generator<Uint8Array> {
    for (const { start, lengthBytes } of this.#extents) {
      for (let at = 0; at < lengthBytes; at += READ_BYTES) {
        yield this.#spill.read(start + at, Math.min(READ_BYTES, lengthBytes - at))
      }
    }
    if (this.#memoryBytes > 0) yield this.#memory.subarray(0, this.#memoryBytes)
  }

  /** The bytes from `start` on, at most so many. */
  slice(start: number, lengthBytes: number): Buffer {
    const pieces: Uint8Array[] = []
    let at = 0
    const take = (sizeBytes: number, read: (from: number, length: number) => Uint8Array) => {
      const from = Math.max(0, start - at)
      const length = Math.min(sizeBytes, start + lengthBytes - at) - from
      if (length > 0) pieces.push(read(from, length))
      at += sizeBytes
    }
    for (const extent of this.#extents) {
      take(extent.lengthBytes, (from, length) => this.#spill.read(extent.start + from, length))
    }
    take(this.#memoryBytes, (from, length) => this.#memory.subarray(from, from + length))
    return Buffer.concat(pieces)
  }

  /** The first bytes, at most so many. */
  head(limitBytes: number): Buffer {
    return this.slice(0, limitBytes)
  }

  #keep(bytes: Uint8Array): void {
    const needed = this.#memoryBytes + bytes.length
    if (needed > this.#memory.length) {
      const larger = Buffer.allocUnsafe(Math.max(needed, this.#memory.length * 2))
      larger.set(this.#memory.subarray(0, this.#memoryBytes))
      this.#memory = larger
    }
    this.#memory.set(bytes, this.#memoryBytes)
    this.#memoryBytes = needed
  }

  #spillTo(bytes: Uint8Array): void {
    const lengthBytes = this.#memoryBytes + bytes.length
    const start = this.#spill.append([this.#memory.subarray(0, this.#memoryBytes), bytes])
    this.#memoryBytes = 0
    const last = this.#extents.at(-1)
    if (last !== undefined && last.start + last.lengthBytes === start) last.lengthBytes += lengthBytes
    else this.#extents.push({ start, lengthBytes })
  }
}

/** Length of an incomplete character at the end. */
function unfinishedBytes(bytes: Uint8Array): number {
  for (let count = 1; count <= Math.min(3, bytes.length); count += 1) {
    const byte = bytes[bytes.length - count] ?? 0
    if (byte >= 0xc0) return count < (byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : 2) ? count : 0
    if (byte < 0x80) return 0
  }
  return 0
}

export type HostOutput = { readonly stdout: StreamStore; readonly stderr: StreamStore }

export class OutputStore implements Disposable {
  readonly #spill: SpillFile
  readonly #hosts = new Map<string, HostOutput>()

  constructor(directory: string) {
    this.#spill = new SpillFile(directory)
  }

  of(host: string): HostOutput {
    const newOutput = () => ({ stdout: new StreamStore(this.#spill), stderr: new StreamStore(this.#spill) })
    return getOrMake(this.#hosts, host, newOutput)
  }

  /** Frees its memory. */
  forget(host: string): void {
    this.#hosts.delete(host)
  }

  [Symbol.dispose](): void {
    this.#spill[Symbol.dispose]()
  }
}
