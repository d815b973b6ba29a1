/** The transport on the ssh2 package. All hosts share its jump connections, decrypted keys, name look-ups and handshake throttle. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import type { Duplex } from 'node:stream'
import { untilAborted } from '../../base/abort.ts'
import { type Clock, systemClock } from '../../base/clock.ts'
import { messageOf } from '../../base/errors.ts'
import { printable } from '../../base/printable.ts'
import type { Endpoint } from '../../inventory/host.ts'
import { ConnectGate } from '../connect-gate.ts'
import { connectLimits } from '../connect-limits.ts'
import { IdentityFiles } from '../identity-files.ts'
import { streamOf } from '../local/child-stream.ts'
import { type ConnectContext, ConnectError, type Transport } from '../transport.ts'
import { Ssh2Connection } from './connection.ts'
import { createNameResolver, dial, type NameResolver } from './dial.ts'
import {
  abortedError,
  asConnectError,
  behindJump,
  describeEndpoint,
  misconfigured,
  remoteText,
  unreachable,
} from './failures.ts'
import { EndedBeforeBanner, handshake, NoCommonKeyExchange } from './handshake.ts'
import { HANDSHAKES_PER_SERVER, Throttle } from './session-slots.ts'

export type Ssh2TransportOptions = {
  readonly clock?: Clock
  /** In [0, 1), for the jitter of retries. */
  readonly random?: () => number
  readonly resolve?: NameResolver
  /** For the server to answer a login, questions to the user not counted. */
  readonly authenticationTimeoutMs?: number
}

/** Times that a connection is tried again which the server closed before its banner, and the mean wait between. */
const EARLY_RETRIES = 4
const EARLY_RETRY_MS = 250

/**
 * At most so many handshakes run at once. Each takes a few milliseconds of CPU time, so a thousand together would exceed their
 * time limits.
 */
const HANDSHAKES = 128

/** A stream to the server, and what its loss would mean. */
type Route = {
  readonly stream: Duplex
  complaint(): string | undefined
  routeLost(): string | undefined
  release(): void
}

