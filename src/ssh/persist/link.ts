/** A socket as frames: messages and bytes of channels, in order. It knows nothing of what they mean. */
import type { Socket } from 'node:net'
import {
  encodeHeader,
  FRAME_KINDS,
  type Frame,
  FrameError,
  type FrameKind,
  FrameReader,
  LARGEST_GREETING,
  LARGEST_PAYLOAD,
  type StreamKind,
} from './frames.ts'

const LARGEST_PIECE = 64 * 1024

export interface LinkHandlers<In> {
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
