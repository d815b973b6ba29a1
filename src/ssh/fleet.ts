/** The connections to all hosts, with one shell on each. A slow or dead host never holds back another. */

import { printable } from '../base/printable.ts'
import type { Endpoint } from '../inventory/host.ts'
import type { SessionState } from './session-transition.ts'
import {
  type ChannelEnd,
  ConnectError,
  type ConnectFailure,
  type Connection,
  type ShellSize,
  type Transport,
} from './transport.ts'

export type ShellState =
  | { readonly kind: 'none' }
  | { readonly kind: 'opening' }
  | { readonly kind: 'open' }
  | { readonly kind: 'ended'; readonly end: ChannelEnd }

export type FleetEvent =
  | { readonly type: 'added'; readonly host: string }
  | { readonly type: 'removed'; readonly host: string }
  | { readonly type: 'session'; readonly host: string; readonly state: SessionState }
  | { readonly type: 'shell'; readonly host: string; readonly state: ShellState }
  /** Bytes of the host's shell. Every listener sees them in order; the buffer is not reused. */
  | { readonly type: 'data'; readonly host: string; readonly bytes: Uint8Array }
  /** Bytes typed to a host wait because its channel is full (0: it has caught up). */
  | { readonly type: 'lagging'; readonly host: string; readonly queuedBytes: number }

/** What became of typed bytes. `skipped` says why in a few words: `reconnecting`, `shell ended`, `queue full`. */
export type WriteReport = {
  readonly sent: readonly string[]
  readonly skipped: readonly { readonly host: string; readonly reason: string }[]
  /** Hosts where an interrupt (^C) found the queue full: these earlier bytes, reported as sent, were dropped for it. */
  readonly discarded?: readonly { readonly host: string; readonly bytes: number }[]
}

export interface Fleet extends Disposable {
  readonly hosts: readonly string[]
  endpoint(host: string): Endpoint | undefined
  session(host: string): SessionState
  shell(host: string): ShellState
  on(listener: (event: FleetEvent) => void): Disposable
  /** Adds a host in state idle; an error if the name is taken. */
  add(endpoint: Endpoint): void
  /** Closes and forgets the host. */
  remove(host: string): void
  /** Starts connecting hosts that are idle, closed, failed, lost or waiting (at once, without back-off). A shell is opened when the session is ready. */
  connect(hosts: readonly string[]): void
  /** Like `connect`; a host whose session is ready but whose shell ended gets a new shell; a live one is left alone. */
  reconnect(hosts: readonly string[]): void
  /** Hangs up and stays closed until `connect`. */
  close(hosts: readonly string[]): void
  /** Typed bytes to the shells of these hosts, in order, side by side. Never throws, never waits. The buffer must not be changed afterwards. */
  write(hosts: readonly string[], bytes: Uint8Array): WriteReport
  /** The size that the host's shell has or will be opened with. */
  resize(host: string, size: ShellSize): void
  pause(host: string): void
  resume(host: string): void
  /** The live connection, for commands and forwards; undefined when the session is not ready. */
  connection(host: string): Connection | undefined
}

export function createFleetTransport(fleet: Pick<Fleet, 'connection' | 'session'>): Transport {
  return {
    async connect({ host }) {
      const connection = fleet.connection(host)
      if (connection === undefined) throw new ConnectError(failureOf(fleet.session(host)))
      return {
        openShell: (options, handlers) => connection.openShell(options, handlers),
        exec: (command, handlers, options) => connection.exec(command, handlers, options),
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
