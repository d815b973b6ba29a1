/**
 * A step's script that begins before its turn, so that what it has to load is loaded when the turn comes. It changes nothing
 * until then; where the turn does not come it is ended.
 */
import type { ExecOptions, ExecResult, OpsHosts } from './host-port.ts'

type EarlyOptions = Required<Pick<ExecOptions, 'signal' | 'timeoutMs' | 'onOutput'>>

export class EarlyStart implements AsyncDisposable {
  readonly #turn = Promise.withResolvers<void>()
  readonly #unwanted = new AbortController()
  readonly #ended: Promise<ExecResult>
  #state: 'waits' | 'goes' | 'ended' = 'waits'

  constructor(hosts: OpsHosts, host: string, script: string, options: EarlyOptions) {
    const { signal, timeoutMs, onOutput } = options
    this.#ended = hosts.exec(host, script, {
      timeoutMs,
      signal: AbortSignal.any([signal, this.#unwanted.signal]),
      turn: this.#turn.promise,
      onOutput: (stream, text) => {
        if (this.#state === 'goes') onOutput(stream, text)
      },
    })
    void this.#ended.then(() => {
      this.#state = 'ended'
    })
  }

  /** Its turn has come: how it ends. Undefined: it has ended before, whatever the reason. */
  async goOn(): Promise<ExecResult | undefined> {
    if (this.#state === 'ended') return undefined
    this.#state = 'goes'
    this.#turn.resolve()
    return await this.#ended
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#unwanted.abort()
    await this.#ended
  }
}
