import type { Duplex } from 'node:stream'
import { messageOf } from '../base/errors.ts'
import { printable } from '../base/printable.ts'
import type { Endpoint, TransportName } from '../inventory/host.ts'
import type { CredentialAsker, HostKeyVerifier } from './questions.ts'

export type ShellSize = { readonly columns: number; readonly rows: number }

/** How a channel ended. `lost`: the connection under it went away. */
export type ChannelEnd =
  | { readonly kind: 'exit'; readonly code: number }
  | { readonly kind: 'signal'; readonly signal: string }
  | { readonly kind: 'lost'; readonly reason: string }

export type ShellOptions = {
  readonly size: ShellSize
  readonly term: string
  readonly environment?: Readonly<Record<string, string>>
}

export type ShellHandlers = {
  onData(bytes: Uint8Array): void
  /** The channel takes bytes again after `write` returned false. */
  onDrain(): void
  onEnd(end: ChannelEnd): void
}

/** What shells and commands have in common. */
export interface Channel {
  /** False: the channel is full; the bytes of this call are kept, and `onDrain` tells when there is room. */
  write(bytes: Uint8Array): boolean
  /** Stops reading: the remote side is held back by its window. */
  pause(): void
  resume(): void
  /** Hangs up. */
  close(): void
}

/** An interactive PTY channel. */
export interface Shell extends Channel {
  resize(size: ShellSize): void
}

export type ExecHandlers = {
  onStdout(bytes: Uint8Array): void
  onStderr(bytes: Uint8Array): void
  /** Standard input takes bytes again after `write` returned false. */
  onDrain?(): void
  onEnd(end: ChannelEnd): void
}

/** A command without a PTY. */
export interface RemoteProcess extends Channel {
  endInput(): void
  signal(name: string): void
}

export type ExecOptions = {
  /** False: refused where the server allows no more sessions now, instead of waiting until another command has ended. */
  readonly waitsForRoom?: boolean
  /** It stays open: other commands do not wait for its end, and it does not wait for theirs. */
  readonly isLasting?: boolean
  /** How much the host may send before it is consumed, where the transport can choose; with high latency it bounds the speed. */
  readonly windowBytes?: number
}

/** A port on which a host listens for this program. */
export interface HostListener {
  /** The host's own choice where port 0 was asked for. */
  readonly port: number
  close(): void
}

/** Handlers of a shell or command are called only after the promise for it was kept. */
export interface Connection {
  openShell(options: ShellOptions, handlers: ShellHandlers): Promise<Shell>
  exec(command: string, handlers: ExecHandlers, options?: ExecOptions): Promise<RemoteProcess>
  /** A stream to a Unix socket of the host. */
  connectSocket(path: string): Promise<Duplex>
  /** A stream to an address as the host sees it; the host resolves a name. Rejects with ConnectError. */
  connectTcp(address: string, port: number): Promise<Duplex>
  /** Lets the host listen on one of its addresses, `localhost` for instance. Rejects with ConnectError. */
  listenTcp(address: string, port: number, onStream: (stream: Duplex) => void): Promise<HostListener>
  close(): void
}

/** Where a connection attempt stands; failures name the phase in which they happened. */
export type ConnectPhase = 'name' | 'tcp' | 'proxy' | 'banner' | 'host-key' | 'authentication' | 'shell'

export type FailureKind =
  | 'unreachable' // no name, no route, refused port, time-out, reset: trying again may help
  | 'host-key' // unknown and declined, changed, revoked: trying again does not help
  | 'authentication' // no method left: trying again does not help (and may lock the account)
  | 'configuration' // key file, known_hosts, proxy command: the user has to fix it
  | 'declined' // the user dismissed a question

export type ConnectFailure = {
  readonly kind: FailureKind
  readonly phase: ConnectPhase
  /** What was tried and why it failed, printable, one line. */
  readonly reason: string
  /** What to do next, one sentence. */
  readonly hint?: string
  /** The connection is good, and the server allows no more sessions on it now. */
  readonly isFull?: boolean
}

/** What `Transport.connect` rejects with. */
export class ConnectError extends Error {
  override readonly name = 'ConnectError'
  readonly failure: ConnectFailure

  constructor(failure: ConnectFailure, cause?: unknown) {
    super(failure.reason, cause === undefined ? undefined : { cause })
    this.failure = failure
  }
}

/** What answers the questions of connecting. */
export type Askers = { readonly hostKeys: HostKeyVerifier; readonly credentials: CredentialAsker }

export type ConnectContext = Askers & {
  readonly signal: AbortSignal
  onPhase(phase: ConnectPhase): void
  /** What the server, or a jump host, says during the login without asking anything: `A push was sent to your phone`. Printable. */
  onWords?(text: string): void
  /** What the server prints before it lets anyone in (sshd's Banner), as it came and bounded; again when there is more. */
  onBanner?(text: string): void
  /** Once, after `connect` resolved, when the connection is gone for any reason but our own `close`. */
  onLost(reason: string): void
}

export interface Transport {
  connect(endpoint: Endpoint, context: ConnectContext): Promise<Connection>
}

export type Transports = Readonly<Partial<Record<TransportName, Transport>>>

/** Connects with the endpoint's transport. @throws ConnectError */
export async function connectTo(
  endpoint: Endpoint,
  { transports, hostKeys, credentials }: Askers & { readonly transports: Transports },
  signal: AbortSignal,
  {
    onPhase = () => {},
    onLost = () => {},
    ...handlers
  }: Partial<Pick<ConnectContext, 'onPhase' | 'onLost' | 'onWords' | 'onBanner'>> = {},
): Promise<Connection> {
  const transport = transports[endpoint.transport]
  if (transport !== undefined)
    return await transport.connect(endpoint, { ...handlers, signal, hostKeys, credentials, onPhase, onLost })
  const reason = `the transport ${endpoint.transport} is not available here`
  throw new ConnectError({
    kind: 'configuration',
    phase: 'name',
    reason,
    hint: 'Choose another transport for this host.',
  })
}

/** Anything thrown on the way; `kind` and `phase` are those of errors that no transport expected. */
export function failureOf(error: unknown, kind: FailureKind, phase: ConnectPhase): ConnectFailure {
  return error instanceof ConnectError ? error.failure : { kind, phase, reason: printable(messageOf(error)) }
}

/** The reason of a failure and what to do about it. */
export function withHint({ reason, hint }: Pick<ConnectFailure, 'reason' | 'hint'>): string {
  return hint === undefined ? reason : `${reason}${/[.!?]$/.test(reason) ? '' : '.'} ${hint}`
}
