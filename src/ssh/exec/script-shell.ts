/** A POSIX shell on a host without a terminal that reads its program from stdin as it is written: many small tasks on one channel. */
import { printable } from '../../base/printable.ts'
import type { Endpoint } from '../../inventory/host.ts'
import { connectLimits } from '../connect-limits.ts'
import { connectTo, failureOf, type RemoteProcess, withHint } from '../transport.ts'
import { startMarked } from './filters.ts'
import type { HostExecOptions } from './host-exec.ts'

export type ScriptShellHandlers = {
  onStdout(bytes: Uint8Array): void
  /** Once, last, with a reason in one printable line; not after it was disposed of. */
  onEnd(reason: string): void
}

export type ScriptShellOptions = Omit<HostExecOptions, 'beatMs'>

/** Disposing hangs up. */
export class ScriptShell implements Disposable {
  readonly #onEnd: (reason: string) => void
  readonly #abort = new AbortController()
  #process: RemoteProcess | undefined
  #kept: string[] = []

  constructor(endpoint: Endpoint, options: ScriptShellOptions, handlers: ScriptShellHandlers) {
    this.#onEnd = (reason) => handlers.onEnd(reason)
    void this.#open(endpoint, options, handlers)
  }

  async #open(endpoint: Endpoint, options: ScriptShellOptions, handlers: ScriptShellHandlers): Promise<void> {
    const { signal } = this.#abort
    const mark = `begin${options.token}`
    try {
      this.#process = await startMarked(
        await connectTo(endpoint, options, signal),
        {
          mark,
          // Start-up files of the login shell may read stdin: nothing is sent before the mark.
          command: `exec /bin/sh -c 'echo ${mark}; exec /bin/sh -s'`,
          options: { isLasting: true },
          clock: options.clock,
          limitMs: connectLimits(endpoint).shellStartMs,
          signal,
        },
        {
          onBytes: (bytes) => {
            if (!signal.aborted) handlers.onStdout(bytes)
          },
          onEnd: (reason) => this.#end(reason),
        },
      )
      if (signal.aborted) this.#process.close()
      for (const text of this.#kept.splice(0)) this.write(text)
    } catch (error) {
      this.#end(printable(withHint(failureOf(error, 'unreachable', 'shell'))))
    }
  }

  /** What is written before the shell reads is kept until then. */
  write(text: string): void {
    if (this.#process === undefined) this.#kept.push(text)
    else this.#process.write(Buffer.from(text))
  }

  [Symbol.dispose](): void {
    this.#abort.abort()
    this.#process?.close()
  }

  #end(reason: string): void {
    if (this.#abort.signal.aborted) return
    this[Symbol.dispose]()
    this.#onEnd(reason)
  }
}
