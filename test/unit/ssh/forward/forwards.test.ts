import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { afterEach, describe, expect, it } from 'vitest'
import { connectTcp } from '../../../../src/base/connect-stream.ts'
import { DisposableStore } from '../../../../src/base/disposable.ts'
import { Emitter } from '../../../../src/base/emitter.ts'
import type { FleetEvent } from '../../../../src/ssh/create-fleet.ts'
import { parseLocalForward, parsePlainForward, parseRemoteForward } from '../../../../src/ssh/forward/forward-spec.ts'
import { type Forward, type ForwardEvent, type ForwardRequest, Forwards } from '../../../../src/ssh/forward/forwards.ts'
import type { SessionState } from '../../../../src/ssh/session-transition.ts'
import type { Connection } from '../../../../src/ssh/transport.ts'
import { endpointOf } from '../../../support/endpoint.ts'
import { waitUntil } from '../../../support/wait-until.ts'
import { ManualClock } from '../manual-clock.ts'

const READY: SessionState = { kind: 'ready', attempt: 1, sinceMs: 0 }
const LOST: SessionState = { kind: 'waiting', attempt: 1, retryAtMs: 0, reason: 'the cable was cut' }

/** One host, m1, whose network is this machine's loopback. */
class World implements Disposable {
  readonly clock = new ManualClock()
  readonly events: string[] = []
  readonly asked: string[] = []
  address = '192.0.2.1'
  /** Arrives at a port of the host. */
  arrive: ((stream: Duplex) => void) | undefined
  readonly #owned = new DisposableStore()
  readonly #fleet = new Emitter<FleetEvent>()
  #session: SessionState = { kind: 'idle' }
  #connection: Connection | undefined
  readonly forwards = this.#owned.own(
    new Forwards(
      {
        connection: () => this.#connection,
        endpoint: (host) => endpointOf(host, { address: this.address }),
        session: () => this.#session,
        on: (listener) => this.#fleet.on(listener),
      },
      this.clock,
    ),
  )

  constructor() {
    this.forwards.on((event) => this.events.push(wordsOf(event)))
  }

  connect(): void {
    this.#connection = {
      connectTcp: (host: string, port: number) => {
        this.asked.push(`${host}:${port}`)
        return connectTcp({ host: '127.0.0.1', port })
      },
      listenTcp: async (address: string, port: number, onStream: (stream: Duplex) => void) => {
        this.asked.push(`listen ${address}:${port}`)
        this.arrive = onStream
        return { port: port === 0 ? 4321 : port, close: () => this.asked.push('closed') }
      },
    } as unknown as Connection
    this.#become(READY)
  }

  async open(request: ForwardRequest): Promise<Forward> {
    const [opened] = await this.forwards.open([request])
    return opened as Forward
  }

  lose(): void {
    this.#connection = undefined
    this.#become(LOST)
  }

  async server(onSocket: (socket: Socket) => void): Promise<number> {
    const server: Server = createServer({ allowHalfOpen: true }, (socket) => {
      socket.on('error', () => {})
      this.#owned.defer(() => socket.destroy())
      onSocket(socket)
    })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    this.#owned.defer(() => server.close())
    return (server.address() as AddressInfo).port
  }

  client(port: number): Socket {
    const socket = connect({ host: '127.0.0.1', port, allowHalfOpen: true })
    socket.on('error', () => {})
    this.#owned.defer(() => socket.destroy())
    return socket
  }

  #become(state: SessionState): void {
    this.#session = state
    this.#fleet.emit({ type: 'session', host: 'm1', state })
  }

  [Symbol.dispose](): void {
    this.#owned[Symbol.dispose]()
  }
}

const wordsOf = (event: ForwardEvent): string => ('reason' in event ? `${event.type}: ${event.reason}` : event.type)

async function textOf(socket: Socket): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of socket) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks).toString('latin1')
}

/** However the other side ended it. */
function over(socket: Socket): Promise<'over'> {
  return new Promise((resolve) => {
    for (const event of ['end', 'close']) socket.once(event, () => resolve('over'))
    socket.resume()
  })
}

async function firstOf(socket: Socket): Promise<string> {
  const [bytes] = await once(socket, 'data').catch(() => ['broken'])
  return String(bytes)
}

const echo = (socket: Socket): unknown => socket.pipe(socket)

