/** A socket as frames: messages and bytes of channels, in order. It knows nothing of what they mean. */
import type { Socket } from 'node:net'
import {
  encodeHeader,
  FRAME_KINDS,
  type Frame,
  FrameError,
  type FrameKind,
  FrameReader,
  type StreamKind,
} from './frames.ts'

const LARGEST_PIECE = 64 * 1024

export interface LinkHandlers<In> {
  onMessage(message: In): void
  onBytes(kind: StreamKind, channel: number, bytes: Buffer): void
  onCredit(channel: number, sizeBytes: number): void
  /** Once, however it ended: also after nonsense from the other side. */
  onClose(): void
}

export class Link<In, Out> {
  readonly #socket: Socket
  #isCorked = false

  constructor(socket: Socket, handlers: LinkHandlers<In>) {
    this.#socket = socket
    const reader = new FrameReader()
    socket.on('data', (bytes: Buffer) => {
      for (const frame of readOrLeave(socket, () => reader.push(bytes)) ?? []) {
        if (socket.destroyed) return
        readOrLeave(socket, () => delivery(frame, handlers))?.()
      }
    })
    socket.on('error', () => socket.destroy())
    socket.on('end', () => socket.destroy())
    socket.once('close', () => handlers.onClose())
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

  /** Whether the program goes on running for this link's sake. */
  keepsProgram(isNeeded: boolean): void {
    if (isNeeded) this.#socket.ref()
    else this.#socket.unref()
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

/** Whoever sends what cannot be read is not one of us. What goes wrong later, in a handler, is a defect and no frame's fault. */
function readOrLeave<T>(socket: Socket, read: () => T): T | undefined {
  try {
    return read()
  } catch {
    socket.destroy()
    return undefined
  }
}

/** @throws on what is no message and no credit */
function delivery<In>({ kind, channel, payload }: Frame, handlers: LinkHandlers<In>): () => void {
  if (kind === FRAME_KINDS.control) {
    const message: unknown = JSON.parse(payload.toString())
    if (typeof message !== 'object' || message === null) throw new FrameError('a message that is no object')
    return () => handlers.onMessage(message as In)
  }
  if (kind === FRAME_KINDS.credit) {
    const sizeBytes = payload.readUInt32BE(0)
    return () => handlers.onCredit(channel, sizeBytes)
  }
  return () => handlers.onBytes(kind, channel, payload)
}
