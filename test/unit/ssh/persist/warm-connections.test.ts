import { describe, expect, it } from 'vitest'
import type { Endpoint } from '../../../../src/inventory/host.ts'
import { type Hold, NoRoom, WarmConnections } from '../../../../src/ssh/persist/warm-connections.ts'
import type { Connection } from '../../../../src/ssh/transport.ts'
import { endpointOf } from '../fake-transport.ts'
import { ManualClock } from '../manual-clock.ts'

describe('warm connections with few open files allowed', () => {
  const clock = new ManualClock()
  const closed: string[] = []
  const crowded: string[] = []
  let open = 0
  const warm = new WarmConnections(
    clock,
    () => {},
    () => open < 2,
  )
  const connectionTo = ({ host }: Endpoint): Connection => {
    open += 1
    const close = () => {
      open -= 1
      closed.push(host)
    }
    return { close } as unknown as Connection
  }
  const acquire = (host: string, persistMs: number): Promise<Hold> => {
    const endpoint = endpointOf(host)
    return warm.acquire({
      endpoint,
      persistMs,
      signal: new AbortController().signal,
      connect: async () => connectionTo(endpoint),
      onCrowded: () => crowded.push(host),
      onLost: () => {},
    })
  }

  it('end the unused one that would end first, and none that is in use', async () => {
    const one = await acquire('one', 60_000)
    const two = await acquire('two', 1_000)
    await expect(acquire('three', 60_000)).rejects.toThrow(NoRoom)
    expect(closed).toEqual([])
    one.release()
    two.release()
    const three = await acquire('three', 60_000)
    expect(closed).toEqual(['two'])
    await acquire('four', 60_000)
    expect(closed).toEqual(['two', 'one'])
    three.release()
    expect(warm.list().map(({ host }) => host)).toEqual(['three', 'four'])
    expect(crowded).toEqual(['three', 'three', 'four'])
  })

  it('end no more of them than are needed, although their files are closed later', async () => {
    const ended: string[] = []
    let files = 0
    using several = new WarmConnections(
      clock,
      () => {},
      (_, closing) => files - closing < 4,
    )
    const connectTo = async (host: string) => {
      const endpoint = endpointOf(host)
      const connect = async () => {
        files += 1
        return { close: () => ended.push(host) } as unknown as Connection
      }
      const { signal } = new AbortController()
      return several.acquire({ endpoint, persistMs: 1_000, signal, connect, onCrowded() {}, onLost() {} })
    }
    for (const host of ['one', 'two', 'three', 'four']) (await connectTo(host)).release()
    await connectTo('five')
    expect(ended).toEqual(['one'])
  })
})
