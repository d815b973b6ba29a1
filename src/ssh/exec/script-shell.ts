/** A POSIX shell on a host without a terminal that reads its program from stdin as it is written: many small tasks on one channel. */
import { messageOf } from '../../base/errors.ts'
import { printable } from '../../base/printable.ts'
import type { Endpoint } from '../../inventory/host.ts'
import { connectLimits } from '../connect-limits.ts'
import { type ChannelEnd, ConnectError, connectTo, type RemoteProcess, withHint } from '../transport.ts'
import { MarkFilter } from './filters.ts'
import { floodedStart, type HostExecOptions, slowStart } from './host-exec.ts'

export type ScriptShellHandlers = {
  onStdout(bytes: Uint8Array): void
  /** Once, last, with a reason in one printable line; not after it was disposed of. */
  onEnd(reason: string): void
}

/** Disposing hangs up. */
export interface ScriptShell extends Disposable {
  /** What is written before the shell reads is kept until then. */
  write(text: string): void
}

export type ScriptShellOptions = Omit<HostExecOptions, 'beatMs'>

/** Start-up files of the login shell may read stdin: nothing is sent before the mark. */
const command = (mark: string) => `exec /bin/sh -c 'echo ${mark}; exec /bin/sh -s'`
const KEPT_ERROR_BYTES = 300

export function openScriptShell(
  endpoint: Endpoint,
  options: ScriptShellOptions,
  handlers: ScriptShellHandlers,
): ScriptShell {
  const shell = new OpenShell(endpoint, options, handlers)
  void shell.open()
  return shell
}

class OpenShell implements ScriptShell {
  readonly #endpoint: Endpoint
  readonly #options: ScriptShellOptions
  readonly #handlers: ScriptShellHandlers
  readonly #abort = new AbortController()
  #process: RemoteProcess | undefined
  #kept: string[] | undefined = []
  #error = Buffer.alloc(0)
  #timer: Disposable | undefined
  #isOver = false

  constructor(endpoint: Endpoint, options: ScriptShellOptions, handlers: ScriptShellHandlers) {
    this.#endpoint = endpoint
    this.#options = options
    this.#handlers = handlers
  }

  async open(): Promise<void> {
    const { token, clock } = this.#options
    const limitMs = connectLimits(this.#endpoint).shellStartMs
    try {
      const connection = await connectTo(this.#endpoint, this.#options, this.#abort.signal)
      if (this.#isOver) return
      this.#timer = clock.after(limitMs, () => this.#end(slowStart(limitMs)))
      const filter = new MarkFilter(
        `begin${token}\n`,
        this.#handlers.onStdout,
        () => this.#begin(),
        () => this.#end(floodedStart()),
      )
      const handlers = {
        onStdout: (bytes: Uint8Array) => {
          if (!this.#isOver) filter.push(bytes)
        },
        onStderr: (bytes: Uint8Array) => {
          this.#error = Buffer.concat([this.#error, bytes]).subarray(-KEPT_ERROR_BYTES)
        },
        onEnd: (end: ChannelEnd) => this.#end(reasonOf(end, this.#error)),
      }
      const process = await connection.exec(command(`begin${token}`), handlers, { isLasting: true })
      this.#process = process
      if (this.#isOver) process.close()
    } catch (error) {
      this.#end(printable(withHint(error instanceof ConnectError ? error.failure : { reason: messageOf(error) })))
    }
  }

  write(text: string): void {
    if (this.#kept === undefined) this.#process?.write(Buffer.from(text))
    else this.#kept.push(text)
  }

  [Symbol.dispose](): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#abort.abort()
    this.#timer?.[Symbol.dispose]()
    this.#process?.close()
  }

  #begin(): void {
    this.#timer?.[Symbol.dispose]()
    const kept = this.#kept ?? []
    this.#kept = undefined
    for (const text of kept) this.write(text)
  }

  #end(reason: string): void {
    if (this.#isOver) return
    this[Symbol.dispose]()
    this.#handlers.onEnd(reason)
  }
}

function reasonOf(end: ChannelEnd, error: Buffer): string {
  if (end.kind === 'lost') return printable(`lost: ${end.reason}`)
  const said = error.toString().trim().split('\n').at(-1) ?? ''
  const how = end.kind === 'exit' ? `exit ${end.code}` : `SIG${end.signal.replace(/^SIG/, '')}`
  return printable(said === '' ? `its shell ended: ${how}` : `${said} (${how})`)
}
