/** A socket as frames: messages and bytes of channels, in order. It knows nothing of what they mean. */
import type { Socket } from 'node:net'

export const FRAME_KINDS = { control: 0, stdin: 1, stdout: 2, stderr: 3, credit: 4 } as const
export type FrameKind = (typeof FRAME_KINDS)[keyof typeof FRAME_KINDS]
/** Bytes of a channel, as opposed to messages. */
export type StreamKind = 1 | 2 | 3

export type Frame = { readonly kind: FrameKind; readonly channel: number; readonly payload: Buffer }

const HEADER_BYTES = 9
/** A control message holds at most a command and an environment. */
export const LARGEST_PAYLOAD = 4 * 1024 * 1024
/** Before the peer has proved that it belongs to the same user. */
export const LARGEST_GREETING = 1024

export class FrameError extends Error {}

/** Length of the payload (4 bytes, big endian), kind (1), channel (4). */
export function encodeHeader(kind: FrameKind, channel: number, sizeBytes: number): Buffer {
  const header = Buffer.allocUnsafe(HEADER_BYTES)
  header.writeUInt32BE(sizeBytes, 0)
  header.writeUInt8(kind, 4)
  header.writeUInt32BE(channel, 5)
  return header
}

const NOTHING = Buffer.alloc(0)

export class FrameReader {
  #largest: number
  /** Arrived and not read. */
  #bytes: Buffer = NOTHING
  /** Of a frame of which more has to come: its payload, and how much of it is here. */
  #begun: { readonly frame: Frame; haveBytes: number } | undefined

  /** `largest`: bytes of a payload. */
  constructor(largest = LARGEST_PAYLOAD) {
    this.#largest = largest
  }

  set largest(bytes: number) {
    this.#largest = bytes
  }

  /** `next` has to be called until it returns nothing. */
  add(bytes: Buffer): void {
    this.#bytes = this.#bytes.length === 0 ? bytes : Buffer.concat([this.#bytes, bytes])
  }

