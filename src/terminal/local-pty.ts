/** A program in a pseudo-terminal, and the only importer of node-pty. It loses no byte that the program wrote before it ended. */
import { writeSync } from 'node:fs'
import { constants } from 'node:os'
import type { ReadStream } from 'node:tty'
import { type IPty, spawn } from 'node-pty'
import { processGroups } from '../base/processes.ts'
import type { Pty, PtyHandlers, PtyOptions } from '../base/pty.ts'

/** How long output is waited for when the program has ended and another one holds its terminal open: at most, and in silence. */
const LAST_OUTPUT_MS = 2000
const LAST_SILENCE_MS = 100
/** From the hang-up to the kill. */
const GRACE_MS = 1000

export function spawnLocalPty(options: PtyOptions, handlers: PtyHandlers): Pty {
  const pty = spawn(options.file, [...options.args], {
    name: options.term,
    cols: Math.max(1, options.columns),
    rows: Math.max(1, options.rows),
    env: { ...options.environment },
    encoding: null,
    ...(options.directory === undefined ? {} : { cwd: options.directory }),
  })
  return new NodePty(pty, handlers)
}

class NodePty implements Pty {
  readonly pid: number
  readonly #pty: IPty
  readonly #stream: ReadStream
  readonly #writer: PtyWriter
  #isPaused = false
  #isClosed = false
  #hasExited = false
  /** The program ended and its stream is to be destroyed, which waits for the last output. */
  #endsAt: number | undefined
  #readAt = 0
  readonly #destroyStream: () => void

