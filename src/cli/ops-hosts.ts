/** What operations need of hosts, over SSH: scripts on one shared login a host, ended with everything that they started. */
import { systemClock } from '../base/clock.ts'
import { MusterError } from '../base/errors.ts'
import type { Secret } from '../base/secret.ts'
import type { Endpoint } from '../inventory/host.ts'
import type { ExecOptions, ExecResult, OpsHosts } from '../ops/kernel/host-port.ts'
import { outcomeOf } from '../ops/run/outcome.ts'
import { createHostExec, type ExecEnd, type ExecFile, type HostExec } from '../ssh/exec/host-exec.ts'
import { shareConnections } from '../ssh/share-connections.ts'
import type { Wires } from './transports.ts'

export type OpsHostsOptions = Pick<Wires, 'transports' | 'hostKeys' | 'credentials'> & {
  readonly fanOut: number
  /** A word of letters and digits that nobody guesses. */
  readonly token: string
  /** Ends everything, logins too. */
  readonly signal: AbortSignal
  sudoPassword(): Promise<Secret | undefined>
}

const STDOUT_LIMIT_BYTES = 1024 * 1024
const STDERR_LIMIT_BYTES = 64 * 1024
const ID_TIMEOUT_MS = 10_000
/** Any login shell reads this line alike; the script is seen by no shell but sh. */
const SHELL = `exec /bin/sh -c 'eval "unset MUSTER_SCRIPT; $MUSTER_SCRIPT"'`

export function createOpsHosts(endpoints: readonly Endpoint[], options: OpsHostsOptions): OpsHosts & Disposable {
  return new SshOpsHosts(endpoints, options)
}

class SshOpsHosts implements OpsHosts, Disposable {
  readonly #endpoints: ReadonlyMap<string, Endpoint>
  readonly #options: OpsHostsOptions
  readonly #shared: ReturnType<typeof shareConnections>
  readonly #exec: HostExec
  /** Whether the login is root, asked once a host. */
  readonly #roots = new Map<string, Promise<boolean>>()

  constructor(endpoints: readonly Endpoint[], options: OpsHostsOptions) {
    this.#endpoints = new Map(endpoints.map((endpoint) => [endpoint.host, endpoint]))
    this.#options = options
    this.#shared = shareConnections(options.transports, { ...options, clock: systemClock })
    this.#exec = createHostExec({ ...options, transports: this.#shared.transports, clock: systemClock })
  }

  async exec(host: string, script: string, options: ExecOptions): Promise<ExecResult> {
    const isSudo = options.asRoot === true && !(await this.#isRoot(host, options.signal))
    return await this.#run(host, script, options, isSudo)
  }

  [Symbol.dispose](): void {
    this.#shared[Symbol.dispose]()
  }

  #isRoot(host: string, signal: AbortSignal): Promise<boolean> {
    if (this.#endpointOf(host).user === 'root') return Promise.resolve(true)
    const asked = this.#roots.get(host) ?? this.#askForRoot(host, signal)
    this.#roots.set(host, asked)
    return asked
  }

  async #askForRoot(host: string, signal: AbortSignal): Promise<boolean> {
    const { outcome, stdout } = await this.#run(host, 'id -u', { timeoutMs: ID_TIMEOUT_MS, signal }, false)
    if (outcome.kind !== 'exit') this.#roots.delete(host)
    return Buffer.from(stdout).toString().trim() === '0'
  }

  #run(host: string, script: string, options: ExecOptions, isSudo: boolean): Promise<ExecResult> {
    const { timeoutMs, signal, stdin, onOutput } = options
    const sinceMs = systemClock.now()
    const streams = {
      stdout: new Kept(STDOUT_LIMIT_BYTES, (text) => onOutput?.('stdout', text)),
      stderr: new Kept(STDERR_LIMIT_BYTES, (text) => onOutput?.('stderr', text)),
    }
    return new Promise((resolve) => {
      let cause: 'timeout' | 'cancelled' | undefined
      let timer: Disposable | undefined
      const finish = (end: ExecEnd): void => {
        timer?.[Symbol.dispose]()
        signal.removeEventListener('abort', cancel)
        resolve({
          outcome: outcomeOf(end, cause),
          stdout: streams.stdout.bytes(),
          stderr: streams.stderr.bytes(),
          durationMs: systemClock.now() - sinceMs,
        })
      }
      const running = this.#exec.start(
        this.#endpointOf(host),
        {
          command: SHELL,
          environment: { MUSTER_SCRIPT: script },
          ...(stdin === undefined ? {} : { stdin: fileOf(stdin) }),
          ...(isSudo ? { sudoPassword: () => this.#options.sudoPassword() } : {}),
        },
        {
          onBegin: () => {
            if (!Number.isFinite(timeoutMs)) return
            timer = systemClock.after(timeoutMs, () => {
              cause ??= 'timeout'
              running.stop()
            })
          },
          onStdout: (bytes) => streams.stdout.push(bytes),
          onStderr: (bytes) => streams.stderr.push(bytes),
          onEnd: finish,
        },
      )
      const cancel = () => {
        cause ??= 'cancelled'
        running.stop()
      }
      if (signal.aborted) cancel()
      else signal.addEventListener('abort', cancel, { once: true })
    })
  }

  #endpointOf(host: string): Endpoint {
    const endpoint = this.#endpoints.get(host)
    if (endpoint === undefined) throw new MusterError('internal', `there is no host ${host}`)
    return endpoint
  }
}

/** The beginning of a stream; all of it goes by as text. */
class Kept {
  readonly #limit: number
  readonly #onText: (text: string) => void
  readonly #decoder = new TextDecoder()
  readonly #chunks: Uint8Array[] = []
  #size = 0

  constructor(limitBytes: number, onText: (text: string) => void) {
    this.#limit = limitBytes
    this.#onText = onText
  }

  push(bytes: Uint8Array): void {
    this.#onText(this.#decoder.decode(bytes, { stream: true }))
    const part = bytes.subarray(0, Math.max(0, this.#limit - this.#size))
    this.#size += part.length
    if (part.length > 0) this.#chunks.push(part)
  }

  bytes(): Uint8Array {
    return Buffer.concat(this.#chunks)
  }
}

function fileOf(bytes: Uint8Array): ExecFile {
  return {
    sizeBytes: bytes.length,
    async *open() {
      yield bytes
    },
  }
}
