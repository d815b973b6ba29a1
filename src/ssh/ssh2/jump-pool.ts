/** Connections to jump hosts, one for all hosts behind the same route, closed when the last of these is gone. */

import { untilAborted } from '../../base/abort.ts'
import type { Endpoint } from '../../inventory/host.ts'
import type { ConnectContext } from '../transport.ts'
import type { Ssh2Connection } from './connection.ts'

/** Connects to a jump host, maybe through others. */
export type ConnectJump = (jumpHost: Endpoint, context: ConnectContext) => Promise<Ssh2Connection>

type Entry = {
  readonly connecting: Promise<Ssh2Connection>
  readonly abort: AbortController
  users: number
}

export class JumpPool {
  readonly #entries = new Map<string, Entry>()
  readonly #connectJump: ConnectJump

  constructor(connectJump: ConnectJump) {
    this.#connectJump = connectJump
  }

  /** `jumpHost` has the jump hosts before it in its own `jump`. Rejects with its ConnectError, or when aborted. */
  async acquire(jumpHost: Endpoint, context: ConnectContext) {
    const key = keyOf(jumpHost)
    const entry = this.#entries.get(key) ?? this.#start(key, jumpHost, context)
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

  #start(key: string, jumpHost: Endpoint, context: ConnectContext): Entry {
    const abort = new AbortController()
    const forget = () => {
      if (this.#entries.get(key) === entry) this.#entries.delete(key)
    }
    const connecting = this.#connectJump(jumpHost, {
      ...context,
      signal: abort.signal,
      onPhase: () => {},
      onLost: () => {},
    })
    const entry: Entry = { connecting, abort, users: 0 }
    this.#entries.set(key, entry)
    // The next host that needs a lost or unreachable jump host tries it again.
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

/** What makes two jump hosts one connection: address, account and route. */
function keyOf(jumpHost: Endpoint): string {
  const route = [...jumpHost.jump, jumpHost].map(
    ({ user, address, port, proxyCommand, hostKeyAlias, identityFiles }) => [
      user,
      address,
      port,
      proxyCommand,
      hostKeyAlias,
      identityFiles,
    ],
  )
  return JSON.stringify(route)
}
