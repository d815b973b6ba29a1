/** ProxyCommand (ssh_config(5)): a child process whose stdin and stdout are the connection, in a process group that ends with it. */
import { type ChildProcessByStdio, spawn } from 'node:child_process'
import { Duplex, type Readable, type Writable } from 'node:stream'
import { signalGroup } from '../../base/processes.ts'
import type { Endpoint } from '../../inventory/host.ts'
import { abortedError, describeEndpoint, misconfigured, remoteText } from './failures.ts'

const STDERR_LIMIT = 4096
/** SIGTERM first; what ignores it is killed. */
const KILL_AFTER_MS = 1000

export type ProxyStream = {
  readonly stream: Duplex
  /** What the command last wrote to stderr or how it ended, printable; undefined when it said nothing. */
  complaint(): string | undefined
  hasEnded(): boolean
}

export function startProxyCommand(endpoint: Endpoint, command: string, signal: AbortSignal): Promise<ProxyStream> {
  if (signal.aborted) return Promise.reject(abortedError(endpoint, 'proxy'))
  const child = spawn('/bin/sh', ['-c', `exec ${command}`], { stdio: ['pipe', 'pipe', 'pipe'], detached: true })
  let stderr = ''
  let ending: string | undefined
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr = (stderr + text).slice(-STDERR_LIMIT)
  })
  child.stderr.on('error', () => {})
  child.once('exit', (code, killedBy) => {
    ending = killedBy === null ? `it ended with code ${code}` : `it was ended by ${killedBy}`
  })
  const complaint = () => {
    const line = stderr
      .split('\n')
      .map((text) => text.trim())
      .findLast((text) => text !== '')
    const words = line === undefined ? ending : remoteText(line)
    return words === undefined ? undefined : `proxy command: ${words}`
  }
  return new Promise((resolve, reject) => {
    child.once('error', (error) =>
      reject(
        misconfigured(
          'proxy',
          `cannot start the proxy command of ${describeEndpoint(endpoint)}: ${remoteText(error.message)}`,
          'Check ProxyCommand in ssh_config.',
          error,
        ),
      ),
    )
    child.once('spawn', () =>
      resolve({ stream: new ProcessStream(child), complaint, hasEnded: () => ending !== undefined }),
    )
  })
}

/** The child's stdin and stdout as one stream; destroying it ends the process group. */
class ProcessStream extends Duplex {
  readonly #child: ChildProcessByStdio<Writable, Readable, Readable>

  constructor(child: ChildProcessByStdio<Writable, Readable, Readable>) {
    super({ allowHalfOpen: false })
    this.#child = child
    child.stdout.on('data', (bytes: Buffer) => {
      if (!this.push(bytes)) child.stdout.pause()
    })
    child.stdout.once('end', () => this.push(null))
    child.stdout.on('error', () => this.destroy())
    child.stdin.on('error', () => this.destroy())
    child.once('close', () => this.push(null))
  }

  override _read(): void {
    this.#child.stdout.resume()
  }

  override _write(bytes: Uint8Array, _encoding: BufferEncoding, done: (error?: Error | null) => void): void {
    this.#child.stdin.write(bytes, done)
  }

  override _final(done: (error?: Error | null) => void): void {
    this.#child.stdin.end(() => done())
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    const child = this.#child
    child.stdin.destroy()
    child.stdout.destroy()
    child.stderr.destroy()
    if (child.exitCode === null && child.signalCode === null) {
      signalGroup(child.pid, 'SIGTERM')
      const timer = setTimeout(() => signalGroup(child.pid, 'SIGKILL'), KILL_AFTER_MS)
      child.once('exit', () => clearTimeout(timer))
    }
    done(error)
  }
}