  /** The next frame that is whole; its payload may share memory with what was added. @throws FrameError on what is no frame */
  next(): Frame | undefined {
    if (this.#begun === undefined) {
      if (this.#bytes.length < HEADER_BYTES) return undefined
      const sizeBytes = this.#bytes.readUInt32BE(0)
      const kind = this.#bytes.readUInt8(4)
      if (sizeBytes > this.#largest) throw new FrameError(`it sent a frame of ${sizeBytes} bytes`)
      if (kind > FRAME_KINDS.credit) throw new FrameError(`it sent a frame of the unknown kind ${kind}`)
      const head = { kind: kind as FrameKind, channel: this.#bytes.readUInt32BE(5) }
      this.#take(HEADER_BYTES)
      if (this.#bytes.length >= sizeBytes) return { ...head, payload: this.#take(sizeBytes) }
      this.#begun = { frame: { ...head, payload: Buffer.allocUnsafe(sizeBytes) }, haveBytes: 0 }
    }
    const { frame, haveBytes } = this.#begun
    const piece = this.#take(frame.payload.length - haveBytes)
    frame.payload.set(piece, haveBytes)
    this.#begun.haveBytes += piece.length
    if (this.#begun.haveBytes < frame.payload.length) return undefined
    this.#begun = undefined
    return frame
  }

  #take(bytes: number): Buffer {
    const taken = this.#bytes.subarray(0, bytes)
    this.#bytes = this.#bytes.subarray(bytes)
    return taken
  }
}

const LARGEST_PIECE = 64 * 1024

interface LinkHandlers<In> {
  onMessage(message: In): void
  onBytes(kind: StreamKind, channel: number, bytes: Buffer): void
  onCredit(channel: number, sizeBytes: number): void
  /** Once, however it ended. `reason`: the peer was cut off for what it sent. */
  onClose(reason: string | undefined): void
}

export class KeeperLink<In, Out> {
  readonly #socket: Socket
  readonly #reader = new FrameReader(LARGEST_GREETING)
  #isCorked = false
  #cutFor: string | undefined

  constructor(socket: Socket, handlers: LinkHandlers<In>) {
    this.#socket = socket
    socket.on('data', (bytes: Buffer) => {
      this.#reader.add(bytes)
      for (let deliver = this.#next(handlers); deliver !== undefined; deliver = this.#next(handlers)) deliver()
    })
    socket.on('error', () => socket.destroy())
    socket.on('end', () => socket.destroy())
    socket.once('close', () => handlers.onClose(this.#cutFor))
  }

  /** The peer has proved itself: it may send more than greetings. */
  trust(): void {
    this.#reader.largest = LARGEST_PAYLOAD
  }

  /** Ends it because of what the peer sent. */
  cutOff(reason: string): void {
    this.#cutFor ??= reason
    this.#socket.destroy()
  }

  send(message: Out): void {
    this.#write(FRAME_KINDS.control, 0, Buffer.from(JSON.stringify(message)))
  }

  sendBytes(kind: StreamKind, channel: number, bytes: Uint8Array): void {
    for (let at = 0; at < bytes.length; at += LARGEST_PIECE) {
      this.#write(kind, channel, bytes.subarray(at, at + LARGEST_PIECE))
    }
  }

  sendCredit(channel: number, sizeBytes: number): void {
    const payload = Buffer.allocUnsafe(4)
    payload.writeUInt32BE(sizeBytes)
    this.#write(FRAME_KINDS.credit, channel, payload)
  }

  close(): void {
    this.#socket.destroy()
  }

  /** Sends what was written before, then closes. */
  finish(): void {
    this.#socket.end()
  }

  /** Whether the program keeps running for this link. */
  keepsProgram(isNeeded: boolean): void {
    if (isNeeded) this.#socket.ref()
    else this.#socket.unref()
  }

  /** A peer that sends what cannot be read is not ours. An error in a handler is a defect, and passes through. */
  #next(handlers: LinkHandlers<In>): (() => void) | undefined {
    if (this.#socket.destroyed) return undefined
    try {
      const frame = this.#reader.next()
      return frame && delivery(frame, handlers)
    } catch (error) {
      this.cutOff(error instanceof FrameError ? error.message : 'it sent a message that cannot be read')
      return undefined
    }
  }

  #write(kind: FrameKind, channel: number, payload: Uint8Array): void {
    if (this.#socket.destroyed || this.#socket.writableEnded) return
    if (!this.#isCorked) {
      this.#isCorked = true
      this.#socket.cork()
      process.nextTick(() => {
        this.#isCorked = false
        this.#socket.uncork()
      })
    }
    this.#socket.write(encodeHeader(kind, channel, payload.length))
    this.#socket.write(payload)
  }
}

/** @throws when it is neither a message nor a credit */
function delivery<In>({ kind, channel, payload }: Frame, handlers: LinkHandlers<In>): () => void {
  if (kind === FRAME_KINDS.control) {
    const message: unknown = JSON.parse(payload.toString())
    if (typeof message !== 'object' || message === null) throw new FrameError('it sent a message that is not an object')
    return () => handlers.onMessage(message as In)
  }
  if (kind === FRAME_KINDS.credit) {
    const sizeBytes = payload.readUInt32BE(0)
    return () => handlers.onCredit(channel, sizeBytes)
  }
  return () => handlers.onBytes(kind, channel, payload)
}

export const WINDOW_BYTES = 128 * 1024
/** What is sent in one go may be more than there is room for. */
const MOST_HELD_BYTES = WINDOW_BYTES + 1024 * 1024

/** Why a peer is cut off. */
export const UNBOUNDED = 'it sent more than its window allows'

export class OutgoingWindow {
  #roomBytes = WINDOW_BYTES

  get roomBytes(): number {
    return this.#roomBytes
  }

  /** Whether there is room for more. The bytes of this call go out in any case. */
  take(sizeBytes: number): boolean {
    this.#roomBytes -= sizeBytes
    return this.#roomBytes > 0
  }

  /** Whether there is room now where there was none. */
  give(sizeBytes: number): boolean {
    const wasFull = this.#roomBytes <= 0
    // No more than the window, whatever the peer grants.
    this.#roomBytes = Math.min(WINDOW_BYTES, this.#roomBytes + sizeBytes)
    return wasFull && this.#roomBytes > 0
  }
}

export class IncomingWindow {
  readonly #grant: (sizeBytes: number) => void
  #owedBytes = 0
  #heldBytes = 0

  constructor(grant: (sizeBytes: number) => void) {
    this.#grant = grant
  }

  /** False: the peer does not keep to its window. */
  received(sizeBytes: number): boolean {
    this.#heldBytes += sizeBytes
    return this.#heldBytes <= MOST_HELD_BYTES
  }

  /** Small amounts are granted together. */
  consumed(sizeBytes: number): void {
    this.#heldBytes -= sizeBytes
    this.#owedBytes += sizeBytes
    if (this.#owedBytes < WINDOW_BYTES / 4) return
    this.#grant(this.#owedBytes)
    this.#owedBytes = 0
  }
}
