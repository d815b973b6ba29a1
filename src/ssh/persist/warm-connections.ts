/** The connections that the keeper holds: which program uses which, and when an unused one ends. */

import { untilAborted } from '../../base/abort.ts'
import type { Clock } from '../../base/clock.ts'
import type { Endpoint } from '../../inventory/host.ts'
import { ConnectError, type Connection, type Transport } from '../transport.ts'
import type { WarmConnection, WarmName } from './messages.ts'

type WarmRequest = {
  readonly endpoint: Endpoint
  /** How long the connection outlives its last use. The latest request decides. */
  readonly persistMs: number
  readonly signal: AbortSignal
  /** Makes the connection; `onLost` is the transport's. */
  connect(onLost: (reason: string) => void, onBanner: (text: string) => void): Promise<Connection>
  /** No room is left: an unused connection was ended for this one, or there was none. */
  onCrowded(): void
  /** The connection went away while it was held. `isClosed`: from here, so that its channels say nothing any more. */
  onLost(reason: string, isClosed: boolean): void
}

/** Of connections that are there: it makes none, so it asks nothing. */
export type WarmTransport = Transport & { has(endpoint: Endpoint): boolean }

export interface Hold {
  readonly connection: Connection
  /** What the server printed before the login; empty: nothing. */
  readonly banner: string
  release(): void
}

type Warm = {
  readonly endpoint: Endpoint
  readonly connection: Connection
  readonly banner: string
  readonly sinceMs: number
  readonly users: Set<WarmRequest>
  persistMs: number
  endsAtMs: number
  timer: Disposable | undefined
}

/** No file is left for another connection, and all connections are in use. */
export class NoRoom extends ConnectError {
  constructor() {
    super({ kind: 'unreachable', phase: 'tcp', reason: 'the keeper is full', isFull: true })
  }
}

export class WarmConnections implements Disposable {
  readonly #clock: Clock
  readonly #onEmpty: () => void
  readonly #hasRoom: (connecting: number, closing: number) => boolean
  readonly #warm = new Map<string, Warm>()
  readonly #pending = new Map<string, Promise<unknown>>()

  /**
   * `hasRoom`: whether this process may open the files of one more connection beside those that are being made. Those that were
   * just closed may still hold theirs.
   */
  constructor(
    clock: Clock,
    onEmpty: () => void,
    hasRoom: (connecting: number, closing: number) => boolean = () => true,
  ) {
    this.#clock = clock
    this.#onEmpty = onEmpty
    this.#hasRoom = hasRoom
  }

  get isEmpty(): boolean {
    return this.#warm.size === 0 && this.#pending.size === 0
  }

  /** Where there is no room, ends the unused connections that would end first, as many as needed. @throws NoRoom */
  async acquire(request: WarmRequest): Promise<Hold> {
    const key = connectionKey(request.endpoint)
    for (;;) {
      const warm = this.#warm.get(key)
      if (warm !== undefined) return this.#hold(key, warm, request)
      const pending = this.#pending.get(key)
      if (pending === undefined) return this.#hold(key, await this.#make(key, request), request)
      await untilAborted(Promise.allSettled([pending]), request.signal)
      request.signal.throwIfAborted()
    }
  }

  /** `keptMs`: how long they outlive their use; undefined: as each endpoint says. */
  asTransport(keptMs?: number): WarmTransport {
    return {
      has: (endpoint) => this.#warm.has(connectionKey(endpoint)),
      connect: async (endpoint, { signal, onLost }) => {
        const { connection, release } = await this.acquire({
          ...{ endpoint, signal, onLost, persistMs: persistMsOf(endpoint, keptMs) },
          connect: () => Promise.reject(new ConnectError(LOST_BEFORE)),
          onCrowded: () => {},
        })
        return {
          openShell: (...shell) => connection.openShell(...shell),
          exec: (...command) => connection.exec(...command),
          connectSocket: (...socket) => connection.connectSocket(...socket),
          connectTcp: (...tcp) => connection.connectTcp(...tcp),
          listenTcp: (...tcp) => connection.listenTcp(...tcp),
          close: release,
        }
      },
    }
  }

