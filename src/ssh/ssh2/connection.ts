/** One authenticated ssh2 client as a `Connection`. It says once when it is lost, and does not reconnect. */
import { once } from 'node:events'
import type { Duplex } from 'node:stream'
import type { ClientChannel, Client as Ssh2Client } from 'ssh2'
import { type Clock, sleep } from '../../base/clock.ts'
import { Emitter } from '../../base/emitter.ts'
import { messageOf } from '../../base/errors.ts'
import type { Endpoint } from '../../inventory/host.ts'
import {
  ConnectError,
  type Connection,
  type ExecHandlers,
  type ExecOptions,
  type RemoteProcess,
  type Shell,
  type ShellHandlers,
  type ShellOptions,
} from '../transport.ts'
import { openFailure, Ssh2Channel, type Ssh2ChannelHandlers } from './channels.ts'
import { describeEndpoint, describeSocketError, remoteText, seconds, unreachable } from './failures.ts'
import { withSessionWindow } from './library.ts'
import { type SessionKind, SessionSlots, TooManySessions } from './session-slots.ts'

/** How long a server may take to open a channel. */
const OPEN_LIMIT_MS = 15_000
/** What a shell may send before it was consumed here: what still comes after Ctrl-C. */
const SHELL_WINDOW_BYTES = 128 * 1024
/** What each of hundreds of held back commands may keep here. */
const COMMAND_WINDOW_BYTES = 256 * 1024
/** IUTF8 (RFC 8160), so that backspace takes a whole character; the rest is the server's choice. */
const TERMINAL_MODES = Buffer.from([42, 0, 0, 0, 1, 0])

export type ConnectionParts = {
  readonly endpoint: Endpoint
  readonly client: Ssh2Client
  readonly stream: Duplex
  readonly clock: Clock
  /** Why the route broke, if it is known: a lost jump host, the last words of a proxy command. */
  routeLost(): string | undefined
}

export class Ssh2Connection implements Connection {
  readonly #parts: ConnectionParts
  readonly #slots: SessionSlots
  readonly #lost = new Emitter<string>()
  #lostReason: string | undefined
  #lastError: (Error & { level?: string }) | undefined
  #isClosed = false
  #isHungUp = false

  constructor(parts: ConnectionParts) {
    this.#parts = parts
    const { client, clock } = parts
    this.#slots = new SessionSlots((ms) => sleep(clock, ms))
    client.on('error', (error) => {
      this.#lastError ??= error
    })
    client.on('end', () => this.#lose())
    client.on('close', () => this.#lose())
  }

  /** The reason, once, when the connection goes away by itself. */
  onLost(listener: (reason: string) => void): Disposable {
    return this.#lost.on(listener)
  }

  get lostReason(): string | undefined {
    return this.#lostReason
  }

  async openShell({ size, term, environment }: ShellOptions, handlers: ShellHandlers): Promise<Shell> {
    const { client, endpoint } = this.#parts
    const pty = { term, cols: size.columns, rows: size.rows, width: 0, height: 0, modes: TERMINAL_MODES as never }
    const { onData: onStdout, onDrain, onEnd } = handlers
    return await this.#openSession(
      'shell',
      SHELL_WINDOW_BYTES,
      { onStdout, onDrain, onEnd },
      (agentForward, callback) => {
        const extra = { ...(environment === undefined ? {} : { env: environment }), agentForward }
        if (endpoint.shell === undefined) client.shell(pty, extra as never, callback)
        else client.exec(endpoint.shell, { ...extra, pty } as never, callback)
      },
    )
  }

  async exec(
    command: string,
    handlers: ExecHandlers,
    { waitsForRoom = true, isLasting = false, windowBytes = COMMAND_WINDOW_BYTES }: ExecOptions = {},
  ): Promise<RemoteProcess> {
    const kind = isLasting ? 'lasting' : waitsForRoom ? 'command' : 'extra'
    return await this.#openSession(kind, windowBytes, handlers, (agentForward, callback) =>
      this.#parts.client.exec(command, { agentForward } as never, callback),
    )
  }

