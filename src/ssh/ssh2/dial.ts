/** A TCP connection to an endpoint without jump host or proxy: the name, then its addresses one after the other. */
import { connect, type Socket } from 'node:net'
import type { Clock } from '../../base/clock.ts'
import type { Endpoint } from '../../inventory/host.ts'
import { connectLimits } from '../connect-limits.ts'
import type { ConnectPhase } from '../transport.ts'
import { abortedError, describeEndpoint, describeSocketError, remoteText, seconds, unreachable } from './failures.ts'
import type { NameResolver } from './resolve-name.ts'

export type DialContext = {
  readonly clock: Clock
  readonly resolve: NameResolver
  readonly signal: AbortSignal
  onPhase(phase: ConnectPhase): void
}

/** Resolves to a connected socket; rejects with ConnectError. After an abort nothing stays open. */
export async function dial(endpoint: Endpoint, context: DialContext): Promise<Socket> {
  const addresses = await addressesOf(endpoint, context)
  context.onPhase('tcp')
  const limitMs = connectLimits(endpoint).stepMs
  const giveUpAtMs = context.clock.now() + limitMs
  let last: unknown
  for (const [index, address] of addresses.entries()) {
    if (context.signal.aborted) throw abortedError(endpoint, 'tcp')
    const leftMs = Math.min(limitMs, Math.max(1, giveUpAtMs - context.clock.now()))
    try {
      return await connectTo(address, endpoint, leftMs / (addresses.length - index), context)
    } catch (error) {
      last = error
    }
  }
  if (context.signal.aborted) throw abortedError(endpoint, 'tcp')
  const { reason, hint } = describeSocketError(last)
  throw unreachable('tcp', `cannot connect to ${describeEndpoint(endpoint)}: ${reason}`, hint, last)
}

async function addressesOf(endpoint: Endpoint, context: DialContext): Promise<readonly string[]> {
  const { address } = endpoint
  context.onPhase('name')
  if (context.signal.aborted) throw abortedError(endpoint, 'name')
  const limitMs = connectLimits(endpoint).stepMs
  const late = new AbortController()
  using _limit = context.clock.after(limitMs, () =>
    late.abort(new Error(`no answer about the name within ${seconds(limitMs)}`)),
  )
  try {
    const addresses = await context.resolve(address, AbortSignal.any([context.signal, late.signal]))
    if (addresses.length > 0) return addresses
    throw new Error('the name has no address')
  } catch (error) {
    if (context.signal.aborted) throw abortedError(endpoint, 'name')
    throw unreachable(
      'name',
      `cannot find the address of ${remoteText(address)} for ${describeEndpoint(endpoint)}: ${describeNameError(error)}`,
      'Check the spelling, the name server, or set `address:` to an IP address in hosts.yaml.',
      error,
    )
  }
}

function describeNameError(error: unknown): string {
  const code = (error as NodeJS.ErrnoException).code
  if (code === 'ENOTFOUND' || code === 'ENODATA') return 'no such name'
  if (code === 'ETIMEOUT' || code === 'EAI_AGAIN') return 'the name server does not answer'
  return describeSocketError(error).reason
}

function connectTo(address: string, endpoint: Endpoint, limitMs: number, context: DialContext): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host: address, port: endpoint.port, noDelay: true })
    const settle = () => {
      timer[Symbol.dispose]()
      context.signal.removeEventListener('abort', onAbort)
      socket.removeAllListeners()
    }
    const fail = (error: unknown) => {
      settle()
      socket.on('error', () => {})
      socket.destroy()
      reject(error)
    }
    const onAbort = () => fail(context.signal.reason)
    const timer = context.clock.after(limitMs, () =>
      fail(
        unreachable(
          'tcp',
          `no answer within ${seconds(limitMs)}`,
          'Check that the machine is up and no firewall drops the port.',
        ),
      ),
    )
    context.signal.addEventListener('abort', onAbort, { once: true })
    socket.once('error', fail)
    socket.once('connect', () => {
      settle()
      resolve(socket)
    })
  })
}
