/**
 * Bounds the strings inside a terminal stream (OSC, DCS, APC, PM, SOS). A string may be long (an image), may never end (a
 * cut connection, a binary file) and shows nothing, so: its first part is parsed, the rest is skipped without being kept,
 * and after a while or a lot of bytes it is cancelled, so that the pane shows text again.
 */
import { hasPassed } from '../base/clock.ts'

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
