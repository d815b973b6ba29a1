/** From a byte stream to an authenticated ssh2 client, with a time limit for each phase. A failure closes the stream. */
import type { Duplex } from 'node:stream'
import type { ConnectConfig, Algorithms as Ssh2Algorithms, Client as Ssh2Client } from 'ssh2'
import type { Clock } from '../../base/clock.ts'
import { messageOf } from '../../base/errors.ts'
import type { Endpoint } from '../../inventory/host.ts'
import { type AlgorithmChoice, type Algorithms, HOST_KEYS, MACS } from '../../inventory/ssh-config/algorithms.ts'
import { type ConnectGate, inTurn } from '../connect-gate.ts'
import { connectLimits } from '../connect-limits.ts'
import type { IdentityFiles } from '../identity-files.ts'
import { type ConnectContext, ConnectError, type ConnectPhase } from '../transport.ts'
import { AuthSequence } from './auth-sequence.ts'
import {
  abortedError,
  asConnectError,
  describeEndpoint,
  describeSocketError,
  misconfigured,
  remoteText,
  seconds,
  unreachable,
} from './failures.ts'
import {
  Client,
  ignoreAnnouncedHostKeys,
  refinePackets,
  serverVersion,
  watchDisconnect,
  watchRefusals,
  watchRoundsWithoutPrompts,
} from './library.ts'

/** Of what a server prints before the login, in characters. */
const BANNER_LIMIT = 16 * 1024

