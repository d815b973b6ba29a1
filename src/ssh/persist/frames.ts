/** Frames between a program and the keeper: a header (payload length, kind, channel) and a payload, whose length is checked first. */

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
