/**
 * The way to the user's terminal, without ever waiting for it: a terminal that does not read holds back frames, not the
 * program. A console on a terminal gets an output handle of its own, so that it can be made non-blocking, and its
 * unwritten rest be thrown away, without touching the program's stdout.
 */
import { writeSync } from 'node:fs'
import type { Writable } from 'node:stream'
import tty from 'node:tty'
import { Emitter } from '../../base/emitter.ts'

export interface TtyWriter extends Disposable {
  /**
   * One frame. False: the terminal has not taken all of it (the rest is kept, and the caller skips frames until `onDrain`),
   * or takes nothing at the moment because the writer is suspended or the terminal is gone (then the frame is dropped).
   */
  write(bytes: Uint8Array): boolean
  /** A frame is on its way, or the writer takes none: whoever draws waits for `onDrain`. */
  readonly isDraining: boolean
  onDrain(callback: () => void): Disposable
  /** The terminal has vanished (hung up, its reader closed): once, and nothing is written after it. */
  onGone(callback: () => void): Disposable
  /** What `write` accepted since the beginning. */
  readonly bytesWritten: number
  /**
   * Gives the terminal back: throws away what has not been written, writes `last` before it returns (a terminal that does
   * not read is waited for at most `SUSPEND_LIMIT_MS`), and makes the terminal blocking again.
   */
  suspend(last: Uint8Array): void
  /** Takes the terminal again after `suspend`; `onDrain` says so to whoever waits. */
  resume(): void
}

export const SUSPEND_LIMIT_MS = 500
const RETRY_MS = 5
/** CAN ends an escape sequence that was cut in the middle. */
const CANCEL = Buffer.from('\x18')

type OutputHandle = { setBlocking?(isBlocking: boolean): unknown }

/** `onGone` as the method of that name. */
export function createTtyWriter(stream: tty.WriteStream | Writable, onGone?: () => void): TtyWriter {
  const drained = new Emitter<void>()
  const gone = new Emitter<void>()
  let output: Writable | undefined
  let isBusy = false
  let isGone = false
  let isDisposed = false
  let bytesWritten = 0

  const handleError = (): void => {
    if (isGone || isDisposed) return
    isGone = true
    gone.emit()
  }

  const open = (): void => {
    try {
      output = stream instanceof tty.WriteStream ? openTerminal(descriptorOf(stream)) : stream
    } catch {
      // The terminal vanished while it was not ours.
      handleError()
      return
    }
    if (output !== stream) output.on('error', handleError)
  }

  const suspend = (last: Uint8Array): void => {
    const from = output
    if (!from) return
    output = undefined
    const isCut = isBusy && from.writableLength > 0
    const bytes = isCut ? Buffer.concat([CANCEL, last]) : last
    isBusy = false
    if (from instanceof tty.WriteStream && stream instanceof tty.WriteStream) {
      // What is still queued is never written.
      bytesWritten += bytes.length - from.writableLength
      writeAllSync(descriptorOf(stream), bytes)
      handleOf(from)?.setBlocking?.(true)
      // Closing cancels what is still queued; `end` would first wait for it.
      from.destroy()
    } else if (last.length > 0) {
      bytesWritten += last.length
      from.write(last)
    }
  }

  if (onGone) gone.on(onGone)
  stream.on('error', handleError)
  open()

  return {
    write(bytes) {
      const to = output
      if (!to || isGone) return false
      if (bytes.length === 0) return !isBusy
      bytesWritten += bytes.length
      to.write(bytes, () => {
        if (to !== output || !isBusy || to.writableLength > 0) return
        isBusy = false
        drained.emit()
      })
      isBusy = to.writableLength > 0
      return !isBusy
    },
    get isDraining() {
      return isBusy || isGone || !output
    },
    onDrain: (callback) => drained.on(callback),
    onGone: (callback) => gone.on(callback),
    get bytesWritten() {
      return bytesWritten
    },
    suspend,
    resume() {
      if (output || isGone || isDisposed) return
      open()
      if (output) drained.emit()
    },
    [Symbol.dispose]() {
      if (isDisposed) return
      suspend(new Uint8Array(0))
      isDisposed = true
      stream.off('error', handleError)
    },
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

/** The descriptor may be non-blocking: a full terminal is asked again until the limit. Errors mean that nobody is there. */
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
