/** Remote truth: how the fleet's events change what the console knows of its hosts. Pure. */
import type { Endpoint } from '../../inventory/host.ts'
import { foldHostSet } from '../../inventory/host-set.ts'
import type { FleetEvent, WriteReport } from '../../ssh/fleet.ts'
import type { SessionState } from '../../ssh/session-state.ts'
import type { HostState, LogEntry, NoticeTone } from '../state/console-state.ts'

export function hostStateOf(endpoint: Endpoint): HostState {
  return {
    host: endpoint.host,
    number: endpoint.number,
    address: endpoint.transport === 'local' ? '' : endpoint.address,
    port: endpoint.port,
    user: endpoint.user,
    session: { kind: 'idle' },
    shell: { kind: 'none' },
    lossReason: undefined,
    queuedBytes: 0,
    hasNews: false,
    bellAtMs: undefined,
    isDifferent: false,
    isRecording: false,
  }
}

/** The same object when nothing changed. `added` and `removed` change the map, not a host: the console does it. */
export function reduceHost(host: HostState, event: FleetEvent): HostState {
  switch (event.type) {
    case 'session':
      return { ...host, session: event.state, lossReason: lossReason(host, event.state) }
    case 'shell':
      return { ...host, shell: event.state, queuedBytes: 0 }
    case 'lagging':
      return host.queuedBytes === event.queuedBytes ? host : { ...host, queuedBytes: event.queuedBytes }
    default:
      return host
  }
}

function lossReason(host: HostState, session: SessionState): string | undefined {
  if (session.kind === 'lost') return session.reason
  return session.kind === 'ready' || session.kind === 'closed' ? undefined : host.lossReason
}

const LOGGED_ATTEMPTS = 3

/** What of it is worth a line in the log. */
export function logLine(event: FleetEvent, atMs: number): LogEntry | undefined {
  const line = (text: string, tone: NoticeTone = 'info'): LogEntry | undefined =>
    'host' in event ? { atMs, host: event.host, text, tone } : undefined
  if (event.type === 'session') {
    const { state } = event
    switch (state.kind) {
      case 'ready':
        return line('connected')
      case 'lost':
        return line(`lost: ${state.reason}`, 'error')
      case 'waiting':
        // The first ones; a host that stays away does not fill the log.
        if (state.attempt > LOGGED_ATTEMPTS) return undefined
        return line(
          `attempt ${state.attempt} in ${Math.max(1, Math.round((state.retryAtMs - atMs) / 1000))} s: ${state.reason}`,
          'warning',
        )
      case 'failed':
        return line(
          `${state.failure.reason}${state.failure.hint === undefined ? '' : ` ${state.failure.hint}`}`,
          'error',
        )
      case 'closed':
        return line('closed')
      default:
        return undefined
    }
  }
  if (event.type === 'shell' && event.state.kind === 'ended') {
    const { end } = event.state
    if (end.kind === 'exit') return line(`shell ended (exit ${end.code})`, end.code === 0 ? 'info' : 'warning')
    return line(end.kind === 'signal' ? `shell ended by ${end.signal}` : `shell lost: ${end.reason}`, 'warning')
  }
  return undefined
}

/** What is said after keys were sent, when a host did not get all of them; undefined: every host did. */
export function writeNotice({ sent, skipped, discarded = [] }: WriteReport): string | undefined {
  const hostsOf = Map.groupBy(skipped, ({ reason }) => reason)
  const why = [...hostsOf]
    .map(([reason, hosts]) => `${foldHostSet(hosts.map(({ host }) => host))}: ${reason}`)
    .join('; ')
  const total = sent.length + skipped.length
  const missed = sent.length === 0 ? `not sent to ${why}` : `sent to ${sent.length} of ${total}, not to ${why}`
  const dropped = discarded.map(({ host, bytes }) => `${host} dropped ${bytes} bytes`)
  const parts = why === '' ? dropped : [missed, ...dropped]
  return parts.length === 0 ? undefined : parts.join('; ')
}
