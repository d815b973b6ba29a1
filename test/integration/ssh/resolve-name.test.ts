import { describe, expect, it } from 'vitest'
import { createNameResolver, type NameSources, parseHostsFile } from '../../../src/ssh/ssh2/dial.ts'
import { waitUntil } from '../../support/wait-until.ts'

const LIVE = new AbortController().signal
const failure = (code: string) => Object.assign(new Error(code), { code })

function sources(parts: Partial<NameSources> = {}): NameSources {
  return {
    hostsFile: async () => '127.0.0.1 localhost\n10.0.0.8 m8 m8.lab # the big one\n::8 m8\n',
    query: async () => Promise.reject(failure('ENOTFOUND')),
    lookup: async () => Promise.reject(failure('ENOTFOUND')),
    ...parts,
  }
}

describe('name resolution', () => {
  it('leaves addresses alone', async () => {
    const resolve = createNameResolver(sources({ hostsFile: () => Promise.reject(new Error('not asked')) }))
    expect(await resolve('10.0.0.8', LIVE)).toEqual(['10.0.0.8'])
    expect(await resolve('fe80::1%eth0', LIVE)).toEqual(['fe80::1%eth0'])
  })

  it('returns all addresses of a name from the hosts file', () => {
    expect(parseHostsFile('10.0.0.8 m8\n# 10.0.0.9 m8\n::8 x M8\nbad m8').get('m8')).toEqual(['10.0.0.8', '::8'])
  })

  it('asks the name servers for what the hosts file does not know', async () => {
    const resolve = createNameResolver(sources({ query: async () => ['10.9.9.9'] }))
    expect(await resolve('m9', LIVE)).toEqual(['10.9.9.9'])
  })

  it('asks the C library for what the name servers do not know', async () => {
    const resolve = createNameResolver(sources({ lookup: async () => ['10.7.7.7'] }))
    expect(await resolve('printer.local', LIVE)).toEqual(['10.7.7.7'])
  })

  it('does not let the C library wait for name servers that are dead', async () => {
    let lookups = 0
    const resolve = createNameResolver(
      sources({
        query: () => Promise.reject(failure('ETIMEOUT')),
        lookup: async () => {
          lookups += 1
          return []
        },
      }),
    )
    await expect(resolve('m9', LIVE)).rejects.toMatchObject({ code: 'ETIMEOUT' })
    expect(lookups).toBe(0)
  })

  it('asks once for a name that many hosts share', async () => {
    let queries = 0
    const resolve = createNameResolver(
      sources({
        query: async () => {
          queries += 1
          return ['10.0.0.1']
        },
      }),
    )
    await Promise.all([resolve('bastion', LIVE), resolve('BASTION', LIVE)])
    expect(queries).toBe(1)
  })

  it('blocks at most two threads, and still answers hosts that need none', async () => {
    let running = 0
    const waiting: (() => void)[] = []
    const resolve = createNameResolver(
      sources({
        lookup: () => {
          running += 1
          return new Promise((done) => waiting.push(() => done(['10.1.1.1'])))
        },
      }),
    )
    const slow = Array.from({ length: 200 }, (_, index) => resolve(`slow${index}`, LIVE))
    await waitUntil(() => running === 2, 'two look-ups')
    expect(await resolve('m8', LIVE)).toEqual(['10.0.0.8', '::8'])
    expect(running).toBe(2)
    await waitUntil(() => {
      for (const done of waiting.splice(0)) done()
      return running === 200
    }, 'all look-ups')
    for (const done of waiting.splice(0)) done()
    await Promise.all(slow)
  })

  it('releases a host that stops waiting', async () => {
    const abort = new AbortController()
    const answer = createNameResolver(sources({ query: () => new Promise(() => {}) }))('m9', abort.signal)
    abort.abort(new Error('enough'))
    await expect(answer).rejects.toThrow('enough')
  })
})
