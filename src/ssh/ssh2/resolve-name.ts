/**
 * Host names to addresses. `dns.lookup` blocks one of four threads for up to half a minute a name, so /etc/hosts and the name
 * servers are asked first, and only what they do not know (search domains, mDNS, NSS) goes to `dns.lookup`, two at a time.
 */
import { lookup, Resolver } from 'node:dns/promises'
import { readFile } from 'node:fs/promises'
import { isIP } from 'node:net'
import { untilAborted } from '../until-aborted.ts'

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
/** Codes of node:dns by which the servers did not answer at all: then the C library would only wait for them again. */
const NO_ANSWER = new Set(['ETIMEOUT', 'ECANCELLED'])

export const systemNameSources: NameSources = {
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

export function createNameResolver(sources: NameSources = systemNameSources): NameResolver {
  const running = new Map<string, Promise<readonly string[]>>()
  const queue: (() => void)[] = []
  let free = BLOCKING_LOOKUPS

  const blockingLookup = async (name: string): Promise<readonly string[]> => {
    if (free > 0) free -= 1
    else await new Promise<void>((resolve) => queue.push(resolve))
    try {
      return await sources.lookup(name)
    } finally {
      const next = queue.shift()
      if (next === undefined) free += 1
      else next()
    }
  }

  const resolve = async (name: string): Promise<readonly string[]> => {
    const listed = addressesIn(await sources.hostsFile(), name)
    if (listed.length > 0) return listed
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
    let answer = running.get(key)
    if (answer === undefined) {
      answer = resolve(key).finally(() => running.delete(key))
      running.set(key, answer)
    }
    return untilAborted(answer, signal)
  }
}

/** Addresses that a hosts(5) file gives a name. */
export function addressesIn(hostsFile: string, name: string): readonly string[] {
  return hostsFile.split('\n').flatMap((line) => {
    const [address, ...names] = line.replace(/#.*/, '').trim().split(/\s+/)
    const isNamed = names.some((other) => other.toLowerCase() === name)
    return address !== undefined && isNamed && isIP(address) !== 0 ? [address] : []
  })
}
