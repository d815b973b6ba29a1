/** A hand on one connection's socket: holds it still, or cuts it after so many bytes. */
import type { Socket } from 'node:net'

export class Tap {
  readonly socket: Socket
  /** The server has taken the socket over. */
  isServed = false
  #held: Buffer[] | undefined
  #bytesLeft = Number.POSITIVE_INFINITY
  readonly #write: (bytes: Buffer) => boolean

  constructor(socket: Socket) {
    this.socket = socket
    // The server resumes the socket by itself when its cryptography is ready.
    socket.on('resume', () => {
      if (this.#held !== undefined) socket.pause()
    })
    const write = socket.write.bind(socket)
    this.#write = (bytes) => write(bytes)
    socket.write = ((data: string | Uint8Array) =>
      this.#send(Buffer.isBuffer(data) ? data : Buffer.from(data as Uint8Array))) as typeof socket.write
  }

  /** From now on nothing is read and nothing is sent. */
  hold(): void {
    this.#held ??= []
    this.socket.pause()
  }

  letGo(): void {
    const held = this.#held ?? []
    this.#held = undefined
    for (const bytes of held) this.#send(bytes)
    if (this.isServed) this.socket.resume()
  }

  cutAfter(bytes: number): void {
    this.#bytesLeft = bytes
  }

  #send(bytes: Buffer): boolean {
    if (this.#held !== undefined) {
      this.#held.push(bytes)
      return true
    }
    if (bytes.length < this.#bytesLeft) {
      this.#bytesLeft -= bytes.length
      return this.#write(bytes)
    }
    this.#write(bytes.subarray(0, this.#bytesLeft))
    this.#bytesLeft = 0
    this.socket.destroySoon()
    return false
  }
}
