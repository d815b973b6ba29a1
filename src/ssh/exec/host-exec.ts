/** Commands that leave nothing behind: the wrapper of remote-command.ts on a channel, files on its stdin, sudo answered. */
import { randomBytes } from 'node:crypto'
import { type Clock, sleep } from '../../base/clock.ts'
import { printable } from '../../base/printable.ts'
import type { Secret } from '../../base/secret.ts'
import type { Endpoint } from '../../inventory/host.ts'
import { connectLimits } from '../connect-limits.ts'
import {
  type Askers,
  type ChannelEnd,
  type Connection,
  connectTo,
  failureOf,
  type RemoteProcess,
  type Transports,
  withHint,
} from '../transport.ts'
import { floodedStart, MarkFilter, PromptFilter, signalName, slowStart } from './filters.ts'
import { BEAT, buildRemoteCommand, END, formatVariables, GO, GRACE_MS, wordsFor } from './remote-command.ts'

export type HostExecOptions = Askers & {
  readonly transports: Transports
  readonly clock: Clock
  /** A word of letters and digits that nothing on a host prints by chance. */
  readonly token: string
  /** Between two beats; the remote side ends the command when it misses three. */
  readonly beatMs?: number
}

/** A local file for the stdin of hosts: each host calls `open`. */
export type ExecFile = { readonly sizeBytes: number; open(): AsyncIterable<Uint8Array> }

export type ExecRequest = {
  readonly command: string
  /** For /bin/sh and not for the login shell. */
  readonly isForSh?: boolean
  /** It ends by itself before long, whatever becomes of the link, which is not watched for it then. */
  readonly isBrief?: boolean
  readonly isLasting?: boolean
  /** Where the link is lost, the remote side ends it after every other command of this caller. */
  readonly endsLast?: boolean
  /** It waits at its stdin, which has one line after `go`; with neither a script nor a stdin of its own. */
  readonly isHeld?: boolean
  /** In the command line, where other users of the host see it. */
  readonly environment?: Readonly<Record<string, string>>
  /** For the command alone: their values come on stdin and stand in no command line. */
  readonly variables?: Readonly<Record<string, string>>
  readonly script?: {
    readonly file: ExecFile
    readonly interpreter: readonly string[]
    readonly args: readonly string[]
  }
  readonly stdin?: ExecFile
  /** Through sudo; called when sudo asks. Undefined: there is no password. */
  readonly sudoPassword?: (signal: AbortSignal) => Promise<Secret | undefined>
}

/** How it went. `cancelled`: `stop` came before the command had begun. */
export type ExecEnd =
  | { readonly kind: 'exit'; readonly code: number }
  /** `SIGTERM` */
  | { readonly kind: 'signal'; readonly signal: string }
  | { readonly kind: 'unreachable' | 'refused'; readonly reason: string }
  | { readonly kind: 'cancelled' }

export type HostExecHandlers = {
  onBegin(): void
  onStdout(bytes: Uint8Array): void
  onStderr(bytes: Uint8Array): void
  onEnd(end: ExecEnd): void
}

export type RunningExec = Pick<Execution, 'go' | 'stop' | 'abandon' | 'pause' | 'resume'>

const BEAT_MS = 15_000
const BEATS_MISSED = 3
/** Over those of others: the beats of two commands do not come at the same time, and each end takes its grace. */
const LAST_BEATS_MORE = 2
/**
 * Shorter commands are not worth watching the link for, which takes two programs on the host: until then only a broken
 * connection ends them.
 */
const FIRST_BEAT_MS = 1_000
/** For the remote side to end everything, over its own grace. */
const STOP_LIMIT_MS = GRACE_MS + 3_000
/** How often to check whether a full channel has room again. */
const ROOM_MS = 4
const NOTHING = new Uint8Array()
const NOT_BEGUN =
  'the login shell ended without running the command. Look for start-up files that exit, and for a shell or ForceCommand that runs no commands.'

export type HostExecutor = ReturnType<typeof createHostExec>

export function createHostExec(options: HostExecOptions) {
  return {
    start(endpoint: Endpoint, request: ExecRequest, handlers: HostExecHandlers): RunningExec {
      const running = new Execution(endpoint, request, handlers, options)
      void running.run()
      return running
    },
  }
}

class Execution {
  readonly #endpoint: Endpoint
  readonly #request: ExecRequest
  readonly #handlers: HostExecHandlers
  readonly #options: HostExecOptions
  readonly #abort = new AbortController()
  #connection: Connection | undefined
  #process: RemoteProcess | undefined
  #phase: 'connecting' | 'starting' | 'running' | 'ended' = 'connecting'
  #timer: Disposable | undefined
  #beat: Disposable | undefined
  #isPaused = false

