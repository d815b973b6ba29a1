/** One authenticated ssh2 client as a `Connection`. It says once when it is lost, and does not reconnect. */
import { once } from 'node:events'
import type { Duplex } from 'node:stream'
import type { ClientChannel, Client as Ssh2Client } from 'ssh2'
import { type Clock, sleep } from '../../base/clock.ts'
import { defined } from '../../base/defined.ts'
import { Emitter } from '../../base/emitter.ts'
import { messageOf } from '../../base/errors.ts'
import type { Endpoint } from '../../inventory/host.ts'
import { isPort } from '../../inventory/host-name.ts'
import {
  type ChannelEnd,
  ConnectError,
  type Connection,
  type ExecHandlers,
  type ExecOptions,
  type HostListener,
  type RemoteProcess,
  type Shell,
  type ShellHandlers,
  type ShellOptions,
  type ShellSize,
} from '../transport.ts'
import { describeEndpoint, describeSocketError, misconfigured, remoteText, seconds, unreachable } from './failures.ts'
import { consumeWith, keepWhileHeard, limitServer, sendAtOnce, signalChannel, withSessionWindow } from './library.ts'
import { type SessionKind, SessionSlots, TooManySessions } from './session-slots.ts'

/** How long a server may take to open a channel. */
const OPEN_LIMIT_MS = 15_000
/** What a shell may send before it was consumed here: what still comes after Ctrl-C. */
const SHELL_WINDOW_BYTES = 128 * 1024
/** What each of hundreds of held back commands may keep here. */
const COMMAND_WINDOW_BYTES = 256 * 1024
/** IUTF8 (RFC 8160), so that backspace takes a whole character; the rest is the server's choice. */
const TERMINAL_MODES = Buffer.from([42, 0, 0, 0, 1, 0])

