/** The words for a failed handshake, by phase. */
import { messageOf } from '../../base/errors.ts'
import type { Endpoint } from '../../inventory/host.ts'
import { connectLimits } from '../connect-limits.ts'
import { ConnectError, type ConnectPhase } from '../transport.ts'
import type { AuthSequence } from './auth-sequence.ts'
import { describeEndpoint, describeSocketError, misconfigured, remoteText, seconds, unreachable } from './failures.ts'

/** What is known about the attempt. */
export type Attempt = {
  readonly endpoint: Endpoint
  readonly authenticationTimeoutMs: number
  readonly isLastResort: boolean
  /** What else is known about a stream that ended or stalls: `proxy command: …`, `jump host x: …`. */
  complaint(): string | undefined
}

/** The server and this side have no key exchange in common: another try may offer the costly ones. */
export class NoCommonKeyExchange extends ConnectError {}

/** The stream ended before the SSH banner, as it does on a server with too many callers. */
export class EndedBeforeBanner extends ConnectError {}

export type Ssh2Error = Error & { readonly level?: string; readonly code?: string | number }

export function tooSlow(
  { endpoint, authenticationTimeoutMs, complaint }: Attempt,
  phase: ConnectPhase,
  firstBytes: string,
  version: string | undefined,
): ConnectError {
  const target = describeEndpoint(endpoint)
  if (phase === 'authentication') {
    const reason = `${target} did not answer the login within ${seconds(authenticationTimeoutMs)}`
    return unreachable(phase, reason, 'Check the load of the machine, and its name and user directories.')
  }
  const limit = seconds(connectLimits(endpoint).stepMs)
  const words = complaint() === undefined ? '' : ` (${complaint()})`
  if (version !== undefined) {
    const reason = `${target} sent its banner (${remoteText(version)}) but did not finish the key exchange within ${limit}`
    return unreachable(phase, reason, 'Check the load of the machine, and the MTU on the way.')
  }
  const said = firstBytes === '' ? 'sent no SSH banner' : `sent "${remoteText(firstBytes)}" and no SSH banner`
  return unreachable(
    phase,
    `${target} ${said} within ${limit}${words}`,
    'Check that the port is that of sshd, and that sshd is not overloaded.',
  )
}

export function describeEnd(
  { endpoint, isLastResort, complaint }: Attempt,
  phase: ConnectPhase,
  error: Ssh2Error | undefined,
  firstBytes: string,
): ConnectError {
  const target = describeEndpoint(endpoint)
  const message = error === undefined ? '' : messageOf(error)
  if (/no matching key exchange/i.test(message)) {
    const allowed = endpoint.algorithms?.keyExchanges?.names
    const reason =
      allowed === undefined
        ? `${target} offers no key exchange that this transport knows`
        : `${target} offers no key exchange that KexAlgorithms allows (${allowed.join(', ')})`
    const hint =
      allowed === undefined
        ? `Set \`transport: openssh\` for this host, or allow curve25519-sha256 there.`
        : `Allow one that the server has with KexAlgorithms in ssh_config, or set \`transport: openssh\` for this host.`
    const failure = { kind: 'configuration', phase, reason, hint } as const
    return isLastResort ? new ConnectError(failure) : new NoCommonKeyExchange(failure)
  }
  if (/no matching/i.test(message)) {
    return misconfigured(
      phase,
      `${target}: ${remoteText(message.replace(/^Handshake failed: /, ''))}`,
      endpoint.algorithms === undefined
        ? 'Set `transport: openssh` for this host, or allow current algorithms there.'
        : 'Allow what the server has with HostKeyAlgorithms, Ciphers or MACs in ssh_config.',
    )
  }
  const words = complaint()
  if (words !== undefined) {
    return unreachable('proxy', `cannot reach ${target}: ${words}`, 'Check ProxyCommand or ProxyJump.')
  }
  if (!firstBytes.includes('SSH-')) {
    const said = firstBytes === '' ? '' : `: it said "${remoteText(firstBytes)}"`
    return new EndedBeforeBanner({
      kind: 'unreachable',
      phase,
      reason: `${target} closed the connection before its SSH banner${said}`,
      hint: 'The server may have too many connections (MaxStartups), block this address, or not be an SSH server.',
    })
  }
  const isSocketError = error?.level === 'client-socket'
  const { reason, hint } = isSocketError
    ? describeSocketError(error)
    : { reason: message === '' ? 'it closed the connection' : remoteText(message), hint: undefined }
  const doing = phase === 'authentication' ? 'login' : 'key exchange'
  return unreachable(phase, `${target} broke off the ${doing}: ${reason}`, hint ?? 'Check the log of sshd there.')
}

/** The server hung up during authentication: too many keys (MaxAuthTries), or a wrong answer that was the last. */
export async function describeRefusal(
  { endpoint }: Attempt,
  sequence: AuthSequence,
  error: Ssh2Error | undefined,
  ended: ConnectError,
): Promise<ConnectError> {
  if (error === undefined || !/too many authentication failures/i.test(error.message)) return ended
  const failure = await sequence.failure()
  return new ConnectError({
    kind: 'authentication',
    phase: 'authentication',
    reason: `${failure.reason}; then it hung up: ${remoteText(error.message)}`,
    hint: `Name the right key for ${describeEndpoint(endpoint)} with IdentityFile and set IdentitiesOnly yes.`,
  })
}
