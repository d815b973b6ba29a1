/**
 * Results on stdout, messages on stderr, and on a terminal a few lines below them that follow what is happening. Output that stdout
 * does not take is waited for, not queued.
 */
import { printable } from '../../base/printable.ts'
import type { CredentialDialog, HostKeyReviewer } from '../../ssh/questions.ts'
import type { CliContext } from '../command-line/verb.ts'
import { isDumb } from './dumb-terminal.ts'

/** The event of stderr after its process was stopped, as with Ctrl-Z, and continued. */
const CONTINUED = 'continued'
/** The live lines are rewritten at most this often. */
const LIVE_MS = 100

export type LiveScreenOptions = Pick<CliContext, 'stdout' | 'stderr' | 'environment' | 'isQuiet'> & {
  /** The lines of now, which may hold any text. Only called when stderr is a terminal that can replace them, and not with `--quiet`. */
  live(rows: number): readonly string[]
  /** stdout takes no more for now, and takes more again. */
  onFull?(): void
  onRoom?(): void
  /** Nothing can be written to stdout any more: its reader has gone, or the disk is full. */
  onGone?(error: NodeJS.ErrnoException): void
}

export type TerminalDialog = CredentialDialog &
  HostKeyReviewer & {
    /** Undefined: there is no terminal. */
    confirm(question: string, signal: AbortSignal): Promise<boolean | undefined>
  }

export class LiveScreen implements Disposable {
  readonly #options: LiveScreenOptions
  readonly #isLive: boolean
  #liveRows = 0
  #timer: NodeJS.Timeout | undefined
  #questions = 0
  #isFull = false
  #isGone = false
  readonly #handleDrain = () => {
    this.#isFull = false
    this.#options.onRoom?.()
  }
  readonly #handleError = (error: NodeJS.ErrnoException) => {
    this.#isGone = true
    this.#options.onGone?.(error)
  }

  /** After Ctrl-Z and `fg`, the shell's own lines are below the live lines, which are drawn again below those. */
  readonly #handleContinued = () => {
    this.#liveRows = 0
    this.refresh()
  }

  constructor(options: LiveScreenOptions) {
    this.#options = options
    this.#isLive = options.stderr.isTTY === true && options.isQuiet !== true && !isDumb(options.environment)
    options.stdout.on('drain', this.#handleDrain)
    options.stdout.on('error', this.#handleError)
    options.stderr.on(CONTINUED, this.#handleContinued)
  }

  out(text: Uint8Array | string): void {
    // Hosts that are being stopped must not be held back for it.
    if (this.#isGone) return
    const { stdout, onFull } = this.#options
    if (stdout.isTTY === true) this.#erase()
    if (!stdout.write(text) && !this.#isFull) {
      this.#isFull = true
      onFull?.()
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

  /** As `err`, but not with `--quiet`. */
  notice(text: string): void {
    if (this.#options.isQuiet !== true) this.err(text)
  }

  /** Something has changed: the live lines will follow. */
  refresh(): void {
    if (!this.#isLive || this.#questions > 0) return
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined
      this.#draw()
    }, LIVE_MS)
  }

  /** The terminal has echoed the line break of Enter: everything is one row further up. */
  noteLineBreak(): void {
    if (this.#liveRows > 0) this.#liveRows += 1
  }

  /** The same questions. From the first to the last of those that are open there are no live lines. */
  quietly(dialog: TerminalDialog, onQuiet?: (isQuiet: boolean) => void): TerminalDialog {
    const ask = async <T>(talk: () => Promise<T>): Promise<T> => {
      if (++this.#questions === 1) onQuiet?.(true)
      this.#erase()
      try {
        return await talk()
      } finally {
        if (--this.#questions === 0) onQuiet?.(false)
        this.refresh()
      }
    }
    return {
      ask: (...question) => ask(() => dialog.ask(...question)),
      review: (...question) => ask(() => dialog.review(...question)),
      confirm: (...question) => ask(() => dialog.confirm(...question)),
    }
  }

  [Symbol.dispose](): void {
    this.#questions += 1
    clearTimeout(this.#timer)
    this.#erase()
    // Its errors are still listened to: what was written last may fail later.
    this.#options.stdout.off('drain', this.#handleDrain)
    this.#options.stderr.off(CONTINUED, this.#handleContinued)
  }

  #draw(): void {
    if (this.#questions > 0) return
    const { stderr } = this.#options
    const { columns, rows } = stderr as { columns?: number; rows?: number }
    // A terminal that does not know its size says 0.
    const lines = this.#options.live(rows || 24).map((line) => cutToWidth(printable(line), (columns || 80) - 1))
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

/** Characters of two columns count as one: the terminal cuts what is still too wide. */
function cutToWidth(line: string, columns: number): string {
  const characters = [...line]
  return characters.length <= columns ? line : `${characters.slice(0, Math.max(0, columns - 1)).join('')}…`
}
