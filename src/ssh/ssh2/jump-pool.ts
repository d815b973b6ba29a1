/** Connections to jump hosts, one for all hosts behind the same chain of hops, closed when the last of these is gone. */
import type { Endpoint } from '../../inventory/host.ts'
import type { ConnectContext } from '../transport.ts'
import { untilAborted } from '../until-aborted.ts'
import type { Ssh2Connection } from './connection.ts'

/** Connects to a hop, itself maybe through other hops. */
export type ConnectHop = (hop: Endpoint, context: ConnectContext) => Promise<Ssh2Connection>

export type JumpLease = { readonly connection: Ssh2Connection; release(): void }

type Entry = {
  readonly connecting: Promise<Ssh2Connection>
  readonly abort: AbortController
  users: number
}

export class JumpPool {
  readonly #entries = new Map<string, Entry>()
  readonly #connectHop: ConnectHop

  constructor(connectHop: ConnectHop) {
    this.#connectHop = connectHop
  }

  /** `hop` carries the hops before it in its own `jump`. Rejects with the hop's ConnectError, or when aborted. */
  async acquire(hop: Endpoint, context: ConnectContext): Promise<JumpLease> {
    const key = keyOf(hop)
    const entry = this.#entries.get(key) ?? this.#start(key, hop, context)
    entry.users += 1
    const release = this.#releaser(key, entry)
    try {
      const connection = await untilAborted(entry.connecting, context.signal)
      return { connection, release }
    } catch (error) {
      release()
      throw error
    }
  }

  #start(key: string, hop: Endpoint, context: ConnectContext): Entry {
    const abort = new AbortController()
    const forget = () => {
      if (this.#entries.get(key) === entry) this.#entries.delete(key)
    }
    const connecting = this.#connectHop(hop, {
      ...context,
      signal: abort.signal,
      onPhase: () => {},
      onLost: () => {},
    })
    const entry: Entry = { connecting, abort, users: 0 }
    this.#entries.set(key, entry)
    // The next host that needs a lost or unreachable hop tries it again.
    connecting.then((connection) => {
      if (connection.lostReason === undefined) connection.onLost(forget)
      else forget()
      if (abort.signal.aborted) connection.close()
    }, forget)
    return entry
  }

  #releaser(key: string, entry: Entry): () => void {
    let isHeld = true
    return () => {
      if (!isHeld) return
      isHeld = false
      entry.users -= 1
      if (entry.users > 0) return
      if (this.#entries.get(key) === entry) this.#entries.delete(key)
      entry.abort.abort(new Error('no host behind the jump host is wanted any more'))
      entry.connecting.then(
        (connection) => connection.close(),
        () => {},
      )
    }
  }
}

/** What makes two hops the same connection: address, account and route. */
function keyOf(hop: Endpoint): string {
  const route = [...hop.jump, hop].map(({ user, address, port, proxyCommand, hostKeyAlias, identityFiles }) => [
    user,
    address,
    port,
    proxyCommand,
    hostKeyAlias,
    identityFiles,
  ])
  return JSON.stringify(route)
}