  constructor(endpoint: Endpoint, request: ExecRequest, handlers: HostExecHandlers, options: HostExecOptions) {
    this.#endpoint = endpoint
    this.#request = request
    this.#handlers = handlers
    this.#options = options
  }

  async run(): Promise<void> {
    try {
      // The channel reports a loss after the last output; before there is a channel, opening it fails.
      const connection = await connectTo(this.#endpoint, this.#options, this.#abort.signal)
      if (this.#isOver()) return connection.close()
      this.#connection = connection
      await this.#start(connection)
    } catch (error) {
      this.#endBy(error)
    }
  }

  /** Lets a held command continue once it has begun; at most once. */
  go(): void {
    if (this.#phase === 'running') this.#process?.write(Buffer.from(GO))
  }

  /** Ends the remote processes (TERM, then KILL) and then calls `onEnd`, at the latest when the remote side had its time. */
  stop(): void {
    if (this.#phase === 'ended') return
    this.#abort.abort()
    if (this.#phase === 'connecting') return this.#end({ kind: 'cancelled' })
    if (this.#phase === 'starting') {
      // No watcher reads yet: what the login shell's start-up files run is signalled through the server, where it does that.
      this.#process?.signal('TERM')
      this.#process?.signal('KILL')
      return this.#end({ kind: 'cancelled' })
    }
    this.#process?.write(Buffer.from(END))
    this.resume()
    this.#setTimer(STOP_LIMIT_MS, () => this.#end({ kind: 'signal', signal: 'SIGKILL' }))
  }

  /** Hangs up at once; the remote side ends its processes by itself. Calls no handler any more. */
  abandon(): void {
    if (this.#phase === 'ended') return
    this.#abort.abort()
    if (this.#phase === 'starting') this.#process?.signal('KILL')
    if (this.#phase === 'running') this.#process?.write(Buffer.from(END))
    this.#release()
  }

  pause(): void {
    this.#isPaused = true
    this.#process?.pause()
  }

  resume(): void {
    this.#isPaused = false
    this.#process?.resume()
  }

  async #start(connection: Connection): Promise<void> {
    const { token, beatMs = BEAT_MS } = this.#options
    const { command, isForSh = false, environment = {}, script, stdin, sudoPassword, isLasting = false } = this.#request
    const { isHeld = false, endsLast = false } = this.#request
    const variables = fileOf(formatVariables(this.#request.variables ?? {}))
    // Of this command alone, as what runs there beside it may get to know it.
    const word = randomBytes(8).toString('hex')
    const says = wordsFor(word)
    const ready = `ready${token}`
    const line = buildRemoteCommand({
      command,
      isForSh,
      environment,
      isHeld,
      ready,
      beatLimitS: Math.ceil((beatMs * (BEATS_MISSED + (endsLast ? LAST_BEATS_MORE : 0))) / 1000),
      endsLast,
      ...(script
        ? { script: { sizeBytes: script.file.sizeBytes, interpreter: script.interpreter, args: script.args } }
        : {}),
      ...(stdin ? { stdin: { sizeBytes: stdin.sizeBytes } } : {}),
      ...(variables ? { variables: { sizeBytes: variables.sizeBytes } } : {}),
      isSudo: sudoPassword !== undefined,
    })
    this.#phase = 'starting'
    const flooded = () => {
      this.#process?.signal('KILL')
      this.#end({ kind: 'unreachable', reason: floodedStart() })
    }
    const expect = (said: string, pass: (bytes: Uint8Array) => void, onSaid: () => void) =>
      new MarkFilter(`${said}\n`, pass, onSaid, flooded)
    const deliver = () =>
      void this.#deliver([variables, script?.file, stdin]).catch((error: unknown) => this.#endBy(error))
    const begin = expect(
      says.begin,
      (bytes) => this.#handlers.onStdout(bytes),
      () => this.#begin(),
    )
    const isDelivered = variables !== undefined || script !== undefined || stdin !== undefined
    const isDeliveredLater = isDelivered && sudoPassword !== undefined
    const beforeFiles = isDeliveredLater ? expect(says.deliver, (bytes) => begin.push(bytes), deliver) : begin
    const start = expect(
      ready,
      (bytes) => beforeFiles.push(bytes),
      () => {
        this.#process?.write(Buffer.from(`${word}\n`))
        if (isDelivered && !isDeliveredLater) deliver()
      },
    )
    let prompts = 0
    const err = sudoPassword
      ? new PromptFilter(
          says.prompt,
          (bytes) => {
            // A second prompt ends it, in the middle of what the host sent.
            if (!this.#isOver()) this.#handlers.onStderr(bytes)
          },
          () => {
            prompts += 1
            void this.#answerSudo(prompts, sudoPassword)
          },
        )
      : undefined
    const handlers = {
      onStdout: (bytes: Uint8Array) => {
        if (!this.#isOver()) start.push(bytes)
      },
      onStderr: (bytes: Uint8Array) => {
        if (this.#isOver()) return
        if (err === undefined) this.#handlers.onStderr(bytes)
        else err.push(bytes)
      },
      onEnd: (end: ChannelEnd) => {
        if (this.#isOver()) return
        for (const filter of new Set([start, beforeFiles, begin])) filter.flush()
        err?.flush()
        if (end.kind === 'lost') this.#end({ kind: 'unreachable', reason: `lost: ${printable(end.reason)}` })
        else if (end.kind === 'signal') this.#end({ ...end, signal: printable(signalName(end.signal)) })
        else if (end.code === 0 && this.#phase === 'starting') this.#end({ kind: 'refused', reason: NOT_BEGUN })
        else this.#end(end)
      },
    }
    const process = await connection.exec(line, handlers, { isLasting })
    this.#process = process
    if (this.#isOver()) return process.close()
    // Not before: where the server allows few sessions it has waited for the end of others.
    if (this.#phase === 'starting') this.#watchStart()
    if (this.#isPaused) process.pause()
  }

  async #deliver(files: readonly (ExecFile | undefined)[]): Promise<void> {
    for (const file of files) {
      if (file === undefined) continue
      for await (const chunk of file.open()) {
        if (this.#isOver()) return
        this.#watchStart()
        this.#process?.write(chunk)
        while (!this.#isOver() && this.#process?.write(NOTHING) === false) await sleep(this.#options.clock, ROOM_MS)
      }
    }
  }

  async #answerSudo(count: number, ask: NonNullable<ExecRequest['sudoPassword']>): Promise<void> {
    if (count > 1) return this.#end({ kind: 'refused', reason: 'sudo did not accept the password' })
    this.#timer?.[Symbol.dispose]()
    const password = await ask(this.#abort.signal).catch(() => undefined)
    if (this.#isOver()) return
    if (password === undefined)
      return this.#end({ kind: 'refused', reason: 'sudo asks for a password, and there is none' })
    this.#watchStart()
    this.#process?.write(Buffer.from(`${password.reveal()}\n`))
  }

  #watchStart(): void {
    const limitMs = connectLimits(this.#endpoint).shellStartMs
    this.#setTimer(limitMs, () => {
      this.#process?.signal('KILL')
      this.#end({ kind: 'unreachable', reason: slowStart(limitMs) })
    })
  }

  #begin(): void {
    this.#phase = 'running'
    this.#timer?.[Symbol.dispose]()
    this.#timer = undefined
    const { clock, beatMs = BEAT_MS } = this.#options
    const beatAfter = (delayMs: number) => {
      this.#beat = clock.after(delayMs, () => {
        this.#process?.write(Buffer.from(BEAT))
        beatAfter(beatMs)
      })
    }
    const { isBrief = false, endsLast = false } = this.#request
    // What ends last, as a lock, lasts: without a beat it would outlive a Muster that stops now.
    if (endsLast) beatAfter(0)
    else if (!isBrief) beatAfter(Math.min(FIRST_BEAT_MS, beatMs))
    this.#handlers.onBegin()
  }

  #setTimer(delayMs: number, callback: () => void): void {
    this.#timer?.[Symbol.dispose]()
    this.#timer = this.#options.clock.after(delayMs, callback)
  }

  #isOver(): boolean {
    return this.#phase === 'ended'
  }

  #endBy(error: unknown): void {
    const failure = failureOf(error, 'configuration', 'shell')
    this.#end({ kind: failure.kind === 'unreachable' ? 'unreachable' : 'refused', reason: withHint(failure) })
  }

  #end(end: ExecEnd): void {
    if (this.#isOver()) return
    this.#release()
    this.#handlers.onEnd(end)
  }

  #release(): void {
    this.#phase = 'ended'
    this.#timer?.[Symbol.dispose]()
    this.#beat?.[Symbol.dispose]()
    this.#process?.close()
    this.#connection?.close()
  }
}

export function fileOf(bytes: Uint8Array | undefined): ExecFile | undefined {
  if (bytes === undefined) return undefined
  return {
    sizeBytes: bytes.length,
    async *open() {
      yield bytes
    },
  }
}
