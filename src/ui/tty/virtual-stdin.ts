/** The input that Ink is given: a terminal on which nobody types. Keys come from the console's own reader. */
import { Readable } from 'node:stream'

class VirtualStdin extends Readable {
  readonly isTTY = true
  readonly fd = -1
  isRaw = false

  override _read(): void {}

  setRawMode(isRaw: boolean): this {
    this.isRaw = isRaw
    return this
  }

  ref(): this {
    return this
  }

  unref(): this {
    return this
  }
}

export function createVirtualStdin(): NodeJS.ReadStream {
  // Ink asks for the type of process.stdin and uses the part that is here.
  return new VirtualStdin() as unknown as NodeJS.ReadStream
}
