/** A TCP connection to an endpoint without jump host or proxy: the name, then its addresses one after the other. */

import { lookup, Resolver } from 'node:dns/promises'
import { readFile } from 'node:fs/promises'
import { connect, isIP, type Socket } from 'node:net'
import { onAbort, untilAborted } from '../../base/abort.ts'
import type { Clock } from '../../base/clock.ts'
import { getOrMake } from '../../base/collections.ts'
import type { Endpoint } from '../../inventory/host.ts'
import { connectLimits } from '../connect-limits.ts'
import type { ConnectPhase } from '../transport.ts'
import { abortedError, describeEndpoint, describeSocketError, remoteText, seconds, unreachable } from './failures.ts'
import { Throttle } from './session-slots.ts'

type DialContext = {
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

/** All sockets read into it. Otherwise Node allocates 64 KB for each read, even of an echo. */
const received = Buffer.allocUnsafeSlow(64 * 1024)

/** Its bytes bypass the stream's queue. Until something listens and calls `resume`, they stay in the kernel. */
function open(host: string, port: number): Socket {
  const socket: Socket = connect({
    host,
    port,
    noDelay: true,
    onread: {
      buffer: received,
      callback(byteCount) {
        socket.emit('data', Buffer.from(received.subarray(0, byteCount)))
        return true
      },
    },
  })
  return socket.pause()
}

function connectTo(address: string, endpoint: Endpoint, limitMs: number, context: DialContext): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = open(address, endpoint.port)
    const settle = () => {
      timer[Symbol.dispose]()
      aborting[Symbol.dispose]()
      socket.removeAllListeners()
    }
    const fail = (error: unknown) => {
      settle()
      socket.on('error', () => {})
      socket.destroy()
      reject(error)
    }
    const aborting = onAbort(context.signal, () => fail(context.signal.reason))
    const timer = context.clock.after(limitMs, () =>
      fail(
        unreachable(
          'tcp',
          `no answer within ${seconds(limitMs)}`,
          'Check that the machine is up and no firewall drops the port.',
        ),
      ),
    )
    socket.once('error', fail)
    socket.once('connect', () => {
      settle()
      resolve(socket)
    })
  })
}

export type NameResolver = (name: string, signal: AbortSignal) => Promise<readonly string[]>

export type NameSources = {
  /** The text of /etc/hosts. */
  hostsFile(): Promise<string>
  /** The name servers: addresses; rejects with a code of `dns`. */
  query(name: string): Promise<readonly string[]>
  /** What the C library says, blocking a thread. */
  lookup(name: string): Promise<readonly string[]>
}

const BLOCKING_LOOKUPS = 2
const NEVER = new AbortController().signal
/** Codes of node:dns by which the servers did not answer at all: then the C library would only wait for them again. */
const NO_ANSWER = new Set(['ETIMEOUT', 'ECANCELLED'])

const systemNameSources: NameSources = {
  hostsFile: () => readFile('/etc/hosts', 'utf8').catch(() => ''),
  async query(name) {
    const resolver = new Resolver({ timeout: 2000, tries: 2 })
    const [v4, v6] = await Promise.allSettled([resolver.resolve4(name), resolver.resolve6(name)])
    const found = [v4, v6].flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []))
    if (found.length === 0 && v4.status === 'rejected') throw v4.reason
    return found
  },
  lookup: async (name) => (await lookup(name, { all: true })).map(({ address }) => address),
}

/** `dns.lookup` blocks one of four threads for up to half a minute a name: only what /etc/hosts and the name servers lack goes there. */
export function createNameResolver(sources: NameSources = systemNameSources): NameResolver {
  const running = new Map<string, Promise<readonly string[]>>()
  /** Hosts that are connected at the same time share one reading of the file, which may be long. */
  let reading: Promise<HostsTable> | undefined
  let known: { readonly text: string; readonly table: HostsTable } = { text: '', table: new Map() }

  const read = async (): Promise<HostsTable> => {
    const text = await sources.hostsFile()
    if (text !== known.text) known = { text, table: parseHostsFile(text) }
    return known.table
  }
  const hostsFile = (): Promise<HostsTable> => {
    reading ??= read().finally(() => {
      reading = undefined
    })
    return reading
  }
  const lookups = new Throttle(BLOCKING_LOOKUPS)

  const blockingLookup = async (name: string): Promise<readonly string[]> => {
    const leave = await lookups.enter('', NEVER)
    return await sources.lookup(name).finally(leave)
  }

  const resolve = async (name: string): Promise<readonly string[]> => {
    const listed = (await hostsFile()).get(name)
    if (listed !== undefined) return listed
    if (name === 'localhost' || name.endsWith('.localhost')) return ['127.0.0.1', '::1']
    try {
      const found = await sources.query(name)
      if (found.length > 0) return found
    } catch (error) {
      if (NO_ANSWER.has(String((error as NodeJS.ErrnoException).code))) throw error
    }
    return blockingLookup(name)
  }

  return (name, signal) => {
    if (isIP(name) !== 0) return Promise.resolve([name])
    // An address with a zone (fe80::1%eth0) is for the socket to understand.
    if (name.includes(':')) return Promise.resolve([name])
    const key = name.toLowerCase()
    const answer = getOrMake(running, key, () => resolve(key).finally(() => running.delete(key)))
    return untilAborted(answer, signal)
  }
}

/** The addresses of each name, in lower case. */
type HostsTable = ReadonlyMap<string, readonly string[]>

/** Of a hosts(5) file. */
export function parseHostsFile(text: string): HostsTable {
  const table = new Map<string, string[]>()
  for (const line of text.split('\n')) {
    const [address = '', ...names] = line.replace(/#.*/, '').trim().split(/\s+/)
    if (isIP(address) === 0) continue
    for (const name of new Set(names.map((each) => each.toLowerCase()))) getOrMake(table, name, () => []).push(address)
  }
  return table
}