export function createSsh2Transport(options: Ssh2TransportOptions = {}): Transport {
  const clock = options.clock ?? systemClock
  const random = options.random ?? Math.random
  const resolve = options.resolve ?? createNameResolver()
  const identities = new IdentityFiles()
  const throttle = new Throttle(HANDSHAKES_PER_SERVER)
  const gate = new ConnectGate(HANDSHAKES)

  const findRoute = async (endpoint: Endpoint, context: ConnectContext): Promise<Route> => {
    const { signal } = context
    const last = endpoint.jump.at(-1)
    if (last !== undefined) return routeThrough({ ...last, jump: endpoint.jump.slice(0, -1) }, endpoint, context)
    if (endpoint.proxyCommand !== undefined) {
      context.onPhase('proxy')
      const { stream, complaint, hasEnded } = await startProxyCommand(endpoint, endpoint.proxyCommand, signal)
      return { stream, complaint, routeLost: () => (hasEnded() ? complaint() : undefined), release: () => {} }
    }
    const stream = await dial(endpoint, { clock, resolve, signal, onPhase: (phase) => context.onPhase(phase) })
    return { stream, complaint: () => undefined, routeLost: () => undefined, release: () => {} }
  }

  const routeThrough = async (jumpHost: Endpoint, endpoint: Endpoint, context: ConnectContext): Promise<Route> => {
    context.onPhase('proxy')
    const name = printable(jumpHost.host)
    const lease = await jumps.acquire(jumpHost, context).catch((error: unknown) => {
      if (!(error instanceof ConnectError)) throw abortedError(endpoint, 'proxy')
      throw new ConnectError(behindJump(endpoint, jumpHost, error.failure), error)
    })
    try {
      const stream = await lease.connection.forward(endpoint.address, endpoint.port)
      stream.once('close', lease.release)
      const routeLost = () => {
        const reason = lease.connection.lostReason
        return reason === undefined ? undefined : `jump host ${name}: ${reason}`
      }
      return { stream, complaint: routeLost, routeLost, release: lease.release }
    } catch (error) {
      lease.release()
      const reason = `cannot reach ${describeEndpoint(endpoint)}: ${messageOf(error)}`
      throw new ConnectError(
        { kind: 'unreachable', phase: 'proxy', reason, hint: `Check that ${name} reaches it.` },
        error,
      )
    }
  }

  const connectOnce = async (endpoint: Endpoint, context: ConnectContext, isLastResort: boolean) => {
    const leave = await throttle.enter(serverOf(endpoint), context.signal).catch(() => {
      throw abortedError(endpoint, 'tcp')
    })
    try {
      const route = await findRoute(endpoint, context)
      try {
        return await handshake({
          endpoint,
          stream: route.stream,
          context,
          clock,
          gate,
          identities,
          authenticationTimeoutMs: options.authenticationTimeoutMs ?? connectLimits(endpoint).loginMs,
          isLastResort,
          complaint: route.complaint,
          established: (client) =>
            new Ssh2Connection({
              endpoint,
              client,
              stream: route.stream,
              clock,
              routeLost: route.routeLost,
            }),
        })
      } catch (error) {
        route.release()
        throw error
      }
    } finally {
      leave()
    }
  }

  const establish = async (endpoint: Endpoint, context: ConnectContext): Promise<Ssh2Connection> => {
    if (endpoint.needsOpenSsh !== undefined) {
      const reason = `${describeEndpoint(endpoint)} needs the system's ssh: ${endpoint.needsOpenSsh}`
      throw misconfigured('name', reason, 'Set `transport: openssh` for this host.')
    }
    let isLastResort = false
    for (let attempt = 0; ; attempt += 1) {
      try {
        return await connectOnce(endpoint, context, isLastResort)
      } catch (error) {
        if (context.signal.aborted) throw abortedError(endpoint, 'tcp')
        if (error instanceof NoCommonKeyExchange && !isLastResort) isLastResort = true
        else if (error instanceof EndedBeforeBanner && attempt < EARLY_RETRIES) {
          const waited = Promise.withResolvers<void>()
          using _wait = clock.after((0.5 + random()) * EARLY_RETRY_MS * 2 ** attempt, waited.resolve)
          await untilAborted(waited.promise, context.signal).catch(() => {})
        } else throw asConnectError(error, endpoint, 'tcp')
      }
    }
  }

  const jumps = new JumpPool(establish)

  return {
    async connect(endpoint, context) {
      const connection = await establish({ ...endpoint, jump: flatten(endpoint.jump) }, context)
      if (context.signal.aborted) {
        connection.close()
        throw abortedError(endpoint, 'authentication')
      }
      if (connection.lostReason !== undefined) {
        throw unreachable('authentication', `lost ${describeEndpoint(endpoint)}: ${connection.lostReason}`)
      }
      connection.onLost((reason) => context.onLost(reason))
      return connection
    },
  }
}

/** With the jump hosts through which jump hosts are reached. */
function flatten(jumpHosts: readonly Endpoint[], depth = 0): readonly Endpoint[] {
  if (depth > 8) return jumpHosts
  return jumpHosts.flatMap((jumpHost, index) => [
    ...(index === 0 ? flatten(jumpHost.jump, depth + 1) : []),
    { ...jumpHost, jump: [] },
  ])
}

function serverOf(endpoint: Endpoint): string {
  const jumpHosts = endpoint.jump.map(({ address, port }) => `${address} ${port}`)
  return [...jumpHosts, `${endpoint.address} ${endpoint.port}`, endpoint.proxyCommand ?? ''].join('\n')
}

/** Connects to a jump host, maybe through others. */
type ConnectJump = (jumpHost: Endpoint, context: ConnectContext) => Promise<Ssh2Connection>

type Entry = {
  readonly connecting: Promise<Ssh2Connection>
  readonly abort: AbortController
  users: number
}

