/**
 * Writes to the user's terminal without ever waiting for it: a terminal that does not read holds back frames, not the
 * program. The console has an output handle of its own, so that it can be made non-blocking and its unwritten rest thrown
 * away without touching the program's stdout.
 */
import { writeSync } from 'node:fs'
import type { Writable } from 'node:stream'
import tty from 'node:tty'
import { Emitter } from '../../base/emitter.ts'

export const SUSPEND_LIMIT_MS = 500
const RETRY_MS = 5
/** CAN ends an escape sequence that was cut in the middle. */
const CANCEL = Buffer.from('\x18')

type OutputHandle = { setBlocking?(isBlocking: boolean): unknown }

export class TtyWriter implements Disposable {
  #stream: tty.WriteStream | Writable
  readonly #drained = new Emitter<void>()
  readonly #gone = new Emitter<void>()
  #output: Writable | undefined
  #isBusy = false
  #isGone = false
  #isDisposed = false
  #bytesWritten = 0

  constructor(stream: tty.WriteStream | Writable) {
    this.#stream = stream
    stream.on('error', this.#handleError)
    this.#open()
  }

  /** What `write` accepted since the beginning. */
  get bytesWritten(): number {
    return this.#bytesWritten
  }

  /** A frame is being written, or the writer takes none: wait for `onDrain`. */
  get isDraining(): boolean {
    return this.#isBusy || this.#isGone || !this.#output
  }

  onDrain(callback: () => void): Disposable {
    return this.#drained.on(callback)
  }

  /** The terminal has vanished (hung up, its reader closed): once, and nothing is written after it. */
  onGone(callback: () => void): Disposable {
    return this.#gone.on(callback)
  }

  /**
   * One frame. False: the terminal has not taken all of it (the rest is kept, and the caller skips frames until `onDrain`),
   * or takes nothing now because the writer is suspended or the terminal is gone (then the frame is dropped).
   */
  write(bytes: Uint8Array): boolean {
    const to = this.#output
    if (!to || this.#isGone) return false
    if (bytes.length === 0) return !this.#isBusy
    this.#bytesWritten += bytes.length
    to.write(bytes, () => {
      if (to !== this.#output || !this.#isBusy || to.writableLength > 0) return
      this.#isBusy = false
      this.#drained.emit()
    })
    this.#isBusy = to.writableLength > 0
    return !this.#isBusy
  }

  /**
   * Gives the terminal back: throws away what has not been written, writes `last` before it returns (a terminal that does
   * not read is waited for at most `SUSPEND_LIMIT_MS`), and makes the terminal blocking again.
   */
  suspend(last: Uint8Array): void {
    const from = this.#output
    if (!from) return
    this.#output = undefined
    const isCut = this.#isBusy && from.writableLength > 0
    const bytes = isCut ? Buffer.concat([CANCEL, last]) : last
    this.#isBusy = false
    if (from instanceof tty.WriteStream && this.#stream instanceof tty.WriteStream) {
      // What is still queued is never written.
      this.#bytesWritten += bytes.length - from.writableLength
      writeAllSync(descriptorOf(this.#stream), bytes)
      handleOf(from)?.setBlocking?.(true)
      // Closing cancels what is still queued; `end` would first wait for it.
      from.destroy()
    } else if (last.length > 0) {
      this.#bytesWritten += last.length
      from.write(last)
    }
  }

  /** Takes the terminal again after `suspend`; `onDrain` is called then. */
  resume(): void {
    if (this.#output || this.#isGone || this.#isDisposed) return
    this.#open()
    if (this.#output) this.#drained.emit()
  }

  /** To another terminal, after `suspend`; `resume` takes it. */
  moveTo(stream: tty.WriteStream | Writable): void {
    this.#stream.off('error', this.#handleError)
    // Errors of a terminal that was left are ignored.
    this.#stream.on('error', () => {})
    stream.on('error', this.#handleError)
    this.#stream = stream
    this.#isGone = false
  }

  [Symbol.dispose](): void {
    if (this.#isDisposed) return
    this.suspend(new Uint8Array(0))
    this.#isDisposed = true
    this.#stream.off('error', this.#handleError)
  }

  readonly #handleError = (): void => {
    if (this.#isGone || this.#isDisposed) return
    this.#isGone = true
    this.#gone.emit()
  }

  #open(): void {
    const stream = this.#stream
    try {
      this.#output = stream instanceof tty.WriteStream ? openTerminal(descriptorOf(stream)) : stream
    } catch {
      // The terminal vanished while it was not ours.
      return this.#handleError()
    }
    const output = this.#output
    // One that was left may still report that it is gone.
    if (output !== stream) output.on('error', () => output === this.#output && this.#handleError())
  }
}

function openTerminal(descriptor: number): tty.WriteStream {
  const terminal = new tty.WriteStream(descriptor)
  handleOf(terminal)?.setBlocking?.(false)
  return terminal
}

function descriptorOf(stream: tty.WriteStream): number {
  // The types leave out what the documentation has.
  return (stream as tty.WriteStream & { readonly fd: number }).fd
}

/** Node makes terminals blocking on purpose and has no public way to undo it. */
function handleOf(stream: object): OutputHandle | undefined {
  return (stream as { _handle?: OutputHandle })._handle
}

/** The descriptor may be non-blocking: a full terminal is tried again until the limit. Any other error means that it is gone. */
export function writeAllSync(descriptor: number, bytes: Uint8Array, limitMs = SUSPEND_LIMIT_MS): boolean {
  const deadline = performance.now() + limitMs
  const sleeper = new Int32Array(new SharedArrayBuffer(4))
  let written = 0
  while (written < bytes.length) {
    try {
      written += writeSync(descriptor, bytes, written)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EAGAIN' || performance.now() >= deadline) return false
      Atomics.wait(sleeper, 0, 0, RETRY_MS)
    }
  }
  return true
}
