/**
 * Where the lines of a run go: results to stdout, words about them to stderr, and on a terminal a few lines below them
 * that follow what is happening. Output that is not taken is waited for, not queued.
 */
import type { CliContext } from '../command-line/context.ts'

/** Below the results, rewritten at most so often. */
const LIVE_MS = 100

export type RunScreenOptions = {
  readonly stdout: CliContext['stdout']
  readonly stderr: CliContext['stderr']
  /** The lines of now; undefined: nothing is to be shown. Only called when stderr is a terminal. */
  live(columns: number, rows: number): readonly string[]
  /** stdout does not take more for now, and does again. */
  onFull(): void
  onRoom(): void
  /** Nothing can be written to stdout any more: nobody reads it, or the disk is full. */
  onGone(error: NodeJS.ErrnoException): void
}

export class RunScreen implements Disposable {
  readonly #options: RunScreenOptions
  readonly #isLive: boolean
  #liveRows = 0
  #timer: NodeJS.Timeout | undefined
  #isQuiet = false
  #isFull = false
  readonly #handleDrain = () => {
    this.#isFull = false
    this.#options.onRoom()
  }
  readonly #handleError = (error: NodeJS.ErrnoException) => this.#options.onGone(error)

  constructor(options: RunScreenOptions) {
    this.#options = options
    this.#isLive = options.stderr.isTTY === true
    options.stdout.on('drain', this.#handleDrain)
    options.stdout.on('error', this.#handleError)
  }

  out(text: Uint8Array | string): void {
    const { stdout, onFull } = this.#options
    if (stdout.isTTY === true) this.#erase()
    if (!stdout.write(text) && !this.#isFull) {
      this.#isFull = true
      onFull()
    }
    this.refresh()
  }

  /** Resolves when stdout takes more, or is gone. */
  async room(): Promise<void> {
    const { stdout } = this.#options
    if (!this.#isFull || !stdout.writable) return
    await new Promise<void>((resolve) => {
      const done = () => {
        stdout.off('drain', done).off('close', done)
        resolve()
      }
      stdout.on('drain', done).on('close', done)
    })
  }

  err(text: Uint8Array | string): void {
    this.#erase()
    this.#options.stderr.write(text)
    this.refresh()
  }

  /** Something has changed: the live lines will follow. */
  refresh(): void {
    if (!this.#isLive || this.#isQuiet) return
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined
      this.#draw()
    }, LIVE_MS)
  }

  /** The terminal has echoed the line break of Enter: all is one row further up. */
  noteLineBreak(): void {
    if (this.#liveRows > 0) this.#liveRows += 1
  }

  /** A question is on the terminal. */
  set isQuiet(isQuiet: boolean) {
    if (isQuiet) this.#erase()
    this.#isQuiet = isQuiet
    this.refresh()
  }

  [Symbol.dispose](): void {
    this.#isQuiet = true
    clearTimeout(this.#timer)
    this.#erase()
    // Its errors are still listened to: what was written last may fail later.
    this.#options.stdout.off('drain', this.#handleDrain)
  }

  #draw(): void {
    if (this.#isQuiet) return
    const { stderr } = this.#options
    const { columns, rows } = stderr as { columns?: number; rows?: number }
    // A terminal that does not know its size says 0.
    const lines = this.#options.live(columns || 80, rows || 24)
    this.#erase()
    // No wrapping while they are written: a line that is too long takes one row all the same.
    if (lines.length > 0) stderr.write(`\x1b[?7l${lines.join('\n')}\n\x1b[?7h`)
    this.#liveRows = lines.length
  }

  #erase(): void {
    if (this.#liveRows > 0) this.#options.stderr.write(`\x1b[${this.#liveRows}A\r\x1b[J`)
    this.#liveRows = 0
  }
}

/** Characters of two columns are counted as one: what is too wide all the same is cut by the terminal. */
export function cutToWidth(line: string, columns: number): string {
  const characters = [...line]
  return characters.length <= columns ? line : `${characters.slice(0, Math.max(0, columns - 1)).join('')}…`
}
