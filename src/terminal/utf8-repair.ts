/** Makes any byte stream valid UTF-8: a split character waits until it is whole. Valid text passes untouched and uncopied. */
import { isUtf8 } from 'node:buffer'

const EMPTY = new Uint8Array(0)

export class Utf8Repair {
  #pending: Uint8Array = EMPTY
  readonly #decoder = new TextDecoder('utf-8', { ignoreBOM: true })

  /** The valid text that is whole now. */
  push(chunk: Uint8Array): Uint8Array {
    let bytes = chunk
    if (this.#pending.length > 0) {
      bytes = Buffer.concat([this.#pending, chunk])
      this.#pending = EMPTY
    }
    if (isUtf8(bytes)) return bytes
    const whole = bytes.length - incompleteTail(bytes)
    if (whole < bytes.length) {
      this.#pending = bytes.slice(whole)
      bytes = bytes.subarray(0, whole)
      if (isUtf8(bytes)) return bytes
    }
    return Buffer.from(this.#decoder.decode(bytes))
  }

  /** Forgets what is held back. */
  reset(): void {
    this.#pending = EMPTY
  }
}

/** How many bytes at the end are the beginning of a character that may still be completed: 0 to 3. */
function incompleteTail(bytes: Uint8Array): number {
  for (let back = 1; back <= 3 && back <= bytes.length; back++) {
    const byte = bytes[bytes.length - back] as number
    if ((byte & 0xc0) === 0x80) continue
    const length = byte >= 0xf5 ? 0 : byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc2 ? 2 : 0
    return length > back ? back : 0
  }
  return 0
}
