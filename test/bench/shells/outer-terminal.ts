/** The user's terminal: a PTY in which a program runs, read as fast as it writes, and the screen that comes of it. */
import { setTimeout as delay } from 'node:timers/promises'
import type { Pty } from '../../../src/base/pty.ts'
import { createCellGrid, WORDS_PER_CELL } from '../../../src/terminal/cells.ts'
import { cellWord } from '../../../src/terminal/clusters.ts'
import { createScreen } from '../../../src/terminal/headless-screen.ts'
import { spawnLocalPty } from '../../../src/terminal/local-pty.ts'
import { isAlive } from '../support/processes.ts'

export const COLUMNS = 240
export const ROWS = 67

export type Command = {
  readonly file: string
  readonly args: readonly string[]
  readonly environment: Readonly<Record<string, string>>
}

type Watch = { readonly byte: number; readonly word: number; readonly cells: number; seen(atMs: number): void }

export class OuterTerminal implements AsyncDisposable {
  readonly startedMs = performance.now()
  readonly #pty: Pty
  readonly #screen
  readonly #grid = createCellGrid(COLUMNS, ROWS)
  #watch: Watch | undefined
  #lastReadMs = performance.now()
  #hasExited = false
  #isDisposed = false
  bytesRead = 0

  constructor({ file, args, environment }: Command) {
    this.#screen = createScreen({
      columns: COLUMNS,
      rows: ROWS,
      historyLines: 0,
      handlers: { onReply: (bytes) => void this.#pty.write(bytes) },
    })
    this.#pty = spawnLocalPty(
      { file, args, columns: COLUMNS, rows: ROWS, term: 'xterm-256color', environment },
      {
        onData: (bytes) => this.#read(bytes),
        onExit: () => {
          this.#hasExited = true
        },
      },
    )
  }

  get pid(): number {
    return this.#pty.pid
  }

  #read(bytes: Uint8Array): void {
    const atMs = performance.now()
    this.#lastReadMs = atMs
    this.bytesRead += bytes.length
    this.#screen.parse(bytes)
    const watch = this.#watch
    // Only what holds the character can complete it.
    if (!watch || !bytes.includes(watch.byte) || this.#count(watch.word) < watch.cells) return
    this.#watch = undefined
    watch.seen(atMs)
  }

  /** In how many cells the character stands. */
  count(character: string): number {
    return this.#count(cellWord(character, 1))
  }

  #count(word: number): number {
    this.#screen.copyInto(this.#grid, 0, 0, COLUMNS, ROWS)
    const { words } = this.#grid
    let count = 0
    for (let at = 0; at < words.length; at += WORDS_PER_CELL) if (words[at] === word) count++
    return count
  }

  /** All cells with colours and attributes, except the first and last rows, where the programs draw their own. */
  paneCells(): Buffer {
    this.#screen.copyInto(this.#grid, 0, 0, COLUMNS, ROWS)
    const words = this.#grid.words.slice(COLUMNS * WORDS_PER_CELL, COLUMNS * (ROWS - 1) * WORDS_PER_CELL)
    return Buffer.from(words.buffer)
  }

  /** Resolves with the time when the terminal has left the alternate screen. */
  async restored(timeoutMs = 10_000): Promise<number> {
    const deadline = performance.now() + timeoutMs
    while (this.#screen.modes.isAlternateScreen) {
      if (performance.now() > deadline) throw new Error('the terminal was not restored')
      await delay(1)
    }
    return performance.now()
  }

  /** Types an ASCII character and gives the milliseconds until it stands in `cells` cells; NaN after `timeoutMs`. */
  async timeKey(character: string, cells: number, timeoutMs: number): Promise<number> {
    const seen = Promise.withResolvers<number>()
    this.#watch = { byte: character.charCodeAt(0), word: cellWord(character, 1), cells, seen: seen.resolve }
    const start = performance.now()
    this.#pty.write(Buffer.from(character))
    const timeout = setTimeout(() => seen.resolve(Number.NaN), timeoutMs)
    const end = await seen.promise
    clearTimeout(timeout)
    this.#watch = undefined
    return end - start
  }

  type(text: string): void {
    this.#pty.write(Buffer.from(text))
  }

  /** Waits until the predicate holds, asked after output and every few milliseconds; says on the way out what was shown. */
  async until(isTrue: () => boolean, what: string, timeoutMs = 60_000): Promise<void> {
    const deadline = performance.now() + timeoutMs
    while (!isTrue()) {
      if (this.#hasExited || performance.now() > deadline) {
        throw new Error(`waited for ${what}; the screen was:\n${this.text()}`)
      }
      await delay(3)
    }
  }

  /** Nothing was written for so long. */
  quiet(ms: number, timeoutMs = 60_000): Promise<void> {
    return this.until(() => performance.now() - this.#lastReadMs >= ms, `${ms} ms without output`, timeoutMs)
  }

  /** The program has ended by itself. */
  async ended(timeoutMs = 10_000): Promise<void> {
    const deadline = performance.now() + timeoutMs
    while (!this.#hasExited && performance.now() < deadline) await delay(3)
    if (!this.#hasExited) throw new Error(`the program should have ended; the screen was:\n${this.text()}`)
  }

  text(): string {
    return this.#screen
      .visibleText()
      .filter((line) => line.trim() !== '')
      .join('\n')
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#pty.close()
    if (this.#isDisposed) return
    this.#isDisposed = true
    while (isAlive(this.pid)) await delay(5)
    this.#screen[Symbol.dispose]()
  }
}
