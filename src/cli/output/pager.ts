/**
 * Shows a finished report that is longer than the terminal in the user's pager, as git does. What a verb prints is kept until it has
 * ended, so that questions and progress have the terminal until then; only a very long report starts its pager before.
 */
import { type ChildProcessByStdio, spawn } from 'node:child_process'
import { Writable } from 'node:stream'
import { stripVTControlCharacters } from 'node:util'
import { onAbort } from '../../base/abort.ts'
import { printable } from '../../base/printable.ts'
import { textWidth } from '../../base/text-width.ts'
import { findProgram } from '../../inventory/ssh-config/openssh-source.ts'
import type { CliContext, GlobalOptions } from '../command-line/verb.ts'
import { keepToAscii } from './ascii-output.ts'
import { isDumb } from './dumb-terminal.ts'

/** More than this is not kept: the pager starts, and what follows goes to it. */
const KEPT_BYTES = 256 * 1024

/** A stdout for one verb, where stdout is a terminal; undefined: without a pager. */
export function openPager({ pager }: GlobalOptions, context: CliContext): PagedOutput | undefined {
  const { environment } = context
  if (pager === false || !environment.TERM || isDumb(environment)) return undefined
  const command = pagerCommand(environment)
  if (command === undefined) return undefined
  const output = new PagedOutput(command, context)
  keepToAscii(output, environment)
  return output
}

/** A line for sh; undefined: none is wanted, or there is no `less`. */
export function pagerCommand(environment: CliContext['environment']): string | undefined {
  const wanted = environment.MUSTER_PAGER ?? environment.PAGER
  if (wanted === undefined) return findProgram('less', environment.PATH) === undefined ? undefined : 'less'
  return ['', 'cat'].includes(wanted.trim()) ? undefined : wanted
}

type Pager = ChildProcessByStdio<Writable, null, null>

export class PagedOutput extends Writable {
  readonly isTTY = true
  readonly #command: string
  readonly #context: CliContext
  #kept: Buffer[] = []
  #keptBytes = 0
  #pager: { readonly child: Pager; readonly ended: Promise<void> } | undefined

  constructor(command: string, context: CliContext) {
    super({ decodeStrings: true })
    this.#command = command
    this.#context = context
    // A write after the pager has ended fails; its callback learns that, and nothing else has to.
    this.on('error', () => {})
  }

  get columns(): number | undefined {
    return this.#context.stdout.columns
  }

  get rows(): number | undefined {
    return this.#context.stdout.rows
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: (error?: Error | null) => void): void {
    if (this.#pager !== undefined) {
      this.#pager.child.stdin.write(chunk, done)
      return
    }
    this.#kept.push(chunk)
    this.#keptBytes += chunk.length
    if (this.#keptBytes > KEPT_BYTES) this.#start()
    done()
  }

  /** When the verb has ended: shows what it printed, and resolves when the user has closed the pager. */
  async finish(): Promise<void> {
    const { signal, stdout } = this.#context
    if (this.#pager === undefined) {
      const text = Buffer.concat(this.#kept)
      if (signal.aborted || this.#fits(text.toString())) {
        if (text.length > 0) stdout.write(text)
        return
      }
      this.#start()
    }
    if (this.#pager === undefined) return
    const { child, ended } = this.#pager
    // Ctrl-C goes to the pager, too, which knows what it means there.
    const ignore = () => {}
    process.on('SIGINT', ignore)
    using _abort = onAbort(signal, () => {
      if (signal.reason !== 'SIGINT') child.kill('SIGTERM')
    })
    child.stdin.end()
    await ended
    process.off('SIGINT', ignore)
  }

  #start(): void {
    const { environment, stderr, stdout } = this.#context
    const text = Buffer.concat(this.#kept)
    this.#kept = []
    const child: Pager = spawn('/bin/sh', ['-c', this.#command], {
      stdio: ['pipe', 'inherit', 'inherit'],
      env: { ...environment, LESS: environment.LESS ?? 'FRX', LV: environment.LV ?? '-c' },
    })
    // A pager that was closed early has shown enough.
    child.stdin.on('error', (error) => this.destroy(error))
    const ended = new Promise<void>((resolve) => {
      child.once('error', (error) => {
        stderr.write(`muster: cannot start a pager: ${printable(error.message)}\n`)
        stdout.write(text)
        resolve()
      })
      child.once('exit', (code) => {
        // sh found no such program, or may not run it.
        if (code === 126 || code === 127) {
          stderr.write('muster: cannot start the pager. Set MUSTER_PAGER or PAGER, or use --no-pager\n')
          stdout.write(text)
        }
        resolve()
      })
    })
    this.#pager = { child, ended }
    child.stdin.write(text)
  }

  #fits(text: string): boolean {
    const { columns, rows } = this
    const width = columns || 80
    const lines = stripVTControlCharacters(text).split('\n')
    const height = lines.reduce((sum, line) => sum + Math.max(1, Math.ceil(textWidth(line) / width)), 0)
    // The last line is the prompt of the shell.
    return height <= (rows || 24)
  }
}
