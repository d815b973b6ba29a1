/**
 * One embedded host: a listening socket, an SSH server behind it, and the faults that come between them. It owns its
 * connections and children and ends them all; it must not touch another host.
 */
import { appendFile } from 'node:fs/promises'
import { createServer, type Server as NetServer, type Socket } from 'node:net'
import ssh2, { type ParsedKey, type ServerChannel } from 'ssh2'
import type { PtySpawner } from '../../base/pty.ts'
import { ChildProcesses } from './child-processes.ts'
import { generateEd25519KeyPair } from './ed25519-key-pair.ts'
import type { EmbeddedAuthentication, EmbeddedFaults, EmbeddedHost } from './embedded-hosts.ts'
import { type ServeContext, serveConnection } from './serve-connection.ts'
import { Tap } from './tap.ts'
import type { HostHome } from './write-host-home.ts'

const ADDRESS = '127.0.0.1'
/** Between the hang-up and the kill. */
const GRACE_MS = 1_000
const SOFTWARE = 'muster_demo'

export type EmbeddedHostSetup = {
  readonly name: string
  readonly spawnPty: PtySpawner
  readonly authentications: readonly EmbeddedAuthentication[]
  readonly password: string | undefined
  readonly clientKey: ParsedKey
  readonly environment: (home: HostHome) => Readonly<Record<string, string>>
  readonly portOf: (name: string) => number | undefined
}

export class RunningHost implements EmbeddedHost {
  readonly name: string
  readonly address = ADDRESS
  readonly #setup: EmbeddedHostSetup
  readonly #taps = new Set<Tap>()
  /** Sockets whose client has not said its first line, by the client's port. */
  readonly #unserved = new Map<number, Socket>()
  readonly #children = new ChildProcesses()
  readonly #unread = new Set<ServerChannel>()
  #home: HostHome | undefined
  #listener: NetServer | undefined
  #port = 0
  #ssh: ssh2.Server
  #publicKeyLine: string
  #faults: EmbeddedFaults = {}
  #isStalled = false
  #acceptedCount = 0

  constructor(setup: EmbeddedHostSetup) {
    this.name = setup.name
    this.#setup = setup
    const { server, publicKeyLine } = this.#newServer()
    this.#ssh = server
    this.#publicKeyLine = publicKeyLine
  }

  get port(): number {
    return this.#port
  }

  get publicKeyLine(): string {
    return this.#publicKeyLine
  }

  get connectionCount(): number {
    return this.#taps.size
  }

  get acceptedCount(): number {
    return this.#acceptedCount
  }

  /** Where its shells live; before the first connection. */
  moveIn(home: HostHome): void {
    this.#home = home
  }

  setFaults(faults: EmbeddedFaults): void {
    this.#faults = faults
    for (const channel of this.#unread) {
      if (faults.stopsReading === true) channel.pause()
      else channel.resume()
    }
  }

  dropConnections(): void {
    for (const tap of this.#taps) tap.socket.destroy()
  }

  stall(): void {
    this.#isStalled = true
    for (const tap of this.#taps) tap.hold()
  }

  unstall(): void {
    this.#isStalled = false
    for (const tap of this.#taps) {
      if (!tap.isServed) this.#serve(tap)
      tap.letGo()
    }
  }

  changeHostKey(): void {
    const { server, publicKeyLine } = this.#newServer()
    this.#ssh = server
    this.#publicKeyLine = publicKeyLine
  }

  async start(): Promise<void> {
    if (this.#listener !== undefined) return
    const listener = createServer((socket) => this.#accept(socket))
    await new Promise<void>((resolve, reject) => {
      listener.once('error', reject)
      listener.listen(this.#port, ADDRESS, resolve)
    })
    this.#listener = listener
    const address = listener.address()
    if (address !== null && typeof address === 'object') this.#port = address.port
  }

  async stop(): Promise<void> {
    const listener = this.#listener
    this.#listener = undefined
    this.dropConnections()
    if (listener !== undefined) await new Promise<void>((resolve) => listener.close(() => resolve()))
  }

  /** Like `stop`, and ends every program. */
  async close(): Promise<void> {
    await this.stop()
    await this.#children.end(GRACE_MS)
  }

  /** The last moment of the process: nothing can be waited for. */
  killChildren(): void {
    this.#children.signalAll('SIGKILL')
  }

  #newServer(): { server: ssh2.Server; publicKeyLine: string } {
    const key = generateEd25519KeyPair(this.name)
    const server = new ssh2.Server({ hostKeys: [key.privateKeyText], ident: SOFTWARE })
    // It comes when the client's first line was read, and names the socket by the client's port only.
    server.on('connection', (client, { port }) => {
      const socket = this.#unserved.get(port)
      if (socket === undefined) client.end()
      else serveConnection(client, socket, this.#context())
    })
    return { server, publicKeyLine: key.publicKeyLine }
  }

  #accept(socket: Socket): void {
    this.#acceptedCount += 1
    socket.setNoDelay(true)
    const tap = new Tap(socket)
    this.#taps.add(tap)
    // Every shell of the connection listens for its own.
    socket.setMaxListeners(0)
    socket.on('error', () => {})
    socket.once('close', () => this.#taps.delete(tap))
    if (this.#isStalled) tap.hold()
    else this.#serve(tap)
  }

  #serve(tap: Tap): void {
    const { socket } = tap
    tap.isServed = true
    switch (this.#faults.connects) {
      case 'drop':
        socket.destroy()
        return
      case 'silent':
        socket.resume()
        return
      case 'banner-only':
        socket.resume()
        socket.write(`SSH-2.0-${SOFTWARE}\r\n`)
        return
      case undefined: {
        if (this.#faults.closesAfterBytes !== undefined) tap.cutAfter(this.#faults.closesAfterBytes)
        const { remotePort } = socket
        if (remotePort === undefined) return
        this.#unserved.set(remotePort, socket)
        socket.once('close', () => this.#unserved.delete(remotePort))
        this.#ssh.injectSocket(socket)
      }
    }
  }

  #context(): ServeContext {
    const home = this.#home
    if (home === undefined) throw new Error(`The embedded host ${this.name} has no home yet.`)
    return {
      name: this.name,
      home,
      environment: this.#setup.environment(home),
      spawnPty: this.#setup.spawnPty,
      authentications: this.#setup.authentications,
      password: this.#setup.password,
      clientKey: this.#setup.clientKey,
      faults: () => this.#faults,
      portOf: this.#setup.portOf,
      // The log is a convenience: the host also works when its home is gone.
      log: (line) => void appendFile(home.logFile, `${new Date().toISOString()} ${line}\n`).catch(() => {}),
      children: this.#children,
      unread: this.#unread,
    }
  }
}
