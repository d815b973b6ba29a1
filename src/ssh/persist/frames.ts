/**
 * What travels between a program and the keeper: frames of a header (payload length, kind, channel) and a payload. It
 * checks lengths before it buffers anything, so that a peer that talks nonsense costs no memory.
 */

export const FRAME_KINDS = { control: 0, stdin: 1, stdout: 2, stderr: 3, credit: 4 } as const
export type FrameKind = (typeof FRAME_KINDS)[keyof typeof FRAME_KINDS]
/** Bytes of a channel, as opposed to messages. */
export type StreamKind = 1 | 2 | 3

export type Frame = { readonly kind: FrameKind; readonly channel: number; readonly payload: Buffer }

const HEADER_BYTES = 9
/** A control message holds at most a command and an environment. */
export const LARGEST_PAYLOAD = 4 * 1024 * 1024

export class FrameError extends Error {}

/** Length of the payload (4 bytes, big endian), kind (1), channel (4). */
export function encodeHeader(kind: FrameKind, channel: number, sizeBytes: number): Buffer {
  const header = Buffer.allocUnsafe(HEADER_BYTES)
  header.writeUInt32BE(sizeBytes, 0)
  header.writeUInt8(kind, 4)
  header.writeUInt32BE(channel, 5)
  return header
}

export class FrameReader {
  #rest: Buffer[] = []
  #restBytes = 0
  #wantedBytes = HEADER_BYTES

  /** The frames that are whole now; payloads share memory with `bytes`. Throws FrameError on what is no frame. */
  push(bytes: Buffer): readonly Frame[] {
    const frames: Frame[] = []
    this.#rest.push(bytes)
    this.#restBytes += bytes.length
    if (this.#restBytes < this.#wantedBytes) return frames
    let buffer = this.#rest.length === 1 ? bytes : Buffer.concat(this.#rest)
    while (buffer.length >= HEADER_BYTES) {
      const sizeBytes = buffer.readUInt32BE(0)
      const kind = buffer.readUInt8(4)
      if (sizeBytes > LARGEST_PAYLOAD) throw new FrameError(`a frame of ${sizeBytes} bytes`)
      if (kind > FRAME_KINDS.credit) throw new FrameError(`a frame of the unknown kind ${kind}`)
      this.#wantedBytes = HEADER_BYTES + sizeBytes
      if (buffer.length < this.#wantedBytes) break
      const channel = buffer.readUInt32BE(5)
      frames.push({ kind: kind as FrameKind, channel, payload: buffer.subarray(HEADER_BYTES, this.#wantedBytes) })
      buffer = buffer.subarray(this.#wantedBytes)
      this.#wantedBytes = HEADER_BYTES
    }
    this.#rest = buffer.length === 0 ? [] : [buffer]
    this.#restBytes = buffer.length
    return frames
  }
}