/** What is known about the attempt. */
type Attempt = {
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

type Ssh2Error = Error & { readonly level?: string; readonly code?: string | number }

function tooSlow(
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

function describeEnd(
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
async function describeRefusal(
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

type HandshakeOptions<T> = Attempt & {
  readonly stream: Duplex
  readonly context: ConnectContext
  readonly clock: Clock
  /** Limits how many handshakes run at once. */
  readonly gate: ConnectGate
  readonly identities: IdentityFiles
  /** Takes the client over in the moment in which it is ready, so that no event is missed. */
  established(client: Ssh2Client): T
}

export async function handshake<T>(options: HandshakeOptions<T>): Promise<T> {
  const { endpoint, stream, context, clock, gate } = options
  const onEarlyError = () => {}
  stream.on('error', onEarlyError)
  try {
    return await inTurn(gate, context, clock, async (askers) => {
      if (context.signal.aborted) throw abortedError(endpoint, 'banner')
      context.onPhase('banner')
      const preferred = await context.hostKeys.preferredAlgorithms(endpoint)
      return await run({ ...options, context: { ...context, ...askers } }, preferred)
    })
  } catch (error) {
    stream.destroy()
    throw asConnectError(error, endpoint, 'banner')
  } finally {
    // ssh2 listens for itself by now, or the stream is gone.
    if (!stream.destroyed) stream.off('error', onEarlyError)
  }
}

function run<T>(options: HandshakeOptions<T>, preferred: readonly string[]): Promise<T> {
  const { endpoint, stream, context, clock } = options
  const target = describeEndpoint(endpoint)
  return new Promise<T>((resolve, reject) => {
    const client = new Client()
    let phase: ConnectPhase = 'banner'
    let lastError: Ssh2Error | undefined
    let firstBytes = ''
    let isSettled = false
    let acceptedKey: Buffer | undefined
    let refusal: { readonly methods: readonly string[]; readonly isPartial: boolean } | undefined
    let openQuestion: Promise<unknown> | undefined

    const settle = (): boolean => {
      if (isSettled) return false
      isSettled = true
      deadline[Symbol.dispose]()
      context.signal.removeEventListener('abort', onAbort)
      return true
    }
    const fail = (error: ConnectError) => {
      if (!settle()) return
      // ssh2 may still complain while it is torn down.
      client.on('error', () => {})
      stream.on('error', () => {})
      client.destroy()
      stream.destroy()
      reject(error)
    }
    const onAbort = () => fail(abortedError(endpoint, phase))
    const expired = () => fail(tooSlow(options, phase, firstBytes, serverVersion(client)))
    let deadline = new Deadline(clock, connectLimits(endpoint).stepMs, expired)

    const sequence = new AuthSequence({
      endpoint,
      credentials: context.credentials,
      identities: options.identities,
      signal: context.signal,
      asking: (question) => {
        const answer = deadline.whilePaused(question)
        const close = () => {
          openQuestion = undefined
        }
        openQuestion = answer.then(close, close)
        return answer
      },
      giveUp: (error) =>
        error === undefined ? void giveUpAuthentication() : fail(asConnectError(error, endpoint, phase)),
    })
    const giveUpAuthentication = async () => fail(new ConnectError(await sequence.failure()))

    const verify = (key: Buffer, answer: (isAccepted: boolean) => void): void => {
      // A rekey shows the key again: it has to be the same one.
      if (acceptedKey !== undefined) {
        answer(acceptedKey.equals(key))
        return
      }
      phase = 'host-key'
      context.onPhase('host-key')
      // A copy: the parser's buffer is used again.
      const blob = Buffer.from(key)
      const verdict = deadline.whilePaused(() => context.hostKeys.verify(endpoint, blob, context.signal))
      verdict
        .then((result) => {
          if (isSettled) return
          if (!result.ok) {
            const { reason, hint } = result
            return fail(
              new ConnectError({ kind: 'host-key', phase, reason: `cannot trust ${target}: ${reason}`, hint }),
            )
          }
          acceptedKey = blob
          deadline[Symbol.dispose]()
          deadline = new Deadline(clock, options.authenticationTimeoutMs, expired)
          phase = 'authentication'
          context.onPhase('authentication')
          answer(true)
        })
        .catch((error: unknown) => fail(asConnectError(error, endpoint, phase)))
    }

    const authenticate: ConnectConfig['authHandler'] = (methods, isPartial, next) => {
      const accepted = refusal?.methods ?? (methods as readonly string[] | null)
      sequence
        .next(accepted, refusal?.isPartial ?? isPartial === true)
        .then((attempt) => {
          if (isSettled) return
          if (attempt === false) return giveUpAuthentication()
          next(attempt)
        })
        .catch((error: unknown) => fail(asConnectError(error, endpoint, phase)))
    }

    client.on('error', (error: Ssh2Error) => {
      // A key that the agent could not sign with: the next one is tried.
      if (error.level === 'agent') sequence.note(error.message)
      else lastError ??= error
    })
    client.on('close', () => void ended())
    client.on('end', () => void ended())
    let banner = ''
    client.on('banner', (text: string) => {
      if (isSettled || text === '' || banner.length >= BANNER_LIMIT) return
      banner = (banner + text).slice(0, BANNER_LIMIT)
      context.onBanner?.(banner)
    })
    client.on('change password', () => {
      sequence.notePasswordExpired()
      void giveUpAuthentication()
    })
    let isGone = false
    // A server may let the login in or hang up while its question is open: the answer comes first, as it may be a dismissal.
    const ready = () => {
      if (isGone || sequence.isUnanswered || !settle()) return
      client.removeAllListeners()
      resolve(options.established(client))
    }
    client.on('ready', () => {
      if (openQuestion === undefined) ready()
      else void openQuestion.then(ready)
    })
    const ended = async () => {
      isGone = true
      await openQuestion
      if (isSettled) return
      if (phase === 'authentication' && sequence.isUnanswered) return giveUpAuthentication()
      const error = describeEnd(options, phase, lastError, firstBytes)
      if (phase !== 'authentication') return fail(error)
      fail(await describeRefusal(options, sequence, lastError, error))
    }

    if (context.signal.aborted) return onAbort()
    if (stream.destroyed) return fail(describeEnd(options, phase, undefined, firstBytes))
    context.signal.addEventListener('abort', onAbort, { once: true })
    try {
      client.connect({
        sock: stream,
        username: endpoint.user,
        ident: 'Muster',
        readyTimeout: 0,
        keepaliveInterval: endpoint.keepAliveIntervalMs,
        keepaliveCountMax: endpoint.keepAliveMaxMissed,
        algorithms: algorithmsFor(endpoint.algorithms, preferred, options.isLastResort),
        hostVerifier: verify,
        authHandler: authenticate,
        ...(endpoint.forwardAgent && endpoint.agentSocket !== undefined ? { agent: endpoint.agentSocket } : {}),
      })
    } catch (error) {
      return fail(asConnectError(error, endpoint, phase))
    }
    refinePackets(client)
    ignoreAnnouncedHostKeys(client)
    watchDisconnect(client, (words) => {
      if (words !== '') lastError ??= new Error(words)
      void ended()
    })
    watchRefusals(client, (methods, isPartial) => {
      refusal = { methods, isPartial }
    })
    watchRoundsWithoutPrompts(client, (name, instructions) => {
      const text = sequence.wordsWithoutPrompts(name, instructions)
      if (text !== undefined && !isSettled) context.onWords?.(text)
    })
    stream.on('data', function sniff(bytes: Buffer) {
      firstBytes = (firstBytes + bytes.toString('latin1')).slice(0, 400)
      if (firstBytes.length >= 400 || firstBytes.includes('SSH-')) stream.off('data', sniff)
    })
  })
}

class Deadline implements Disposable {
  readonly #clock: Clock
  readonly #onExpired: () => void
  #remainingMs: number
  #startedAtMs = 0
  #timer: Disposable | undefined
  #pauses = 0
  #isOver = false

  constructor(clock: Clock, limitMs: number, onExpired: () => void) {
    this.#clock = clock
    this.#remainingMs = limitMs
    this.#onExpired = onExpired
    this.#run()
  }

  /** Runs `work` with the time stopped; may be nested. */
  async whilePaused<T>(work: () => Promise<T>): Promise<T> {
    this.#pauses += 1
    if (this.#pauses === 1) this.#stop()
    try {
      return await work()
    } finally {
      this.#pauses -= 1
      if (this.#pauses === 0) this.#run()
    }
  }

  [Symbol.dispose](): void {
    this.#isOver = true
    this.#stop()
  }

  #run(): void {
    if (this.#isOver) return
    this.#startedAtMs = this.#clock.now()
    this.#timer = this.#clock.after(this.#remainingMs, () => {
      this.#isOver = true
      this.#onExpired()
    })
  }

  #stop(): void {
    if (this.#timer === undefined) return
    this.#timer[Symbol.dispose]()
    this.#timer = undefined
    this.#remainingMs = Math.max(0, this.#remainingMs - Math.max(0, this.#clock.now() - this.#startedAtMs))
  }
}

const KEY_EXCHANGES = [
  'curve25519-sha256',
  'curve25519-sha256@libssh.org',
  'ecdh-sha2-nistp256',
  'diffie-hellman-group14-sha256',
  'diffie-hellman-group16-sha512',
] as const

/** Group exchange blocks the event loop for 1.5 s: it comes last, unless ssh_config puts it first. */
const LAST_RESORT_KEY_EXCHANGES = [
  'ecdh-sha2-nistp384',
  'ecdh-sha2-nistp521',
  'diffie-hellman-group18-sha512',
  'diffie-hellman-group-exchange-sha256',
] as const

const CIPHERS = [
  'aes128-gcm@openssh.com',
  'aes256-gcm@openssh.com',
  'chacha20-poly1305@openssh.com',
  'aes128-ctr',
  'aes256-ctr',
] as const

/** `known`: host key algorithms of keys in known_hosts. As with ssh they come first, unless ssh_config orders the list. */
export function algorithmsFor(
  allowed: Algorithms | undefined,
  known: readonly string[],
  isLastResort: boolean,
): Ssh2Algorithms {
  const hostKeys = allowed?.hostKeys?.names ?? HOST_KEYS
  const isKnown = (name: string) => allowed?.hostKeys?.isOrdered !== true && known.includes(name)
  const serverHostKey = [...hostKeys.filter(isKnown), ...hostKeys.filter((name) => !isKnown(name))]
  return {
    kex: keyExchanges(allowed?.keyExchanges, isLastResort),
    serverHostKey,
    cipher: permitted(CIPHERS, allowed?.ciphers),
    hmac: permitted(MACS, allowed?.macs),
    compress: ['none'],
  } as Ssh2Algorithms
}

function keyExchanges(choice: AlgorithmChoice | undefined, isLastResort: boolean): readonly string[] {
  if (choice?.isOrdered) return choice.names
  const usual = permitted(KEY_EXCHANGES, choice)
  const last = permitted(LAST_RESORT_KEY_EXCHANGES, choice)
  return (isLastResort && last.length > 0) || usual.length === 0 ? last : usual
}

/** In our order: all are safe, and it is the order of their costs. */
function permitted(names: readonly string[], choice: AlgorithmChoice | undefined): readonly string[] {
  return choice === undefined
    ? [...names]
    : choice.isOrdered
      ? choice.names
      : names.filter((name) => choice.names.includes(name))
}