  /** A byte stream to an address as the remote side sees it: hosts behind a jump host. */
  async forward(address: string, port: number): Promise<Duplex> {
    const { client, endpoint } = this.#parts
    const what = `${remoteText(address)}:${port} from ${describeEndpoint(endpoint)}`
    const asStream = (channel: ClientChannel): Duplex => channel
    return await this.#open(what, asStream, (callback) => client.forwardOut('127.0.0.1', 0, address, port, callback))
  }

  close(): void {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#isHungUp = true
    const { client, stream } = this.#parts
    this.#lostReason ??= 'the connection was closed'
    this.#slots.abandon()
    // The kernel has the goodbye by now; a peer that does not answer must not keep the socket.
    client.end()
    stream.destroy()
  }

  /** A server that forbids agent forwarding still gives the session, as with ssh. */
  async #openSession(
    kind: SessionKind,
    windowBytes: number,
    handlers: Ssh2ChannelHandlers,
    ask: (agentForward: boolean, callback: ChannelCallback) => void,
  ): Promise<Ssh2Channel> {
    const { client, stream, endpoint } = this.#parts
    const what = `a ${kind === 'shell' ? kind : 'command'} on ${describeEndpoint(endpoint)}`
    const host = { client, stream, lostReason: () => this.#lostReason, isHungUp: () => this.#isHungUp }
    const isLimit = (error: unknown) => /^open failed$/i.test(openFailure((error as ConnectError).cause))
    const open = async (agentForward: boolean): Promise<Ssh2Channel> => {
      const take = (channel: ClientChannel) => ({
        session: new Ssh2Channel(host, channel, windowBytes, handlers),
        closed: once(channel, 'close'),
      })
      const askForIt = (callback: ChannelCallback) =>
        withSessionWindow(client, windowBytes, () => ask(agentForward, callback))
      const { value, release } = await this.#slots.acquire(kind, () => this.#open(what, take, askForIt), isLimit)
      value.closed.then(release, release)
      return value.session
    }
    try {
      if (!endpoint.forwardAgent || endpoint.agentSocket === undefined) return await open(false)
      return await open(true).catch((error: unknown) => {
        if (/agent forwarding/i.test(messageOf(error))) return open(false)
        throw error
      })
    } catch (error) {
      if (!(error instanceof TooManySessions)) throw error
      throw new ConnectError(
        {
          kind: 'configuration',
          phase: 'shell',
          reason: `cannot open ${what}: ${error.message}`,
          hint: 'Raise MaxSessions in its sshd_config, or close another shell of this host.',
          isFull: true,
        },
        error,
      )
    }
  }

  /** Rejects in time, and closes a channel that comes too late. `take` is called at once: the end may be in the same packet. */
  #open<T>(what: string, take: (channel: ClientChannel) => T, ask: (callback: ChannelCallback) => void): Promise<T> {
    const { clock } = this.#parts
    return new Promise((resolve, reject) => {
      let isSettled = false
      const fail = (reason: string, cause?: unknown) => {
        isSettled = true
        timer[Symbol.dispose]()
        reject(unreachable('shell', `cannot open ${what}: ${this.#lostReason ?? reason}`, undefined, cause))
      }
      const timer = clock.after(OPEN_LIMIT_MS, () => fail(`no answer within ${seconds(OPEN_LIMIT_MS)}`))
      try {
        ask((error, channel) => {
          if (isSettled) return void channel?.close()
          if (error) return fail(remoteText(openFailure(error)), error)
          isSettled = true
          timer[Symbol.dispose]()
          resolve(take(channel))
        })
      } catch (error) {
        fail('the connection is gone', error)
      }
    })
  }

  #lose(): void {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#lostReason = this.#describeLoss()
    this.#slots.abandon()
    this.#parts.stream.destroy()
    this.#lost.emit(this.#lostReason)
  }

  #describeLoss(): string {
    const { keepAliveIntervalMs, keepAliveMaxMissed } = this.#parts.endpoint
    const error = this.#lastError
    if (error?.level === 'client-timeout') return `no answer for ${seconds(keepAliveIntervalMs * keepAliveMaxMissed)}`
    const route = this.#parts.routeLost()
    if (route !== undefined) return route
    if (error === undefined) return 'the server closed the connection'
    return error.level === 'client-socket' ? describeSocketError(error).reason : remoteText(error.message)
  }
}

type ChannelCallback = (error: Error | undefined, channel: ClientChannel) => void
