/** How the fleet's events change the hosts in the state, and what the log and notices say about them. Pure. */
import { withHint } from '../../base/errors.ts'
import { secondText } from '../../base/time-text.ts'
import type { Endpoint } from '../../inventory/host.ts'
import { foldHostSet } from '../../inventory/host-set.ts'
import type { FleetEvent, ShellState, WriteReport } from '../../ssh/create-fleet.ts'
import type { SessionState } from '../../ssh/session-transition.ts'
import { type HostState, LOG_LIMIT, type LogEntry, type NoticeTone } from '../state/console-state.ts'

/** What is known of a host before ssh_config is read; the rest follows with its endpoint. */
export type HostPlace = Pick<Endpoint, 'host' | 'number'> &
  Partial<Pick<Endpoint, 'ownName' | 'transport' | 'address' | 'port' | 'user'>>

/** The part of a host's state that depends on how it is reached. */
export const placeOf = ({ host, ownName = host, transport, address = '', port = 22, user = '' }: HostPlace) => ({
  ownName,
  address: transport === 'local' ? '' : address,
  port,
  user,
})

export function hostStateOf(place: HostPlace): HostState {
  return {
    host: place.host,
    number: place.number,
    ...placeOf(place),
    session: { kind: 'idle' },
    shell: { kind: 'none' },
    lossReason: undefined,
    queuedBytes: 0,
    hasNews: false,
    loginLines: 0,
    bellAtMs: undefined,
    isDifferent: false,
    isRecording: false,
    isLate: false,
    hasMissed: false,
  }
}

/** Returns the same object when nothing changed. */
export function reduceHost(host: HostState, event: FleetEvent): HostState {
  switch (event.type) {
    case 'session':
      return { ...host, session: event.state, lossReason: lossReason(host, event.state) }
    case 'shell':
      return { ...host, shell: event.state, queuedBytes: 0, isLate: false, hasMissed: false }
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

/** Repeated attempts to reach a host share one line as long as they fail for the same reason. */
export function addToLog(log: readonly LogEntry[], entry: LogEntry): readonly LogEntry[] {
  const at = entry.away === undefined ? -1 : log.findLastIndex(({ host }) => host === entry.host)
  const before = log[at]
  if (before === undefined || before.away !== entry.away) return [...log, entry].slice(-LOG_LIMIT)
  const [next] = NEXT_ATTEMPT.exec(entry.text) ?? []
  return next === undefined ? log : log.with(at, { ...before, text: before.text.replace(NEXT_ATTEMPT, '') + next })
}

const NEXT_ATTEMPT = / · attempt \d+ at \d\d:\d\d:\d\d$/

/** The event's line in the log, if it has one. */
export function logLine(event: FleetEvent, atMs: number): LogEntry | undefined {
  const line = (text: string, tone: NoticeTone = 'info'): LogEntry | undefined =>
    'host' in event ? { atMs, host: event.host, text, tone } : undefined
  const away = (reason: string, text: string, tone: NoticeTone): LogEntry | undefined => {
    const entry = line(text, tone)
    return entry && { ...entry, away: reason }
  }
  if (event.type === 'session') {
    const { state } = event
    if (state.kind === 'ready') return line('connected')
    if (state.kind === 'closed') return line('disconnected')
    if (state.kind === 'lost') return away(state.reason, `lost: ${state.reason}`, 'error')
    if (state.kind === 'failed') return line(withHint(state.failure.reason, state.failure.hint), 'error')
    if (state.kind !== 'waiting') return undefined
    const time = secondText(state.retryAtMs)
    return away(state.reason, `${state.reason} · attempt ${state.attempt} at ${time}`, 'warning')
  }
  if (event.type === 'shell' && event.state.kind === 'ended') {
    const { end } = event.state
    // The connection reports this, too.
    if (end.kind === 'lost') return away(end.reason, `lost: ${end.reason}`, 'error')
    return line(shellEnd(end), end.kind === 'exit' && end.code === 0 ? 'info' : 'warning')
  }
  return undefined
}

/** The notice after keys were sent, if a host did not get all of them. */
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

/** How a shell ended, in a few words. */
export function shellEnd(end: Extract<ShellState, { kind: 'ended' }>['end']): string {
  if (end.kind === 'lost') return `shell lost: ${end.reason}`
  return end.kind === 'exit' ? `shell ended (exit ${end.code})` : `shell ended by ${end.signal}`
}
