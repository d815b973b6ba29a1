/** One embedded host: a listening socket and an SSH server behind it. It owns its connections and children, and ends them all. */
import { once } from 'node:events'
import { appendFile } from 'node:fs/promises'
import { createServer, type Server as NetServer, type Socket } from 'node:net'
import ssh2 from 'ssh2'
import { generateEd25519KeyPair } from './ed25519-key-pair.ts'
import { ChildProcesses, type ServeContext, serveConnection } from './serve-connection.ts'
import type { HostHome } from './write-host-home.ts'

const ADDRESS = '127.0.0.1'
const GRACE_MS = 1_000
const SOFTWARE = 'muster_demo'

type Setup = Pick<ServeContext, 'name' | 'spawnPty' | 'authentications' | 'password' | 'clientKey' | 'portOf'> & {
  environment(home: HostHome): Readonly<Record<string, string>>
}

export class EmbeddedHost {
  readonly name: string
  readonly address = ADDRESS
  readonly publicKeyLine: string
  readonly #setup: Setup
  readonly #ssh: ssh2.Server
  readonly #sockets = new Set<Socket>()
  readonly #children = new ChildProcesses()
  #home: HostHome | undefined
  #listener: NetServer | undefined
  #port = 0
  #acceptedCount = 0

  constructor(setup: Setup) {
    this.name = setup.name
    this.#setup = setup
    const key = generateEd25519KeyPair(this.name)
    this.publicKeyLine = key.publicKeyLine
    this.#ssh = new ssh2.Server({ hostKeys: [key.privateKeyText], ident: SOFTWARE })
    // It comes when the client's first line was read, and names the socket by the client's port only.
    this.#ssh.on('connection', (client, { port }) => {
      const socket = [...this.#sockets].find(({ remotePort }) => remotePort === port)
      if (socket === undefined) client.end()
      else serveConnection(client, socket, this.#context())
    })
  }

  /** Stays the same over `stop` and `start`. */
  get port(): number {
    return this.#port
  }

  get connectionCount(): number {
    return this.#sockets.size
  }

  get acceptedCount(): number {
    return this.#acceptedCount
  }

  /** Where its shells live; before the first connection. */
  setHome(home: HostHome): void {
    this.#home = home
  }

  /** As a crash of the host would. */
  dropConnections(): void {
    for (const socket of this.#sockets) socket.destroy()
  }

  async start(): Promise<void> {
    if (this.#listener !== undefined) return
    const listener = createServer((socket) => this.#accept(socket))
    listener.on('error', () => {})
    await once(listener.listen(this.#port, ADDRESS), 'listening')
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

  async close(): Promise<void> {
    await this.stop()
    await this.#children.end(GRACE_MS)
  }

  /** The last moment of the process: nothing can be waited for. */
  killChildren(): void {
    this.#children.signalAll('SIGKILL')
  }

  #accept(socket: Socket): void {
    this.#acceptedCount += 1
    socket.setNoDelay(true)
    this.#sockets.add(socket)
    // Every shell of the connection listens for its own.
    socket.setMaxListeners(0)
    socket.on('error', () => {})
    socket.once('close', () => this.#sockets.delete(socket))
    this.#ssh.injectSocket(socket)
  }

  #context(): ServeContext {
    const home = this.#home
    if (home === undefined) throw new Error(`The embedded host ${this.name} has no home yet.`)
    return {
      ...this.#setup,
      home,
      environment: this.#setup.environment(home),
      // The log is a convenience: the host also works when its home is gone.
      log: (line) => void appendFile(home.logFile, `${new Date().toISOString()} ${line}\n`).catch(() => {}),
      children: this.#children,
    }
  }
}
