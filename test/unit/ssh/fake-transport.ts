/** A transport without a network: a test decides what each host does, and sees what it received. */
import type { Duplex } from 'node:stream'
import type { Endpoint } from '../../../src/inventory/host.ts'
import {
  type ConnectContext,
  ConnectError,
  type ConnectFailure,
  type Connection,
  type HostListener,
  type Shell,
  type ShellHandlers,
  type ShellOptions,
  type ShellSize,
  type Transport,
} from '../../../src/ssh/transport.ts'
import { endpointOf as anyEndpoint } from '../../support/endpoint.ts'

export function endpointOf(host: string, number = 1): Endpoint {
  return anyEndpoint(host, {
    number,
    address: `${host}.invalid`,
    strictHostKeyChecking: 'yes',
    authentications: ['publickey'],
  })
}

export class FakeShell implements Shell {
  readonly options: ShellOptions
  readonly handlers: ShellHandlers
  readonly written: Uint8Array[] = []
  readonly sizes: ShellSize[] = []
  hasRoom = true
  isPaused = false
  isClosed = false

  constructor(options: ShellOptions, handlers: ShellHandlers) {
    this.options = options
    this.handlers = handlers
  }

  /** What was written, as text. */
  get text(): string {
    return Buffer.concat(this.written).toString()
  }

  write(bytes: Uint8Array): boolean {
    this.written.push(bytes)
    return this.hasRoom
  }

  resize(size: ShellSize): void {
    this.sizes.push(size)
  }

  pause(): void {
    this.isPaused = true
  }

  resume(): void {
    this.isPaused = false
  }

  close(): void {
    this.isClosed = true
  }

  drain(): void {
    this.hasRoom = true
    this.handlers.onDrain()
  }
}

export class FakeConnection implements Connection {
  readonly shells: FakeShell[] = []
  readonly context: ConnectContext
  isClosed = false
  shellRefusal: string | undefined

  constructor(context: ConnectContext) {
    this.context = context
  }

  async openShell(options: ShellOptions, handlers: ShellHandlers): Promise<Shell> {
    if (this.shellRefusal !== undefined) throw new Error(this.shellRefusal)
    const shell = new FakeShell(options, handlers)
    this.shells.push(shell)
    return shell
  }

  exec(): never {
    throw new Error('The fake transport runs no commands.')
  }

  connectTcp(): Promise<Duplex> {
    return Promise.reject(new Error('The fake transport has no network.'))
  }

  listenTcp(): Promise<HostListener> {
    return Promise.reject(new Error('The fake transport has no network.'))
  }

  connectSocket(): never {
    throw new Error('The fake transport has no sockets.')
  }

  close(): void {
    this.isClosed = true
  }
}

type Attempt = {
  readonly host: string
  readonly context: ConnectContext
  succeed(): FakeConnection
  fail(failure: ConnectFailure): void
}

export class FakeTransport implements Transport {
  /** Every attempt so far, in order. */
  readonly attempts: Attempt[] = []
  readonly connections = new Map<string, FakeConnection>()
  /** Hosts connect at once unless a test wants to decide. */
  answersAtOnce = true
  onAttempt: ((attempt: Attempt) => void) | undefined

  connect(endpoint: Endpoint, context: ConnectContext): Promise<Connection> {
    const { host } = endpoint
    return new Promise((resolve, reject) => {
      const attempt: Attempt = {
        host,
        context,
        succeed: () => {
          const connection = new FakeConnection(context)
          this.connections.set(host, connection)
          resolve(connection)
          return connection
        },
        fail: (failure) => reject(new ConnectError(failure)),
      }
      context.signal.addEventListener('abort', () => reject(new Error('aborted')))
      this.attempts.push(attempt)
      if (this.onAttempt !== undefined) this.onAttempt(attempt)
      else if (this.answersAtOnce) attempt.succeed()
    })
  }

  /** The newest shell of a host. */
  shell(host: string): FakeShell {
    const shell = this.connections.get(host)?.shells.at(-1)
    if (shell === undefined) throw new Error(`${host} has no shell`)
    return shell
  }
}
