/** Transports that use one login a host. A lost connection is made again when needed, another login where sessions run out. */

import type { Clock } from '../base/clock.ts'
import { getOrMake } from '../base/collections.ts'
import type { Endpoint } from '../inventory/host.ts'
import { ConnectGate, inTurn } from './connect-gate.ts'
import { type ConnectContext, ConnectError, type Connection, type Transport, type Transports } from './transport.ts'

export type ShareOptions = {
  readonly clock: Clock
  /** Logins at once. */
  readonly fanOut: number
  /** Ends logins that are still on their way: a single user of one cannot, as others may wait for it. */
  readonly signal: AbortSignal
}

export type SharedTransports = Disposable & { readonly transports: Transports }

/** Where the server allows few sessions on a connection, what stays open has connections of its own: so many a host. */
const MOST_LOGINS = 4

export function shareConnections(transports: Transports, options: ShareOptions): SharedTransports {
  const gate = new ConnectGate(options.fanOut)
  const shared = new Map<string, HostConnections>()
  const share = (transport: Transport): Transport => ({
    async connect(endpoint, context) {
      const key = `${endpoint.transport} ${endpoint.host}`
      const own = getOrMake(shared, key, () => new HostConnections())
      return await own.use((onLost) => login(transport, endpoint, context, gate, options, onLost))
    },
  })
  const entries = Object.entries(transports).map(([name, transport]) => [name, share(transport)])
  return {
    transports: Object.fromEntries(entries) as Transports,
    [Symbol.dispose]() {
      for (const own of shared.values()) own[Symbol.dispose]()
      shared.clear()
    },
  }
}

type Login = (onLost: () => void) => Promise<Connection>

/** One connection for everything of a host, and further ones where that is full. */
class HostConnections implements Disposable {
  readonly #logins: (Promise<Connection> | undefined)[] = []
  /** The first that had room for a command that ends by itself. */
  #at = 0

  async use(login: Login): Promise<Connection> {
    const at = this.#at
    const first = await this.#connection(at, login)
    return {
      openShell: (...args) => first.openShell(...args),
      close() {},
      connectSocket: (path) => first.connectSocket(path),
      connectTcp: (address, port) => first.connectTcp(address, port),
      listenTcp: (address, port, onStream) => first.listenTcp(address, port, onStream),
      exec: async (command, handlers, options = {}) => {
        const { isLasting = false, waitsForRoom = true } = options
        for (let index = isLasting ? 0 : at; ; index += 1) {
          const connection = index === at ? first : await this.#connection(index, login)
          try {
            return await connection.exec(command, handlers, options)
          } catch (error) {
            if (!isFull(error) || !waitsForRoom || index === MOST_LOGINS - 1) throw error
            if (!isLasting) this.#at = Math.max(this.#at, index + 1)
          }
        }
      },
    }
  }

  [Symbol.dispose](): void {
    for (const made of this.#logins.splice(0)) {
      made?.then(
        (connection) => connection.close(),
        () => {},
      )
    }
  }

  #connection(index: number, login: Login): Promise<Connection> {
    let made = this.#logins[index]
    if (made === undefined) {
      const forget = () => {
        if (this.#logins[index] === made) this.#logins[index] = undefined
      }
      made = login(forget)
      this.#logins[index] = made
      // The next request retries a failed login.
      made.catch(forget)
    }
    return made
  }
}

function isFull(error: unknown): boolean {
  return error instanceof ConnectError && error.failure.isFull === true
}

function login(
  transport: Transport,
  endpoint: Endpoint,
  context: ConnectContext,
  gate: ConnectGate,
  { clock, signal }: ShareOptions,
  onLost: () => void,
): Promise<Connection> {
  return inTurn(gate, context, clock, (askers) =>
    transport.connect(endpoint, { ...askers, signal, onPhase: () => {}, onLost }),
  )
}
