/** From a byte stream to an authenticated ssh2 client, with a time limit for each phase. A failure closes the stream. */
import type { Duplex } from 'node:stream'
import type { ConnectConfig, Client as Ssh2Client } from 'ssh2'
import type { Clock } from '../../base/clock.ts'
import { connectLimits } from '../connect-limits.ts'
import type { IdentityFiles } from '../identity-files.ts'
import { type ConnectContext, ConnectError, type ConnectPhase } from '../transport.ts'
import { algorithmsFor } from './algorithms.ts'
import { AuthSequence } from './auth-sequence.ts'
import { Deadline } from './deadline.ts'
import { abortedError, asConnectError, describeEndpoint } from './failures.ts'
import { type Attempt, describeEnd, describeRefusal, type Ssh2Error, tooSlow } from './handshake-failures.ts'
import { Client, ignoreAnnouncedHostKeys, makePacketsCheap, serverVersion, watchRefusals } from './library.ts'

export type HandshakeOptions<T> = Attempt & {
  readonly stream: Duplex
  readonly context: ConnectContext
  readonly clock: Clock
  readonly identities: IdentityFiles
  /** Takes the client over in the moment in which it is ready, so that no event is missed. */
  established(client: Ssh2Client): T
}

export async function handshake<T>(options: HandshakeOptions<T>): Promise<T> {
  const { endpoint, stream, context } = options
  const onEarlyError = () => {}
  stream.on('error', onEarlyError)
  try {
    if (context.signal.aborted) throw abortedError(endpoint, 'banner')
    context.onPhase('banner')
    const preferred = await context.hostKeys.preferredAlgorithms(endpoint)
    return await run(options, preferred)
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
      asking: (question) => deadline.whilePaused(question),
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
    client.on('change password', () => {
      sequence.notePasswordExpired()
      void giveUpAuthentication()
    })
    client.on('ready', () => {
      if (!settle()) return
      client.removeAllListeners()
      resolve(options.established(client))
    })
    const ended = async () => {
      if (isSettled) return
      if (phase === 'authentication' && sequence.isDeclined) return giveUpAuthentication()
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
    makePacketsCheap(client)
    ignoreAnnouncedHostKeys(client)
    watchRefusals(client, (methods, isPartial) => {
      refusal = { methods, isPartial }
    })
    stream.on('data', function sniff(bytes: Buffer) {
      firstBytes = (firstBytes + bytes.toString('latin1')).slice(0, 400)
      if (firstBytes.length >= 400 || firstBytes.includes('SSH-')) stream.off('data', sniff)
    })
  })
}
