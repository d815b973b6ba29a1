/** The fleet's connections as a transport, for commands and copies beside the shells. It opens and closes none. */
import { printable } from '../base/printable.ts'
import type { Fleet } from './fleet.ts'
import type { SessionState } from './session-state.ts'
import { ConnectError, type ConnectFailure, type Transport } from './transport.ts'

export function createFleetTransport(fleet: Pick<Fleet, 'connection' | 'session'>): Transport {
  return {
    async connect({ host }) {
      const connection = fleet.connection(host)
      if (connection === undefined) throw new ConnectError(failureOf(fleet.session(host)))
      return {
        openShell: (options, handlers) => connection.openShell(options, handlers),
        exec: (command, handlers, options) => connection.exec(command, handlers, options),
        forward: (address, port) => connection.forward(address, port),
        close: () => undefined,
      }
    },
  }
}

function failureOf(state: SessionState): ConnectFailure {
  if (state.kind === 'failed') return state.failure
  const reason =
    state.kind === 'waiting' || state.kind === 'lost'
      ? `no connection: ${printable(state.reason)}`
      : state.kind === 'closed' || state.kind === 'idle'
        ? 'it is not connected'
        : 'it is still being connected'
  return { kind: 'unreachable', phase: 'shell', reason }
}