  list(): WarmConnection[] {
    return [...this.#warm.values()].map(({ endpoint: { host, user, address, port }, sinceMs, users, endsAtMs }) => ({
      ...{ host, user, address, port, sinceMs },
      users: users.size,
      ...(users.size === 0 ? { endsAtMs } : {}),
    }))
  }

  /** Ends them, used or not; undefined: all. Returns those that it ended. */
  stop(names: readonly WarmName[] | undefined, reason: string): WarmConnection[] {
    const isMeant = ({ user, address, port }: WarmName) =>
      names === undefined || names.some((each) => each.user === user && each.address === address && each.port === port)
    const stopped = this.list().filter(isMeant)
    for (const [key, warm] of [...this.#warm]) {
      if (!isMeant(warm.endpoint)) continue
      warm.connection.close()
      this.#forget(key, warm, reason, true)
    }
    return stopped
  }

  [Symbol.dispose](): void {
    this.stop(undefined, 'the keeper of warm connections was stopped')
  }

  #makeRoom(request: WarmRequest): void {
    for (let closing = 0; !this.#hasRoom(this.#pending.size, closing); closing += 1) {
      request.onCrowded()
      const unused = [...this.#warm].filter(([, { users }]) => users.size === 0)
      const [first] = unused.sort(([, one], [, other]) => one.endsAtMs - other.endsAtMs)
      if (first === undefined) throw new NoRoom()
      const [key, warm] = first
      warm.connection.close()
      this.#forget(key, warm, 'it made room for another', true)
    }
  }

  async #make(key: string, request: WarmRequest): Promise<Warm> {
    this.#makeRoom(request)
    let lostEarly: string | undefined
    let warm: Warm | undefined
    let banner = ''
    const connecting = request.connect(
      (reason) => {
        if (warm === undefined) lostEarly = reason
        else this.#forget(key, warm, reason, false)
      },
      (text) => {
        banner = text
      },
    )
    this.#pending.set(key, connecting)
    try {
      const connection = await connecting
      warm = {
        endpoint: request.endpoint,
        connection,
        banner,
        sinceMs: this.#clock.now(),
        users: new Set([request]),
        persistMs: request.persistMs,
        endsAtMs: 0,
        timer: undefined,
      }
      if (lostEarly === undefined) this.#warm.set(key, warm)
      else queueMicrotask(() => request.onLost(lostEarly ?? '', false))
      return warm
    } finally {
      this.#pending.delete(key)
      if (warm === undefined) this.#tellWhenEmpty()
    }
  }

  #hold(key: string, warm: Warm, request: WarmRequest): Hold {
    warm.timer?.[Symbol.dispose]()
    warm.timer = undefined
    warm.users.add(request)
    warm.persistMs = request.persistMs
    return {
      connection: warm.connection,
      banner: warm.banner,
      release: () => {
        if (!warm.users.delete(request) || warm.users.size > 0 || this.#warm.get(key) !== warm) return
        warm.endsAtMs = this.#clock.now() + warm.persistMs
        warm.timer = this.#clock.after(warm.persistMs, () => {
          warm.connection.close()
          this.#forget(key, warm, 'unused', true)
        })
      },
    }
  }

  #forget(key: string, warm: Warm, reason: string, isClosed: boolean): void {
    if (this.#warm.get(key) !== warm) return
    this.#warm.delete(key)
    warm.timer?.[Symbol.dispose]()
    const users = [...warm.users]
    warm.users.clear()
    for (const user of users) user.onLost(reason, isClosed)
    this.#tellWhenEmpty()
  }

  #tellWhenEmpty(): void {
    if (this.isEmpty) this.#onEmpty()
  }
}

/** What a timer can wait for: 24 days. */
const LONGEST_MS = 2 ** 31 - 1
const LOST_BEFORE = { kind: 'unreachable', phase: 'tcp', reason: 'the kept connection was lost' } as const

/** How long a connection to it is kept after its last use, 0: not at all. `keptMs`: for all hosts, whatever their endpoints say. */
export function persistMsOf({ persistMs = 0 }: Endpoint, keptMs: number | undefined): number {
  return Math.min(keptMs ?? persistMs, LONGEST_MS)
}

/** Names and waiting times of the asker, and what goes with a shell instead of the connection. */
const IRRELEVANT: ReadonlySet<string> = new Set([
  'host',
  'number',
  'connectTimeoutMs',
  'persistMs',
  'environment',
  'passwordScope',
])

/** Equal for the same account of the same server by the same route, keys and checks. Fields that Endpoint gains later count. */
export function connectionKey(endpoint: Endpoint): string {
  return JSON.stringify(relevant(endpoint))
}

function relevant(endpoint: Endpoint): unknown {
  return Object.entries(endpoint)
    .filter(([name, value]) => !IRRELEVANT.has(name) && value !== undefined)
    .map(([name, value]) => [name, name === 'jump' ? endpoint.jump.map(relevant) : value] as const)
    .sort(([one], [other]) => (one < other ? -1 : 1))
}