  constructor(pty: IPty, handlers: PtyHandlers) {
    this.pid = pty.pid
    this.#pty = pty
    // Private, and needed: `destroy` below.
    const { _socket: stream, fd } = pty as unknown as { readonly _socket: ReadStream; readonly fd: number }
    this.#stream = stream
    const destroy = stream.destroy.bind(stream)
    this.#destroyStream = () => destroy()
    // node-pty destroys the stream 200 ms after the program's end, read or not. An error (EIO: all was read) passes.
    stream.destroy = (error?: Error) => {
      if (error || this.#isClosed) return destroy(error)
      this.#endsAt ??= performance.now() + LAST_OUTPUT_MS
      this.#destroyWhenRead()
      return stream
    }
    // What comes after the end of the program or of the terminal (EIO, EPIPE) is no news.
    stream.on('error', () => {})
    const isClosed = () => this.#isClosed || stream.destroyed
    this.#writer = new PtyWriter(fd, isClosed, () => {
      if (!this.#isClosed) handlers.onDrain?.()
    })
    stream.on('data', (bytes: Uint8Array) => {
      this.#readAt = performance.now()
      if (!this.#isClosed) handlers.onData(bytes)
    })
    pty.onExit(({ exitCode, signal }) => {
      this.#hasExited = true
      if (this.#isClosed) return
      this.#isClosed = true
      handlers.onExit(signal ? { signal: signalName(signal) } : { code: exitCode })
    })
  }

  write(bytes: Uint8Array): boolean {
    if (this.#isClosed || bytes.length === 0 || this.#stream.destroyed) return true
    return this.#writer.write(bytes)
  }

  resize(columns: number, rows: number): void {
    if (this.#isClosed) return
    try {
      this.#pty.resize(Math.max(1, columns), Math.max(1, rows))
    } catch {
      // The program has just ended: its terminal is gone.
    }
  }

  pause(): void {
    if (this.#isPaused || this.#isClosed) return
    this.#isPaused = true
    this.#stream.pause()
  }

  resume(): void {
    if (!this.#isPaused || this.#isClosed) return
    this.#isPaused = false
    this.#readAt = performance.now()
    this.#stream.resume()
    if (this.#endsAt !== undefined) {
      this.#endsAt = performance.now() + LAST_OUTPUT_MS
      this.#destroyWhenRead()
    }
  }

  /** Usually the end of the terminal (EIO) comes first; this is for a terminal that another process keeps open. */
  #destroyWhenRead(): void {
    if (this.#isPaused || this.#isClosed || this.#stream.destroyed) return
    const now = performance.now()
    if (now - this.#readAt >= LAST_SILENCE_MS || now >= (this.#endsAt ?? 0)) this.#destroyStream()
    else setTimeout(() => this.#destroyWhenRead(), LAST_SILENCE_MS / 2)
  }

  close(): void {
    if (this.#isClosed) return
    this.#isClosed = true
    const foreground = processGroups(this.pid)?.foreground ?? 0
    // Closing our end hangs the terminal up: SIGHUP to the session's leader and to the foreground group.
    this.#destroyStream()
    if (this.#hasExited) return
    signalGroup(this.pid, this.pid, 'SIGHUP')
    setTimeout(() => {
      if (!this.#hasExited) signalGroup(this.pid, this.pid, 'SIGKILL')
      if (foreground !== this.pid) signalGroup(foreground, this.pid, 'SIGKILL')
    }, GRACE_MS).unref()
  }
}

function signalName(signal: number): string {
  return Object.entries(constants.signals).find(([, value]) => value === signal)?.[0] ?? `SIG${signal}`
}

/**
 * Signals a group of the session that `leader` leads. A process id may be reused: nothing is signalled unless /proc says that
 * the group belongs to the session, or, without /proc, it is the leader's own.
 */
function signalGroup(group: number, leader: number, signal: NodeJS.Signals): void {
  const state = processGroups(group)
  const isOurs = state ? state.session === leader && state.group === group : group === leader && !hasProc
  if (!isOurs || group <= 1) return
  try {
    process.kill(-group, signal)
  } catch {
    // Gone in the meantime.
  }
}

const hasProc = processGroups(process.pid) !== undefined

/** There is no event for 'can be written' in Node: it is tried again, soon at first, then more calmly. */
const FIRST_RETRY_MS = 2
const LAST_RETRY_MS = 50

/** Never blocks: libuv takes the terminal's own end for a blocking file, and would wait for ever for a program that waits for us. */
class PtyWriter {
  readonly #fileDescriptor: number
  readonly #isClosed: () => boolean
  readonly #onDrain: () => void
  #waiting: Uint8Array[] = []
  #retryMs = FIRST_RETRY_MS

  /** Non-blocking; once closed, the descriptor may soon be another file's. `onDrain`: all that waited was taken. */
  constructor(fileDescriptor: number, isClosed: () => boolean, onDrain: () => void) {
    this.#fileDescriptor = fileDescriptor
    this.#isClosed = isClosed
    this.#onDrain = onDrain
  }

  /** False: the program does not read; the bytes wait for it. */
  write(bytes: Uint8Array): boolean {
    return this.#waiting.push(bytes) === 1 && this.#writeWaiting()
  }

  #writeWaiting(): boolean {
    for (let first = this.#waiting[0]; first !== undefined; first = this.#waiting[0]) {
      const rest = this.#writeSome(first)
      if (rest.length < first.length) this.#retryMs = FIRST_RETRY_MS
      if (rest.length > 0) {
        this.#waiting[0] = rest
        setTimeout(() => this.#writeWaiting() && this.#onDrain(), this.#retryMs)
        this.#retryMs = Math.min(2 * this.#retryMs, LAST_RETRY_MS)
        return false
      }
      this.#waiting.shift()
    }
    return true
  }

  /** Returns the bytes that the terminal did not take. A closed terminal takes none, so they are dropped. */
  #writeSome(bytes: Uint8Array): Uint8Array {
    let rest = bytes
    while (rest.length > 0 && !this.#isClosed()) {
      try {
        rest = rest.subarray(writeSync(this.#fileDescriptor, rest))
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code === 'EAGAIN') return rest
        return new Uint8Array()
      }
    }
    return this.#isClosed() ? new Uint8Array() : rest
  }
}