/** RFC 4254, section 5.1. */
const ADMINISTRATIVELY_PROHIBITED = 1
const REFUSED_TO_LISTEN =
  'The port may be in use there; or see AllowTcpForwarding, PermitListen and GatewayPorts in its sshd_config.'

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
  /** What takes the connections that arrive at a port of the host, by `listenKey`. Others are refused. */
  readonly #listens = new Map<string, (stream: Duplex) => void>()
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
    client.on('tcp connection', ({ destIP, destPort }, accept, reject) => {
      const onStream = this.#listens.get(listenKey(destIP, destPort))
      if (onStream === undefined) reject()
      else onStream(accept())
    })
    keepWhileHeard(client, parts.stream, parts.endpoint.keepAliveIntervalMs)
    limitServer(client, () => {
      this.#lastError ??= new Error('it sent more than it was allowed to')
      this.#parts.stream.destroy()
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

  async connectSocket(path: string): Promise<Duplex> {
    const { client, endpoint } = this.#parts
    const what = `${remoteText(path)} on ${describeEndpoint(endpoint)}`
    const asStream = (channel: ClientChannel): Duplex => channel
    return await this.#open(what, asStream, (callback) => client.openssh_forwardOutStreamLocal(path, callback))
  }

  async connectTcp(address: string, port: number): Promise<Duplex> {
    try {
      return await this.forward(address, port)
    } catch (error) {
      const cause =
        error instanceof ConnectError ? (error.cause as { readonly reason?: unknown } | undefined) : undefined
      if (cause?.reason !== ADMINISTRATIVELY_PROHIBITED) throw error
      throw misconfigured(
        'shell',
        `its sshd does not allow a forward to ${remoteText(address)}:${port}`,
        'Check AllowTcpForwarding, PermitOpen and DisableForwarding in its sshd_config, and the options of the key.',
        error,
      )
    }
  }

  async listenTcp(address: string, port: number, onStream: (stream: Duplex) => void): Promise<HostListener> {
    const { client, clock } = this.#parts
    const listening = Promise.withResolvers<number>()
    const refuse = (reason: string, hint?: string, cause?: unknown) => {
      const what = `it does not listen on ${remoteText(address)}:${port}: ${reason}`
      listening.reject(
        new ConnectError({ kind: 'configuration', phase: 'shell', reason: what, ...defined({ hint }) }, cause),
      )
    }
    using _limit = clock.after(OPEN_LIMIT_MS, () => refuse(`no answer within ${seconds(OPEN_LIMIT_MS)}`))
    try {
      client.forwardIn(address, port, (error, actual) => {
        if (error) return refuse('its sshd refuses that.', REFUSED_TO_LISTEN, error)
        if (!isPort(actual)) return refuse('its answer makes no sense')
        // At once: the first connection may be in the same packet.
        this.#listens.set(listenKey(address, actual), onStream)
        listening.resolve(actual)
      })
    } catch (error) {
      refuse(this.#lostReason ?? 'the connection is gone', undefined, error)
    }
    const actual = await listening.promise
    return {
      port: actual,
      close: () => {
        this.#listens.delete(listenKey(address, actual))
        if (this.#isClosed) return
        try {
          client.unforwardIn(address, actual, () => {})
        } catch {
          // The connection is gone, and the port with it.
        }
      },
    }
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
          if (error) return fail(remoteText(openFailure(error)) || 'the host refused it without a reason', error)
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

const listenKey = (address: string, port: number): string => `${address} ${port}`

type ChannelCallback = (error: Error | undefined, channel: ClientChannel) => void

/** Bytes that may wait on this side before `write` says that the channel is full. */
const WRITE_LIMIT = 64 * 1024

type ChannelHost = {
  readonly client: Ssh2Client
  /** The stream under the client: what it holds back counts as queued, too. */
  readonly stream: Duplex
  /** Why the connection is gone; undefined while it is there. */
  lostReason(): string | undefined
  /** We closed the connection ourselves: no handler is called any more. */
  isHungUp(): boolean
}

/** Without `onStderr`: a shell, whose server sends nothing there. */
type Ssh2ChannelHandlers = Omit<ExecHandlers, 'onStderr'> & Partial<Pick<ExecHandlers, 'onStderr'>>

/** Bytes pass unchanged and unbuffered but for the channel's window. */
export class Ssh2Channel implements Shell, RemoteProcess {
  readonly #host: ChannelHost
  readonly #channel: ClientChannel
  readonly #handlers: Ssh2ChannelHandlers
  /** Until the opener has the channel: output may come in one packet with the answer that it is open. */
  #isHeld = true
  #isPaused = false
  #hasEnded = false
  #isFull = false
  #isAwaitingDrain = false

  /** `windowBytes`: the window that the channel was opened with. */
  constructor(host: ChannelHost, channel: ClientChannel, windowBytes: number, handlers: Ssh2ChannelHandlers) {
    this.#host = host
    this.#channel = channel
    this.#handlers = handlers
    const consumed = consumeWith(host.client, channel, windowBytes)
    channel.on('data', (bytes: Buffer) => {
      consumed(bytes.length)
      if (!this.#isOver) handlers.onStdout(bytes)
    })
    channel.stderr.on('data', (bytes: Buffer) => {
      consumed(bytes.length)
      if (!this.#isOver) handlers.onStderr?.(bytes)
    })
    this.#watchEnd()
    for (const stream of this.#streams) stream.pause()
    // After all promises that this one keeps.
    setImmediate(() => {
      this.#isHeld = false
      if (!this.#isPaused) this.resume()
    })
  }

  write(bytes: Uint8Array): boolean {
    if (this.#isOver || !this.#channel.writable) return false
    try {
      const { client, stream } = this.#host
      if (stream.writableLength + bytes.length <= WRITE_LIMIT && sendAtOnce(client, this.#channel, bytes)) return true
      this.#channel.write(bytes, () => this.#checkRoom())
    } catch {
      return false
    }
    if (this.#channel.writableLength + this.#host.stream.writableLength <= WRITE_LIMIT) return true
    if (this.#isFull) return false
    this.#isFull = true
    this.#awaitDrain()
    return false
  }

  endInput(): void {
    this.#attempt(() => this.#channel.end())
  }

  resize({ columns, rows }: ShellSize): void {
    this.#attempt(() => this.#channel.setWindow(rows, columns, 0, 0))
  }

  signal(name: string): void {
    this.#attempt(() => signalChannel(this.#host.client, this.#channel, name))
  }

  pause(): void {
    this.#isPaused = true
    for (const stream of this.#streams) stream.pause()
  }

  resume(): void {
    this.#isPaused = false
    if (!this.#isHeld) for (const stream of this.#streams) stream.resume()
  }

  close(): void {
    this.#attempt(() => this.#channel.close())
    this.#hasEnded = true
    // What still arrives is thrown away, so that the channel can end.
    for (const stream of this.#streams) stream.resume()
  }

  get #streams() {
    return [this.#channel, this.#channel.stderr]
  }

  get #isOver(): boolean {
    return this.#hasEnded || this.#host.isHungUp()
  }

  /** It has ended once both its streams were read to the end. */
  #watchEnd(): void {
    let exit: ChannelEnd | undefined
    let openStreams = 2
    this.#channel.on('exit', (code: number | null, signal?: string) => {
      exit = code === null ? { kind: 'signal', signal: remoteText(signal ?? 'SIGKILL') } : { kind: 'exit', code }
    })
    for (const stream of this.#streams) {
      stream.on('error', () => {})
      stream.once('close', () => {
        openStreams -= 1
        if (openStreams > 0 || this.#isOver) return
        this.#hasEnded = true
        const reason = this.#host.lostReason() ?? 'the channel was closed without an exit status'
        this.#handlers.onEnd(exit ?? { kind: 'lost', reason })
      })
    }
  }

  /** ssh2 throws when its connection is gone; `onEnd` tells what that means. */
  #attempt(action: () => void): void {
    if (this.#isOver) return
    try {
      action()
    } catch {
      // Its end comes as an event.
    }
  }

  /** The channel may have room again before the stream under it drains: one listener, however often it fills up. */
  #awaitDrain(): void {
    if (this.#isAwaitingDrain) return
    this.#isAwaitingDrain = true
    this.#host.stream.once('drain', () => {
      this.#isAwaitingDrain = false
      this.#checkRoom()
    })
  }

  #checkRoom(): void {
    // What waits in the channel calls back here; what waits under it has only `drain`, and that only where it is needed.
    if (!this.#isFull || this.#channel.writableLength > WRITE_LIMIT / 2) return
    if (this.#host.stream.writableNeedDrain) return this.#awaitDrain()
    this.#isFull = false
    if (!this.#isOver) this.#handlers.onDrain?.()
  }
}

/** A message of ssh2 about a channel that could not be opened, without its prefix. */
function openFailure(error: unknown): string {
  return messageOf(error).replace(/^\(SSH\) Channel open failure: /, '')
}
