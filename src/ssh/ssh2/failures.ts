/** Failures as sentences: what was tried, on what, why it failed, and what to do next. Text of the other side is printable and short. */
import { MusterError, messageOf } from '../../base/errors.ts'
import { raiseFilesCommand } from '../../base/open-files.ts'
import { printable } from '../../base/printable.ts'
import type { Endpoint } from '../../inventory/host.ts'
import { ConnectError, type ConnectFailure, type ConnectPhase } from '../transport.ts'

const REMOTE_TEXT_LIMIT = 200

/** Text that a server or a program wrote: one printable line of at most 200 characters. */
export function remoteText(text: string): string {
  const line = printable(text.replace(/\s+/g, ' ').trim())
  if (line.length <= REMOTE_TEXT_LIMIT) return line
  // Half an emoji could join with what is drawn behind it. One character more shows whether the last one is whole.
  const characters = new Intl.Segmenter().segment(line.slice(0, REMOTE_TEXT_LIMIT + 2))
  return `${line.slice(0, characters.containing(REMOTE_TEXT_LIMIT)?.index)}…`
}

/** `root@10.0.0.8:22`, and the way to it: `via bastion, inner`. */
export function describeEndpoint(endpoint: Endpoint): string {
  const address = endpoint.address.includes(':') ? `[${endpoint.address}]` : endpoint.address
  const target = printable(`${endpoint.user}@${address}:${endpoint.port}`)
  if (endpoint.jump.length === 0) return target
  return `${target} via ${endpoint.jump.map((each) => printable(each.host)).join(', ')}`
}

/** The trouble of a jump host, as the failure of an endpoint behind it. */
export function behindJump(
  endpoint: Endpoint,
  jumpHost: Endpoint,
  { kind, reason, hint }: ConnectFailure,
): ConnectFailure {
  return {
    kind,
    phase: 'proxy',
    reason: `cannot reach ${describeEndpoint(endpoint)}: jump host ${printable(jumpHost.host)}: ${reason}`,
    ...(hint === undefined ? {} : { hint }),
  }
}

export function unreachable(phase: ConnectPhase, reason: string, hint?: string, cause?: unknown): ConnectError {
  return new ConnectError({ kind: 'unreachable', phase, reason, ...(hint === undefined ? {} : { hint }) }, cause)
}

export function misconfigured(phase: ConnectPhase, reason: string, hint: string, cause?: unknown): ConnectError {
  return new ConnectError({ kind: 'configuration', phase, reason, hint }, cause)
}

export function abortedError(endpoint: Endpoint, phase: ConnectPhase): ConnectError {
  return new ConnectError({
    kind: 'declined',
    phase,
    reason: `connecting to ${describeEndpoint(endpoint)} was stopped`,
  })
}

/** Anything thrown on the way, as the failure of this phase. */
export function asConnectError(error: unknown, endpoint: Endpoint, phase: ConnectPhase): ConnectError {
  if (error instanceof ConnectError) return error
  const hint = error instanceof MusterError ? error.hint : undefined
  const kind = error instanceof MusterError && error.code === 'configuration' ? 'configuration' : 'unreachable'
  const reason = `cannot connect to ${describeEndpoint(endpoint)}: ${remoteText(messageOf(error))}`
  return new ConnectError({ kind, phase, reason, ...(hint === undefined ? {} : { hint }) }, error)
}

const SOCKET_ERRORS: Readonly<Record<string, readonly [reason: string, hint: string]>> = {
  ECONNREFUSED: ['connection refused', 'Check the port, and that sshd runs there.'],
  EHOSTUNREACH: ['no route to the host', 'Check that the machine is up and the network reaches it.'],
  ENETUNREACH: ['no route to the network', 'Check the network of this machine, a VPN for instance.'],
  EHOSTDOWN: ['the host is down', 'Check that the machine is up.'],
  ETIMEDOUT: ['the connection timed out', 'Check that the machine is up and no firewall drops the port.'],
  ECONNRESET: ['the connection was reset', 'Check the log of sshd there.'],
  EADDRNOTAVAIL: ['no local address leads there', 'Check the address, and the network of this machine.'],
  EACCES: ['this machine does not allow the connection', 'Check the local firewall.'],
  EMFILE: [
    'this process has too many open files',
    `Use a smaller --fan-out, or raise the limit: ${raiseFilesCommand(4096)}`,
  ],
  ENFILE: ['this machine has too many open files', 'End programs that hold files, or raise fs.file-max.'],
}

/** The words for a socket's error code, and what to do. */
export function describeSocketError(error: unknown): { readonly reason: string; readonly hint?: string } {
  if (error instanceof ConnectError) return error.failure
  const code = (error as NodeJS.ErrnoException | undefined)?.code
  const known = code === undefined ? undefined : SOCKET_ERRORS[code]
  return known === undefined ? { reason: remoteText(messageOf(error)) } : { reason: known[0], hint: known[1] }
}

export function seconds(ms: number): string {
  return `${Number((ms / 1000).toFixed(1))} s`
}