describe('forwards', () => {
  let world: World
  afterEach(() => world[Symbol.dispose]())

  it('takes the next free port unless one was named exactly, and counts what passes', async () => {
    world = new World()
    world.connect()
    const port = await world.server(echo)
    const opened = await world.open({ host: 'm1', spec: parsePlainForward(`${port}:${port}`) })
    expect(opened.listen.port).toBeGreaterThan(port)
    const exact = parseLocalForward(`${port}:localhost:${port}`)
    await expect(world.open({ host: 'm1', spec: exact })).rejects.toThrow(/127\.0\.0\.1:\d+ here: the port is in use/)
    const client = world.client(opened.listen.port)
    client.end('hello')
    expect(await textOf(client)).toBe('hello')
    await waitUntil(() => world.forwards.list()[0]?.connections === 0, 'the end of the connection')
    expect(world.forwards.list()).toMatchObject([{ allConnections: 1, sentBytes: 5, receivedBytes: 5 }])
    expect(world.asked).toEqual([`localhost:${port}`])
  })

  it('opens none of several if one cannot be had', async () => {
    world = new World()
    const port = await world.server(echo)
    const request = (text: string) => ({ host: 'm1', spec: parseLocalForward(text) })
    const { listen } = await world.open({ host: 'm1', spec: parsePlainForward(`${port}:80`) })
    world.forwards.close(1)
    const free = request(`${listen.port}:db:80`)
    await expect(world.forwards.open([free, request(`${port}:db:80`)])).rejects.toThrow('the port is in use')
    expect(world.forwards.list()).toEqual([])
    expect(world.events).toEqual(['opened', 'closed'])
    expect((await world.open(free)).listen).toEqual(listen)
  })

  it('ends connections with the host, says so once, and serves again', async () => {
    world = new World()
    const port = await world.server(echo)
    const { id, listen } = await world.open({ host: 'm1', spec: parsePlainForward(`${port}:${port}`) })
    await over(world.client(listen.port))
    world.connect()
    const client = world.client(listen.port)
    client.write('hello')
    await once(client, 'data')
    world.lose()
    await over(client)
    world.connect()
    const again = world.client(listen.port)
    again.write('hello')
    await once(again, 'data')
    expect(world.events).toEqual(['opened', 'served', 'lost: the cable was cut', 'served'])
    world.forwards.close(id)
    await over(again)
    expect(world.forwards.list()).toEqual([])
  })

  it('leads connections that arrive at a host only to what was asked for, and not too many', async () => {
    world = new World()
    const port = await world.server((socket) => socket.write('here'))
    await world.open({ host: 'm1', spec: parseRemoteForward(`0:127.0.0.1:${port}`) })
    expect(world.asked).toEqual([])
    world.connect()
    await waitUntil(() => world.events.includes('served'), 'the host to listen')
    expect(world.forwards.list()).toMatchObject([{ listen: { address: 'localhost', port: 4321 } }])
    const relay = await world.server((socket) => world.arrive?.(socket))
    const clients = Array.from({ length: 130 }, () => world.client(relay))
    const firsts = await Promise.all(clients.map((client) => Promise.race([firstOf(client), over(client)])))
    expect(firsts.filter((first) => first === 'here')).toHaveLength(128)
    world.lose()
    expect(world.asked).toEqual(['listen localhost:0', 'closed'])
    world.connect()
    await waitUntil(() => world.events.filter((words) => words === 'served').length === 2, 'the host to listen again')
    world.forwards.close(1)
    expect(world.asked).toEqual(['listen localhost:0', 'closed', 'listen localhost:0', 'closed'])
  })

  it('is a SOCKS proxy that passes names on and hangs up on silence', async () => {
    world = new World()
    world.connect()
    const port = await world.server(echo)
    const { listen } = await world.open({
      host: 'm1',
      spec: { kind: 'dynamic', listen: { address: '127.0.0.1', port }, isExact: false },
    })
    const socks = (to: number, ...name: readonly string[]) =>
      Buffer.concat([
        Buffer.from([5, 1, 0, 5, 1, 0, 3, name.join('').length]),
        Buffer.from(name.join('')),
        Buffer.from([to >> 8, to & 255]),
      ])
    const client = world.client(listen.port)
    // All in one piece, with the client's first own bytes.
    client.end(Buffer.concat([socks(port, 'db.internal'), Buffer.from('hello')]))
    expect(await textOf(client)).toBe('\x05\x00\x05\x00\x00\x01\x00\x00\x00\x00\x00\x00hello')
    expect(world.asked).toEqual([`db.internal:${port}`])
    const refused = world.client(listen.port)
    refused.write(socks(port, 'a b'))
    expect(await textOf(refused)).toBe('\x05\x00\x05\x08\x00\x01\x00\x00\x00\x00\x00\x00')
    const silent = world.client(listen.port)
    silent.write(Buffer.from([5, 1]))
    await waitUntil(() => world.clock.timerCount === 1, 'the proxy to wait')
    world.clock.advance(30_000)
    await over(silent)
    expect(world.asked).toHaveLength(1)
  })

  it('does not listen on the port that it leads to where the host is this machine', async () => {
    using world = new World()
    world.address = '127.0.0.1'
    const free = await world.server(() => {})
    const port = free + 1
    const opened = await world.open({ host: 'm1', spec: parsePlainForward(`${port}`) })
    expect(opened.listen.port).toBeGreaterThan(port)
    // The next port is in use, and the one after that would be its own.
    const next = await world.open({ host: 'm1', spec: parsePlainForward(`${free}:${port}`) })
    expect(next.listen.port).toBeGreaterThan(port)
    await expect(world.open({ host: 'm1', spec: parseLocalForward(`${port}:localhost:${port}`) })).rejects.toThrow(
      `127.0.0.1:${port} would lead to itself: m1 is this machine`,
    )
  })

  it('says once that nothing answers', async () => {
    world = new World()
    world.connect()
    // Nothing listens on port 1.
    const spec = parsePlainForward(`${await world.server(() => {})}:1`)
    const { listen } = await world.open({ host: 'm1', spec, title: 'Jupyter' })
    for (const _ of [1, 2]) await over(world.client(listen.port))
    expect(world.events.filter((words) => words.startsWith('trouble'))).toEqual([
      expect.stringContaining('ECONNREFUSED'),
    ])
  })
})