/** One connection for all hosts behind the same route, closed when the last of these is gone. */
class JumpPool {
  readonly #entries = new Map<string, Entry>()
  readonly #connectJump: ConnectJump

  constructor(connectJump: ConnectJump) {
    this.#connectJump = connectJump
  }

  /** `jumpHost` has the jump hosts before it in its own `jump`. Rejects with its ConnectError, or when aborted. */
  async acquire(jumpHost: Endpoint, context: ConnectContext) {
    const key = keyOf(jumpHost)
    const entry = this.#entries.get(key) ?? this.#start(key, jumpHost, context)
    entry.users += 1
    const release = this.#releaser(key, entry)
    try {
      const connection = await untilAborted(entry.connecting, context.signal)
      return { connection, release }
    } catch (error) {
      release()
      throw error
    }
  }

  #start(key: string, jumpHost: Endpoint, context: ConnectContext): Entry {
    const abort = new AbortController()
    const forget = () => {
      if (this.#entries.get(key) === entry) this.#entries.delete(key)
    }
    const connecting = this.#connectJump(jumpHost, {
      ...context,
      signal: abort.signal,
      onPhase: () => {},
      // Of the jump host, not of the hosts behind it.
      onBanner: () => {},
      onLost: () => {},
    })
    const entry: Entry = { connecting, abort, users: 0 }
    this.#entries.set(key, entry)
    // The next host that needs a lost or unreachable jump host tries it again.
    connecting.then((connection) => {
      if (connection.lostReason === undefined) connection.onLost(forget)
      else forget()
      if (abort.signal.aborted) connection.close()
    }, forget)
    return entry
  }

  #releaser(key: string, entry: Entry): () => void {
    let isHeld = true
    return () => {
      if (!isHeld) return
      isHeld = false
      entry.users -= 1
      if (entry.users > 0) return
      if (this.#entries.get(key) === entry) this.#entries.delete(key)
      entry.abort.abort(new Error('no host behind the jump host is wanted any more'))
      entry.connecting.then(
        (connection) => connection.close(),
        () => {},
      )
    }
  }
}

/** What makes two jump hosts one connection: address, account and route. */
function keyOf(jumpHost: Endpoint): string {
  const route = [...jumpHost.jump, jumpHost].map(
    ({ user, address, port, proxyCommand, hostKeyAlias, identityFiles }) => [
      user,
      address,
      port,
      proxyCommand,
      hostKeyAlias,
      identityFiles,
    ],
  )
  return JSON.stringify(route)
}

const STDERR_LIMIT = 4096

/** ProxyCommand (ssh_config(5)): a child process in a process group that ends with it. */
async function startProxyCommand(endpoint: Endpoint, command: string, signal: AbortSignal) {
  if (signal.aborted) throw abortedError(endpoint, 'proxy')
  const child = spawn('/bin/sh', ['-c', `exec ${command}`], { stdio: ['pipe', 'pipe', 'pipe'], detached: true })
  let stderr = ''
  let ending: string | undefined
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr = (stderr + text).slice(-STDERR_LIMIT)
  })
  child.stderr.on('error', () => {})
  child.once('exit', (code, killedBy) => {
    ending = killedBy === null ? `it ended with code ${code}` : `it was ended by ${killedBy}`
  })
  /** What the command last wrote to stderr or how it ended, printable; undefined when it said nothing. */
  const complaint = () => {
    const line = stderr
      .split('\n')
      .map((text) => text.trim())
      .findLast((text) => text !== '')
    const words = line === undefined ? ending : remoteText(line)
    return words === undefined ? undefined : `proxy command: ${words}`
  }
  try {
    await once(child, 'spawn')
  } catch (error) {
    throw misconfigured(
      'proxy',
      `cannot start the proxy command of ${describeEndpoint(endpoint)}: ${remoteText(messageOf(error))}`,
      'Check ProxyCommand in ssh_config.',
      error,
    )
  }
  return { stream: streamOf(child, { allowHalfOpen: false }), complaint, hasEnded: () => ending !== undefined }
}
