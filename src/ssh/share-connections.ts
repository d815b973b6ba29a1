/**
 * Transports whose connections are shared: everything of one host, one command after the other or side by side, goes over one
 * login, which stays until the whole is disposed of. A connection that was lost is made anew when it is next asked for.
 */
import type { Clock } from '../base/clock.ts'
import type { Endpoint, TransportName } from '../inventory/host.ts'
import { ConnectGate } from './connect-gate.ts'
import { lendWhileAsking } from './lend-while-asking.ts'
import type { ConnectContext, Connection, Transport } from './transport.ts'

type Transports = Readonly<Partial<Record<TransportName, Transport>>>

export type ShareOptions = {
  readonly clock: Clock
  /** Logins at once. */
  readonly fanOut: number
  /** Ends logins that are still on their way: a single user of one cannot, as others may wait for it. */
  readonly signal: AbortSignal
}

export type SharedTransports = Disposable & { readonly transports: Transports }

export function shareConnections(transports: Transports, options: ShareOptions): SharedTransports {
  const gate = new ConnectGate(options.fanOut)
  const shared = new Map<string, Promise<Connection>>()
  const share = (transport: Transport): Transport => ({
    async connect(endpoint, context) {
      const key = `${endpoint.transport} ${endpoint.host}`
      let connecting = shared.get(key)
      if (connecting === undefined) {
        const forget = () => shared.delete(key)
        connecting = login(transport, endpoint, context, gate, options, forget)
        shared.set(key, connecting)
        // A login that failed is tried again by the next who asks.
        connecting.catch(forget)
      }
      const { openShell, exec, forward } = await connecting.then((connection) => ({
        openShell: connection.openShell.bind(connection),
        exec: connection.exec.bind(connection),
        forward: connection.forward.bind(connection),
      }))
      return { openShell, exec, forward, close() {} }
    },
  })
  const entries = Object.entries(transports).map(([name, transport]) => [name, share(transport)])
  return {
    transports: Object.fromEntries(entries) as Transports,
    [Symbol.dispose]() {
      for (const connecting of shared.values()) {
        connecting.then(
          (connection) => connection.close(),
          () => {},
        )
      }
      shared.clear()
    },
  }
}

async function login(
  transport: Transport,
  endpoint: Endpoint,
  { hostKeys, credentials }: ConnectContext,
  gate: ConnectGate,
  { clock, signal }: ShareOptions,
  onLost: () => void,
): Promise<Connection> {
  const entered = Promise.withResolvers<void>()
  const lease = gate.enter(entered.resolve)
  try {
    await entered.promise
    const questions = lendWhileAsking({ hostKeys, credentials }, lease, clock)
    return await transport.connect(endpoint, { ...questions, signal, onPhase: () => {}, onLost })
  } finally {
    lease.release()
  }
}
