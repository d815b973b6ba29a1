/**
 * Port forwards over the connections of a fleet. Each listens until it is closed, also while its host is away; a host that is
 * connected again serves it again. A host reaches only the address that was asked for, and resolves the names itself.
 */

import { once } from 'node:events'
import { connect, createServer, type Server, type Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import type { Clock } from '../../base/clock.ts'
import { Emitter } from '../../base/emitter.ts'
import { MusterError, messageOf } from '../../base/errors.ts'
import { printable } from '../../base/printable.ts'
import type { Fleet, FleetEvent } from '../create-fleet.ts'
import type { SessionState } from '../session-transition.ts'
import { describeSocketError } from '../ssh2/failures.ts'
import { type Connection, failureOf, type HostListener, withHint } from '../transport.ts'
import { type ForwardSpec, formatSocketAddress, type SocketAddress } from './forward-spec.ts'
import { joinStreams } from './join-streams.ts'
import { leadsToItself } from './leads-to-itself.ts'
import {
  METHOD_CHOSEN,
  MOST_SOCKS_BYTES,
  readGreeting,
  readRequest,
  type SocksRead,
  type SocksReply,
  socksReply,
} from './socks5.ts'

export type ForwardRequest = {
  readonly host: string
  readonly spec: ForwardSpec
  /** What it leads to, if it has a name: `Ray dashboard`. */
  readonly title?: string
}

export type ForwardState =
  | { readonly kind: 'open' }
  /** The host is not connected. */
  | { readonly kind: 'waiting'; readonly reason: string }
  /** The host does not listen; it is asked again when it is connected again. */
  | { readonly kind: 'refused'; readonly reason: string }

export type Forward = ForwardRequest & {
  readonly id: number
  /** Where it listens; port 0 until a host has chosen one. */
  readonly listen: SocketAddress
  readonly state: ForwardState
  /** Now, and since it was opened. */
  readonly connections: number
  readonly allConnections: number
  /** To and from the host. */
  readonly sentBytes: number
  readonly receivedBytes: number
}

export type ForwardEvent =
  | { readonly type: 'opened' | 'served' | 'closed'; readonly forward: Forward }
  | { readonly type: 'lost' | 'refused'; readonly forward: Forward; readonly reason: string }
  /** A connection through it failed; reported once, until one succeeds or the reason changes. */
  | { readonly type: 'trouble'; readonly forward: Forward; readonly reason: string }

/** Of one forward: each may keep the window of a channel, 2 MB. */
const MOST_CONNECTIONS = 128
/** How many ports after the wanted one are tried. */
const PORTS_TRIED = 50
/** Ports below need root. */
const FIRST_FREE_PORT = 1024
/** The time a SOCKS client has for its request. */
const SOCKS_LIMIT_MS = 30_000

type FleetPort = Pick<Fleet, 'connection' | 'endpoint' | 'session' | 'on'>

export class Forwards implements Disposable {
  readonly #fleet: FleetPort
  readonly #clock: Clock
  readonly #emitter = new Emitter<ForwardEvent>()
  readonly #open = new Map<number, OpenForward>()
  readonly #subscription: Disposable
  #count = 0
  #isOver = false

  constructor(fleet: FleetPort, clock: Clock) {
    this.#fleet = fleet
    this.#clock = clock
    this.#subscription = fleet.on((event) => this.#handleFleet(event))
  }

  /** In the order in which they were opened. */
  list(): readonly Forward[] {
    return [...this.#open.values()].map((open) => open.now())
  }

  on(listener: (event: ForwardEvent) => void): Disposable {
    return this.#emitter.on(listener)
  }

  /**
   * Listens at once on this machine; on a host as soon as that is connected.
   * @throws MusterError when a port cannot be had here; then none of them is open
   */
  async open(requests: readonly ForwardRequest[]): Promise<readonly Forward[]> {
    const all: OpenForward[] = []
    try {
      for (const request of requests) {
        this.#count += 1
        const open = new OpenForward(this.#count, request, this.#fleet, this.#clock, (event) =>
          this.#emitter.emit(event),
        )
        await open.listen()
        all.push(open)
        if (this.#isOver) throw new MusterError('internal', 'a forward was opened too late')
      }
    } catch (error) {
      for (const open of all) open[Symbol.dispose]()
      throw error
    }
    for (const open of all) {
      this.#open.set(open.id, open)
      this.#emitter.emit({ type: 'opened', forward: open.now() })
      open.follow()
    }
    return all.map((open) => open.now())
  }

  /** With all its connections. */
  close(id: number): void {
    const open = this.#open.get(id)
    if (open === undefined) return
    this.#open.delete(id)
    open[Symbol.dispose]()
    this.#emitter.emit({ type: 'closed', forward: open.now() })
  }

  [Symbol.dispose](): void {
    this.#isOver = true
    this.#subscription[Symbol.dispose]()
    for (const open of this.#open.values()) open[Symbol.dispose]()
    this.#open.clear()
  }

  #handleFleet(event: FleetEvent): void {
    if (event.type !== 'session' && event.type !== 'removed') return
    for (const open of this.#open.values()) {
      if (open.request.host !== event.host) continue
      if (event.type === 'removed') this.close(open.id)
      else open.follow()
    }
  }
}

class OpenForward implements Disposable {
  readonly id: number
  readonly request: ForwardRequest
  readonly #fleet: FleetPort
  readonly #clock: Clock
  readonly #emit: (event: ForwardEvent) => void
  readonly #sockets = new Set<Socket>()
  #server: Server | undefined
  #hostListener: HostListener | undefined
  /** Changes with each connection of the host. */
  #served: Connection | undefined
  #listen: SocketAddress
  #state: ForwardState = { kind: 'waiting', reason: 'not connected' }
  #count = 0
  #sentBytes = 0
  #receivedBytes = 0
  #lastTrouble: string | undefined
  #isClosed = false

  constructor(
    id: number,
    request: ForwardRequest,
    fleet: FleetPort,
    clock: Clock,
    emit: (event: ForwardEvent) => void,
  ) {
    this.id = id
    this.request = request
    this.#fleet = fleet
    this.#clock = clock
    this.#emit = emit
    this.#listen = request.spec.listen
  }

  now(): Forward {
    let sentBytes = this.#sentBytes
    let receivedBytes = this.#receivedBytes
    for (const socket of this.#sockets) {
      sentBytes += socket.bytesRead
      receivedBytes += socket.bytesWritten
    }
    return {
      ...this.request,
      id: this.id,
      listen: this.#listen,
      state: this.#state,
      connections: this.#sockets.size,
      allConnections: this.#count,
      sentBytes,
      receivedBytes,
    }
  }

  /** On this machine. */
  async listen(): Promise<void> {
    const { host, spec } = this.request
    if (spec.kind === 'remote') return
    const own = spec.kind === 'local' && leadsToItself(this.#fleet.endpoint(host), spec) ? spec.to.port : undefined
    if (own === spec.listen.port && spec.isExact)
      throw new MusterError(
        'usage',
        `${formatSocketAddress(spec.listen)} would lead to itself: ${host} is this machine`,
        {
          hint: OTHER_PORT,
        },
      )
    this.#server = await listenNear(spec.listen, spec.isExact, own, (socket) => this.#take(socket))
    // Such as too many open files: those that wait are taken when there is room.
    this.#server.on('error', (error) => this.#trouble(messageOf(error)))
    const { port } = this.#server.address() as { readonly port: number }
    this.#listen = { ...spec.listen, port }
  }

  /** Takes over what the fleet says about the host. */
  follow(): void {
    const { host, spec } = this.request
    const session = this.#fleet.session(host)
    const connection = this.#fleet.connection(host)
    if (session.kind !== 'ready' || connection === undefined) return this.#lose(session)
    if (this.#served === connection) return
    this.#served = connection
    if (spec.kind !== 'remote') return this.#serve()
    connection
      .listenTcp(spec.listen.address, spec.listen.port, (stream) => this.#takeFromHost(stream, spec.to))
      .then(
        (listener) => {
          if (this.#isClosed || this.#served !== connection) return listener.close()
          this.#hostListener = listener
          this.#listen = { ...spec.listen, port: listener.port }
          this.#serve()
        },
        (error: unknown) => {
          if (this.#isClosed || this.#served !== connection) return
          const reason = withHint(failureOf(error, 'configuration', 'shell'))
          this.#state = { kind: 'refused', reason }
          this.#emit({ type: 'refused', forward: this.now(), reason })
        },
      )
  }

  [Symbol.dispose](): void {
    this.#isClosed = true
    this.#server?.close()
    this.#hostListener?.close()
    this.#hangUp()
  }

  #serve(): void {
    this.#state = { kind: 'open' }
    this.#lastTrouble = undefined
    this.#emit({ type: 'served', forward: this.now() })
    const { title, spec, host } = this.request
    // Where a dashboard is only guessed, it is told at once that none is there.
    if (title === undefined || spec.kind !== 'local') return
    const probe = this.#fleet.connection(host)?.connectTcp(spec.to.address, spec.to.port)
    probe?.then(
      (stream) => {
        stream.on('error', () => {})
        stream.destroy()
      },
      (error: unknown) => this.#trouble(withHint(failureOf(error, 'unreachable', 'shell'))),
    )
  }

  #lose(session: SessionState): void {
    const wasServed = this.#served !== undefined
    this.#served = undefined
    // What it has on this machine does not end with the connection.
    this.#hostListener?.close()
    this.#hostListener = undefined
    const reason = reasonOf(session)
    this.#state = { kind: 'waiting', reason }
    if (!wasServed) return
    this.#hangUp()
    // Who closes a host knows it.
    if (session.kind === 'closed') return
    this.#emit({ type: 'lost', forward: this.now(), reason })
  }

  #hangUp(): void {
    for (const socket of this.#sockets) socket.destroy()
  }

  #trouble(reason: string): void {
    const text = printable(reason)
    if (this.#isClosed || text === this.#lastTrouble) return
    this.#lastTrouble = text
    this.#emit({ type: 'trouble', forward: this.now(), reason: text })
  }

  /** False: there are too many already. */
  #add(socket: Socket): boolean {
    // What breaks is told by the stream on the other side, or was ended by the program here.
    socket.on('error', () => {})
    if (this.#isClosed || this.#sockets.size >= MOST_CONNECTIONS) {
      if (!this.#isClosed) this.#trouble(`more than ${MOST_CONNECTIONS} connections at once`)
      socket.destroy()
      return false
    }
    this.#sockets.add(socket)
    this.#count += 1
    socket.once('close', () => {
      this.#sockets.delete(socket)
      this.#sentBytes += socket.bytesRead
      this.#receivedBytes += socket.bytesWritten
    })
    return true
  }

  #take(socket: Socket): void {
    if (!this.#add(socket)) return
    const { spec } = this.request
    if (spec.kind === 'dynamic') void this.#takeSocks(socket)
    else if (spec.kind === 'local') void this.#pass(socket, spec.to).catch(() => socket.resetAndDestroy())
  }

  /** Rejects, and reports it, when the address cannot be reached. */
  async #pass(socket: Socket, to: SocketAddress, onOpen = () => {}): Promise<void> {
    const connection = this.#fleet.connection(this.request.host)
    if (connection === undefined) throw new Error('the host is not connected')
    const stream = await connection.connectTcp(to.address, to.port).catch((error: unknown) => {
      this.#trouble(withHint(failureOf(error, 'unreachable', 'shell')))
      throw error
    })
    this.#lastTrouble = undefined
    onOpen()
    this.#join(socket, stream)
  }

  async #takeSocks(socket: Socket): Promise<void> {
    using _limit = this.#clock.after(SOCKS_LIMIT_MS, () => socket.destroy())
    try {
      const incoming = new Incoming(socket)
      await incoming.read(readGreeting)
      socket.write(METHOD_CHOSEN)
      const to = await incoming.read(readRequest)
      incoming.leave()
      await this.#pass(socket, to, () => socket.write(socksReply('succeeded')))
    } catch (error) {
      const answer = error instanceof Refused ? error.answer : socksReply(socksReplyFor(error))
      socket.end(answer, () => socket.destroy())
      // What it still sends is of no use.
      socket.resume()
    }
  }

  /** A connection that arrived at the port of the host: to where was asked for, and nowhere else. */
  #takeFromHost(stream: Duplex, to: SocketAddress): void {
    stream.on('error', () => {})
    if (this.#isClosed || this.#sockets.size >= MOST_CONNECTIONS) return void stream.destroy()
    const socket = connect({ host: to.address, port: to.port, allowHalfOpen: true, noDelay: true })
    socket.once('error', (error) => {
      if (socket.bytesRead === 0)
        this.#trouble(`cannot reach ${formatSocketAddress(to)} from here: ${describeSocketError(error).reason}`)
    })
    if (!this.#add(socket)) return void stream.destroy()
    socket.once('connect', () => {
      this.#lastTrouble = undefined
    })
    this.#join(socket, stream)
  }

  #join(socket: Socket, stream: Duplex): void {
    if (socket.destroyed) {
      stream.on('error', () => {})
      stream.destroy()
      return
    }
    joinStreams(socket, stream, (error) => {
      // Such as what the system's ssh prints after it has started.
      if (!(error as NodeJS.ErrnoException).code && socket.bytesWritten === 0) this.#trouble(messageOf(error))
    })
  }
}

class Refused extends Error {
  readonly answer: Uint8Array

  constructor(answer: Uint8Array) {
    super('refused')
    this.answer = answer
  }
}

/** What a client of SOCKS sends before its own bytes; at most `MOST_SOCKS_BYTES` are kept. */
class Incoming {
  readonly #socket: Socket
  #bytes = Buffer.alloc(0)

  constructor(socket: Socket) {
    this.#socket = socket
  }

  async read<T>(reader: (bytes: Uint8Array) => SocksRead<T>): Promise<T> {
    for (;;) {
      const read = reader(this.#bytes)
      if (read.kind === 'refused') throw new Refused(read.answer)
      if (read.kind === 'read') {
        this.#bytes = this.#bytes.subarray(read.usedBytes)
        return read.value
      }
      const more = (this.#socket.read() as Buffer | null) ?? undefined
      if (more !== undefined) this.#bytes = Buffer.concat([this.#bytes, more])
      else if (this.#socket.readableEnded || this.#socket.destroyed) throw new Refused(new Uint8Array())
      else await readableOrOver(this.#socket)
      if (reader(this.#bytes).kind === 'more' && this.#bytes.length > MOST_SOCKS_BYTES)
        throw new Refused(new Uint8Array())
    }
  }

  /** The rest is the client's own. */
  leave(): void {
    if (this.#bytes.length > 0) this.#socket.unshift(this.#bytes)
  }
}

function readableOrOver(socket: Socket): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      for (const event of ['readable', 'end', 'close']) socket.off(event, done)
      resolve()
    }
    for (const event of ['readable', 'end', 'close']) socket.on(event, done)
  })
}

function socksReplyFor(error: unknown): SocksReply {
  const { kind, reason } = failureOf(error, 'unreachable', 'shell')
  if (kind === 'configuration') return 'notAllowed'
  return /refused/i.test(reason) ? 'refused' : 'hostUnreachable'
}

const OTHER_PORT = 'Choose another local port, such as -L 9000:localhost:80 or 9000:80.'

/** Not on `avoided`. @throws MusterError when no port can be had */
async function listenNear(
  { address, port }: SocketAddress,
  isExact: boolean,
  avoided: number | undefined,
  onSocket: (socket: Socket) => void,
): Promise<Server> {
  const last = isExact ? port : Math.min(65_535, Math.max(port, FIRST_FREE_PORT) + PORTS_TRIED)
  for (let tried = port === avoided ? port + 1 : port; ; ) {
    const server = createServer({ allowHalfOpen: true, noDelay: true }, onSocket)
    server.listen({ host: address, port: tried, exclusive: true })
    try {
      await once(server, 'listening')
      return server
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException
      const after = code === 'EACCES' ? Math.max(tried + 1, FIRST_FREE_PORT) : tried + 1
      const next = after === avoided ? after + 1 : after
      if (next <= last && (code === 'EACCES' || code === 'EADDRINUSE')) {
        tried = next
        continue
      }
      throw new MusterError(
        'usage',
        `cannot listen on ${formatSocketAddress({ address, port: tried })} here: ${listenProblem(error)}`,
        { hint: OTHER_PORT, cause: error },
      )
    }
  }
}

function listenProblem(error: unknown): string {
  const { code } = error as NodeJS.ErrnoException
  if (code === 'EADDRINUSE') return 'the port is in use'
  if (code === 'EACCES') return 'ports below 1024 need root'
  if (code === 'EADDRNOTAVAIL') return 'this machine does not have the address'
  return printable(messageOf(error))
}

function reasonOf(session: SessionState): string {
  switch (session.kind) {
    case 'lost':
    case 'waiting':
      return printable(session.reason)
    case 'failed':
      return withHint(session.failure)
    case 'closed':
      return 'it was closed'
    default:
      return 'not connected'
  }
}
