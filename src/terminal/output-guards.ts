/** What a host's output passes through before and after the emulator: valid UTF-8, bounded strings, bounded answers. */
import { isUtf8 } from 'node:buffer'
import { hasPassed } from '../base/clock.ts'

/** Makes any byte stream valid UTF-8: a split character waits until it is whole. Valid text passes untouched and uncopied. */
export class Utf8Repair {
  readonly #decoder = new TextDecoder('utf-8', { ignoreBOM: true })
  /** The decoder may hold the beginning of a character back. */
  #mayHold = false

  /** The valid text that is whole now. */
  push(chunk: Uint8Array): Uint8Array {
    const last = chunk.at(-1)
    if (last === undefined || (!this.#mayHold && isUtf8(chunk))) return chunk
    this.#mayHold = last >= 0x80
    return Buffer.from(this.#decoder.decode(chunk, { stream: true }))
  }

  /** Forgets what is held back. */
  reset(): void {
    this.#decoder.decode()
    this.#mayHold = false
  }
}

/** The longest that anything we understand (a title) could need, and then some. */
const KEPT_BYTES = 16 * 1024
/** Images go into the megabytes. */
const MAX_STRING_BYTES = 8 * 1024 * 1024
const MAX_STRING_MS = 5000

const ESC = 0x1b
const BEL = 0x07
const CAN = 0x18
const SUB = 0x1a

export const CANCEL = Uint8Array.of(CAN)

/** Bounds strings (OSC, DCS, APC, PM, SOS), which may never end: most of one is skipped, and it is cancelled in time. */
export class StringGuard {
  readonly #now: () => number
  #bytes = 0
  #since = 0

  constructor(now: () => number) {
    this.#now = now
  }

  /** What of the next bytes to parse; call it while the parser is inside a string. `cancel`: send CAN first. */
  filter(bytes: Uint8Array): { readonly bytes: Uint8Array; readonly mustCancel: boolean } {
    if (this.#bytes > MAX_STRING_BYTES || hasPassed(this.#since, MAX_STRING_MS, this.#now())) {
      return { bytes, mustCancel: true }
    }
    if (this.#bytes <= KEPT_BYTES) return { bytes, mustCancel: false }
    const end = bytes.findIndex((byte) => byte === ESC || byte === BEL || byte === CAN || byte === SUB)
    return { bytes: end < 0 ? bytes.subarray(0, 0) : bytes.subarray(end), mustCancel: false }
  }

  /** After each slice: whether the parser is inside a string now, and how long the slice was. */
  note(wasInString: boolean, isInString: boolean, sliceBytes: number): void {
    if (!isInString) {
      this.#bytes = 0
    } else if (wasInString) {
      this.#bytes += sliceBytes
    } else {
      this.#bytes = 1
      this.#since = this.#now()
    }
  }
}

/** A budget that refills with time: so much at once, so much a second. */
export class RateLimit {
  readonly #options: { readonly burst: number; readonly perSecond: number; readonly now: () => number }
  #left: number
  #at: number

  /** `now` in milliseconds. */
  constructor(options: { readonly burst: number; readonly perSecond: number; readonly now: () => number }) {
    this.#options = options
    this.#left = options.burst
    this.#at = options.now()
  }

  /** Takes `amount` if there is that much, else nothing. */
  take(amount = 1): boolean {
    const { burst, perSecond } = this.#options
    const now = this.#options.now()
    // A clock that was set back refills nothing.
    this.#left = Math.min(burst, this.#left + (Math.max(0, now - this.#at) / 1000) * perSecond)
    this.#at = now
    if (this.#left < amount) return false
    this.#left -= amount
    return true
  }
}
