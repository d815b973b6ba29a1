/** Chains among helpers that answer, fall silent and die as the test says, with a fake clock: no host waits for ever. */
import { setImmediate } from 'node:timers/promises'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { Chain } from '../../../../src/ssh/copy/chain.ts'
import type { PathEvent } from '../../../../src/ssh/copy/events.ts'
import { type LinkHelper, Links, type Peer } from '../../../../src/ssh/copy/links.ts'
import type { HelperMessage } from '../../../../src/ssh/copy/remote-helper.ts'
import type { CopySource } from '../../../../src/ssh/copy/source.ts'
import { ManualClock } from '../manual-clock.ts'

const MIB = 1024 * 1024
const SIZE_BYTES = 64 * MIB
const HOSTS = ['m1', 'm2', 'm3', 'm4', 'm5']

type Order = { readonly op: string; readonly link?: number; readonly file?: number; readonly from?: number }

class FakeHelper implements LinkHelper {
  readonly orders: Order[] = []
  isLost = false
  links: 'made' | 'refused' | 'unanswered' = 'made'
  isMeasured = true
  bitsPerSecond = 100_000_000
  readonly #chain: FakeCluster
  #listener: (message: HelperMessage | undefined) => void = () => {}

  constructor(chain: FakeCluster) {
    this.#chain = chain
  }

  onMessage(listener: (message: HelperMessage | undefined) => void): void {
    this.#listener = listener
  }

  send(order: Order): void {
    if (this.isLost) return
    this.orders.push(order)
    const { op, link = 0 } = order
    if (op === 'listen') this.#answer({ link, at: ['127.0.0.1', 1] })
    if (op === 'connect') this.#chain.listener(link)?.say({ link, up: true })
    if (op === 'probe' && this.isMeasured) this.#chain.listener(link)?.say({ link, probe: [this.bitsPerSecond / 8, 1] })
  }

  /** What it has not answered yet, and from now on everything. */
  answerLinks(): void {
    this.links = 'made'
    for (const { op, link = 0 } of [...this.orders]) if (op === 'listen') this.#answer({ link, at: ['127.0.0.1', 1] })
  }

  say(message: HelperMessage): void {
    if (!this.isLost) this.#listener(message)
  }

  lose(): void {
    if (this.isLost) return
    this.isLost = true
    this.#listener(undefined)
  }

  #answer(message: HelperMessage): void {
    if (this.links === 'made') queueMicrotask(() => this.say(message))
    else if (this.links === 'refused') queueMicrotask(() => this.say({ link: message.link ?? 0, error: 'no route' }))
  }
}

/** Hosts whose part in one file goes as in send-file.ts, a step at a time. */
class FakeCluster {
  readonly clock = new ManualClock()
  readonly events: PathEvent[] = []
  readonly chain: Chain
  readonly file = { kind: 'file', sizeBytes: SIZE_BYTES, isSparse: false } as CopySource
  readonly hosts = new Map<string, FakeHost>()

  constructor(via: 'auto' | 'chain') {
    this.chain = new Chain({ via, clock: this.clock, hosts: HOSTS, onPath: (event) => this.events.push(event) })
  }

  host(name: string): FakeHost {
    const host = this.hosts.get(name) ?? new FakeHost(name, this)
    this.hosts.set(name, host)
    return host
  }

  listener(link: number): FakeHelper | undefined {
    const isListening = (helper: FakeHelper) =>
      helper.orders.some((order) => order.op === 'listen' && order.link === link)
    return [...this.hosts.values()].map(({ helper }) => helper).find(isListening)
  }

  /** Undefined: from here. */
  sourceOf(name: string): string | undefined {
    const isServing = ({ helper }: FakeHost) => {
      const served = helper.orders.findLast(
        ({ op, link = 0 }) => op === 'serve' && this.listener(link) === this.host(name).helper,
      )
      return served !== undefined && !helper.orders.some(({ op, link }) => op === 'drop' && link === served.link)
    }
    return [...this.hosts.values()].find(isServing)?.name
  }

  async pass(ms: number): Promise<void> {
    for (let left = ms; left > 0; left -= 100) {
      this.clock.advance(Math.min(left, 100))
      await setImmediate()
    }
  }

  /** Hosts that this machine sends to get everything, and pass nothing on: returns the hosts that are still not done. */
  async finish(): Promise<readonly string[]> {
    const unfinished = () => [...this.hosts.values()].filter(({ isOver }) => !isOver)
    for (let round = 0; round < 200 && unfinished().length > 0; round += 1) {
      for (const host of unfinished()) host.step(SIZE_BYTES)
      await this.pass(1000)
    }
    return unfinished().map(({ name }) => name)
  }
}

class FakeHost {
  readonly name: string
  readonly helper: FakeHelper
  isOver = false
  isReleased = false
  readonly #cluster: FakeCluster
  readonly #hop
  #have = 0
  #isWaiting = false

  constructor(name: string, cluster: FakeCluster) {
    this.name = name
    this.#cluster = cluster
    this.helper = new FakeHelper(cluster)
    cluster.chain.add(name, '127.0.0.1', this.helper)
    this.#hop = cluster.chain.join(name, cluster.file, '.muster', 0, () => {})
  }

  get have(): number {
    return this.#have
  }

  get allowedBytes(): number | undefined {
    return this.#hop?.allowedBytes
  }

  /** What the shell was sent, or that it waits now. */
  step(bytes: number): void {
    if (this.isOver || this.#isWaiting) return
    if (this.#hop?.isRelayed === true) {
      this.#isWaiting = true
      void this.#hop.relayed(this.#have).then((have) => {
        this.#have = have
        this.#isWaiting = false
        if (have === SIZE_BYTES) this.leave()
      })
      return
    }
    this.#have = Math.min(SIZE_BYTES, this.#have + bytes)
    this.#hop?.advance(this.#have)
    if (this.#have === SIZE_BYTES) this.leave()
  }

  leave(): void {
    if (this.isOver) return
    this.isOver = true
    this.#hop?.leave()
    void this.#cluster.chain.released(this.name).then(() => {
      this.isReleased = true
    })
  }

  /** Its helper has got so much of the file from another. */
  receive(have: number): void {
    const file = this.helper.orders.findLast(({ op }) => op === 'file')?.file
    if (file !== undefined) this.helper.say({ file, have })
  }

  break(): void {
    const file = this.helper.orders.findLast(({ op }) => op === 'file')?.file
    if (file !== undefined) this.helper.say({ file, error: 'No space left on device' })
  }

  loseLink(): void {
    const link = this.helper.orders.findLast(({ op }) => op === 'serve')?.link
    if (link !== undefined) this.helper.say({ link, error: 'the link was closed' })
  }
}

const startChain = async (
  via: 'auto' | 'chain',
  bytesOf: (name: string) => number = () => MIB,
): Promise<FakeCluster> => {
  const cluster = new FakeCluster(via)
  for (const name of HOSTS) cluster.host(name)
  for (const name of HOSTS) cluster.host(name).step(bytesOf(name))
  await cluster.pass(800)
  for (const host of cluster.hosts.values()) host.step(0)
  await cluster.pass(100)
  return cluster
}

describe('a chain', () => {
  it('is used where links between hosts are faster, with the slow host at the end', async () => {
    const cluster = await startChain('auto', (name) => (name === 'm2' ? MIB / 8 : MIB))
    expect(cluster.events).toMatchObject([{ via: 'chain', hosts: ['m1', 'm3', 'm4', 'm5', 'm2'] }])
    expect(HOSTS.map((name) => cluster.sourceOf(name))).toEqual([undefined, 'm5', 'm1', 'm3', 'm4'])
  })

  it('does not hold back a host while too few others are left for a chain', async () => {
    const cluster = new FakeCluster('auto')
    const host = cluster.host('m1')
    host.step(MIB)
    expect(host.allowedBytes).toBeLessThan(MIB)
    for (const name of ['m2', 'm3', 'm4']) cluster.chain.exclude(name)
    expect(host.allowedBytes).toBe(Number.POSITIVE_INFINITY)
  })

  it('is not used if they are no faster', async () => {
    const cluster = new FakeCluster('auto')
    for (const name of HOSTS) cluster.host(name).helper.bitsPerSecond = 1_000_000
    for (const name of HOSTS) cluster.host(name).step(MIB)
    await cluster.pass(800)
    expect(cluster.events).toEqual([{ via: 'direct', reason: 'the links between the hosts are no faster' }])
    expect(await cluster.finish()).toEqual([])
  })

  it('lets a slow host finish after all others', async () => {
    const cluster = await startChain('auto', (name) => (name === 'm5' ? MIB / 8 : MIB))
    cluster.host('m1').step(SIZE_BYTES)
    for (const name of ['m2', 'm3', 'm4']) cluster.host(name).receive(SIZE_BYTES)
    await cluster.pass(100)
    expect(HOSTS.filter((name) => !cluster.host(name).isOver)).toEqual(['m5'])
    // Its source stays for it.
    expect(HOSTS.filter((name) => !cluster.host(name).isReleased)).toEqual(['m4', 'm5'])
    cluster.host('m5').receive(SIZE_BYTES)
    await cluster.pass(100)
    expect(HOSTS.filter((name) => !cluster.host(name).isReleased)).toEqual([])
  })

  it('sends from this machine to a host that comes after all others have finished', async () => {
    const cluster = new FakeCluster('auto')
    for (const name of HOSTS.slice(0, 4)) cluster.host(name).step(MIB)
    await cluster.pass(900)
    for (const host of cluster.hosts.values()) host.step(SIZE_BYTES)
    for (const host of cluster.hosts.values()) host.receive(SIZE_BYTES)
    await cluster.pass(100)
    expect([...cluster.hosts.values()].every(({ isOver }) => isOver)).toBe(true)
    cluster.host('m5').step(SIZE_BYTES)
    await cluster.pass(100)
    expect(cluster.host('m5').isOver).toBe(true)
  })

  it.each([
    ['before it waits for the file', 0],
    ['while it waits for it', 1],
  ])('serves a host from here at once if its helper dies %s', async (_when, steps) => {
    const cluster = new FakeCluster('chain')
    for (const name of HOSTS) cluster.host(name).step(MIB)
    await cluster.pass(800)
    const host = cluster.host('m3')
    for (let step = 0; step < steps; step += 1) host.step(0)
    host.helper.lose()
    await setImmediate()
    host.step(SIZE_BYTES)
    expect(host.isOver).toBe(true)
  })

  it('keeps little in flight while links are made, and sends their orders together', async () => {
    const cluster = new FakeCluster('auto')
    for (const name of HOSTS) cluster.host(name).helper.links = 'unanswered'
    expect(cluster.host('m1').allowedBytes).toBe((3 * MIB) / 4)
    for (const name of HOSTS) cluster.host(name).step(MIB)
    await cluster.pass(800)
    expect(cluster.host('m1').allowedBytes).toBe(MIB / 16)
    for (const name of HOSTS) cluster.host(name).helper.answerLinks()
    await setImmediate()
    const { orders } = cluster.host('m1').helper
    expect(orders.filter(({ op }) => op === 'connect' || op === 'probe').map(({ op }) => op)).toEqual([
      'connect',
      'probe',
    ])
    await cluster.pass(100)
    expect(cluster.host('m1').allowedBytes).toBe(Number.POSITIVE_INFINITY)
  })

  it('does not wait long for a link that is too slow to be measured', async () => {
    const cluster = new FakeCluster('auto')
    cluster.host('m4').helper.isMeasured = false
    for (const name of HOSTS) cluster.host(name).step(MIB)
    await cluster.pass(800)
    expect(cluster.events).toEqual([])
    await cluster.pass(10_000)
    expect(cluster.events[0]).toMatchObject({ via: 'chain', hosts: HOSTS })
  })

  it('includes a host that comes while links are made', async () => {
    const cluster = new FakeCluster('auto')
    const [last = '', ...first] = HOSTS.toReversed()
    for (const name of first) cluster.host(name).helper.links = 'unanswered'
    for (const name of first) cluster.host(name).step(MIB)
    await cluster.pass(800)
    cluster.host(last).step(0)
    for (const name of first) cluster.host(name).helper.answerLinks()
    await cluster.pass(100)
    expect(cluster.events).toMatchObject([{ via: 'chain', hosts: first.toReversed() }])
    cluster.host(last).step(0)
    await cluster.pass(100)
    expect(first).toContain(cluster.sourceOf(last))
  })

  it.each([
    [4, []],
    [
      5,
      [
        { via: 'detour', host: 'm2', reason: 'm1 is slow' },
        { via: 'detour', host: 'm1', from: 'm5', reason: 'm1 is slow' },
      ],
    ],
  ])('bypasses a first host that accepts little only after more than 4 s (%s s)', async (seconds, detours) => {
    const cluster = await startChain('chain')
    const feed = async (bytes: number) => {
      cluster.host('m1').step(bytes)
      for (const name of HOSTS.slice(1)) cluster.host(name).receive(cluster.host('m1').have)
      await cluster.pass(1000)
    }
    await feed(4 * MIB)
    for (let second = 0; second < seconds; second += 1) await feed(MIB / 16)
    await feed(4 * MIB)
    expect(cluster.events.filter(({ via }) => via === 'detour')).toEqual(detours)
  })

  it('bypasses a host that stalls', async () => {
    const cluster = await startChain('chain')
    cluster.host('m1').step(SIZE_BYTES)
    for (let mebibytes = 8; mebibytes < 13; mebibytes += 1) {
      cluster.host('m2').receive(mebibytes * MIB)
      await cluster.pass(1000)
    }
    expect(cluster.events).toContainEqual({ via: 'detour', host: 'm3', from: 'm1', reason: 'nothing comes from m2' })
  })

  it('moves a host whose link becomes slow to the end, and the hosts behind it to its source', async () => {
    const cluster = await startChain('chain')
    for (let second = 1; second < 6; second += 1) {
      cluster.host('m1').step(8 * MIB)
      cluster.host('m2').receive((1 + second) * MIB)
      if (cluster.sourceOf('m3') === 'm1')
        for (const name of ['m3', 'm4', 'm5']) cluster.host(name).receive(8 * second * MIB)
      await cluster.pass(1000)
    }
    expect(HOSTS.map((name) => cluster.sourceOf(name))).toEqual([undefined, 'm5', 'm1', 'm3', 'm4'])
    expect(cluster.events.filter(({ via }) => via === 'detour')).toEqual([
      { via: 'detour', host: 'm3', from: 'm1', reason: 'm2 is slow' },
      { via: 'detour', host: 'm2', from: 'm5', reason: 'm2 is slow' },
    ])
  })

  it('takes nothing more from a host behind which two others were slow', async () => {
    const cluster = await startChain('chain')
    const have = new Map(HOSTS.map((name) => [name, MIB]))
    for (let second = 0; second < 8; second += 1) {
      cluster.host('m1').step(7 * MIB)
      for (const name of HOSTS) {
        const source = cluster.sourceOf(name)
        const most = source === undefined ? SIZE_BYTES : (have.get(source) ?? 0)
        have.set(name, Math.min(most, (have.get(name) ?? 0) + (source === 'm2' ? MIB : 7 * MIB)))
        if (source !== undefined) cluster.host(name).receive(have.get(name) ?? 0)
      }
      await cluster.pass(1000)
    }
    expect(HOSTS.filter((name) => cluster.sourceOf(name) === 'm2')).toEqual([])
    expect(cluster.events).toContainEqual({ via: 'detour', host: 'm4', from: 'm1', reason: 'm2 is slow' })
  })

  it('waits longer for a host whose link was slow from the start', async () => {
    const cluster = new FakeCluster('chain')
    for (const name of HOSTS) cluster.host(name).helper.bitsPerSecond = 100_000
    for (const name of HOSTS) cluster.host(name).step(MIB)
    await cluster.pass(500)
    for (const host of cluster.hosts.values()) host.step(0)
    for (let second = 0; second < 6; second += 1) {
      cluster.host('m1').step(4 * MIB)
      await cluster.pass(1000)
    }
    expect(cluster.events.filter(({ via }) => via === 'detour')).toEqual([])
  })

  it('bypasses a host that falls silent before it has acknowledged what this machine sent', async () => {
    const cluster = new FakeCluster('chain')
    for (const name of HOSTS) cluster.host(name).step(MIB)
    await cluster.pass(800)
    for (const name of HOSTS) if (name !== 'm2') cluster.host(name).step(0)
    cluster.host('m1').step(SIZE_BYTES)
    await cluster.pass(5000)
    expect(cluster.events).toContainEqual({
      via: 'detour',
      host: 'm3',
      from: 'm1',
      reason: 'm2 accepts no data',
    })
  })

  it('bypasses a host that cannot be reached, and never makes a circle', async () => {
    const cluster = new FakeCluster('chain')
    for (const name of HOSTS) cluster.host(name).step(MIB)
    cluster.host('m2').helper.links = 'refused'
    await cluster.pass(800)
    for (const host of cluster.hosts.values()) host.step(0)
    await cluster.pass(100)
    expect(cluster.events).toContainEqual({ via: 'detour', host: 'm2', reason: 'no route' })
    expect(HOSTS.map((name) => cluster.sourceOf(name))).toEqual([undefined, undefined, 'm2', 'm3', 'm4'])
  })

  it('leaves no host waiting, whatever happens', async () => {
    const name = fc.constantFrom(...HOSTS)
    const happening = fc.oneof(
      {
        weight: 5,
        arbitrary: fc.record({ what: fc.constant('step' as const), name, bytes: fc.integer({ min: 0, max: 8 * MIB }) }),
      },
      {
        weight: 5,
        arbitrary: fc.record({
          what: fc.constant('receive' as const),
          name,
          bytes: fc.integer({ min: 0, max: SIZE_BYTES }),
        }),
      },
      {
        weight: 4,
        arbitrary: fc.record({
          what: fc.constant('pass' as const),
          name,
          bytes: fc.integer({ min: 100, max: 30_000 }),
        }),
      },
      fc.record({
        what: fc.constantFrom('lose', 'leave', 'break', 'lose-link', 'refused', 'unanswered', 'made'),
        name,
        bytes: fc.constant(0),
      }),
    )
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom('auto', 'chain'),
        fc.array(happening, { maxLength: 40 }),
        async (via, happenings) => {
          const cluster = new FakeCluster(via)
          for (const each of happenings) {
            const host = cluster.host(each.name)
            if (each.what === 'step') host.step(each.bytes)
            else if (each.what === 'receive') host.receive(each.bytes)
            else if (each.what === 'pass') await cluster.pass(each.bytes)
            else if (each.what === 'lose') host.helper.lose()
            else if (each.what === 'leave') host.leave()
            else if (each.what === 'break') host.break()
            else if (each.what === 'lose-link') host.loseLink()
            else host.helper.links = each.what as 'made' | 'refused' | 'unanswered'
            await setImmediate()
          }
          expect(await cluster.finish()).toEqual([])
          await setImmediate()
          expect([...cluster.hosts.values()].filter(({ isReleased }) => !isReleased)).toEqual([])
        },
      ),
    )
  })

  it('ignores what a host says about links of others', async () => {
    const clock = new ManualClock()
    const lost: string[] = []
    const links = new Links(clock, (_, reason) => lost.push(reason))
    const orders = new Map<string, Order[]>(HOSTS.map((host) => [host, []]))
    const [m1, m2, liar] = HOSTS.map((host): Peer => {
      const helper = {
        isLost: false,
        onMessage() {},
        send: (order: object) => void orders.get(host)?.push(order as Order),
      }
      return { host, address: host, helper }
    }) as [Peer, Peer, Peer]
    const making = links.between(m1, m2)
    const claim = (peer: Peer, port: number) => {
      links.handle(peer, { link: 1, at: ['127.0.0.1', port] })
    }
    links.handle(liar, { link: 1, error: 'no route' })
    claim(liar, 6379)
    claim(m1, 6379)
    await setImmediate()
    expect(orders.get('m1')).toEqual([])
    claim(m2, 5000)
    await setImmediate()
    expect(orders.get('m1')).toContainEqual(expect.objectContaining({ op: 'connect', to: ['127.0.0.1', 5000] }))
    links.handle(liar, { link: 1, up: true })
    links.handle(liar, { link: 1, probe: [1e12, 1] })
    await setImmediate()
    links.handle(m2, { link: 1, up: true })
    links.handle(m2, { link: 1, probe: [1e6, 1] })
    expect((await making).bitsPerSecond).toBe(8e6)
    links.handle(liar, { link: 1, error: 'gone' })
    expect(lost).toEqual([])
    links.handle(m1, { link: 1, error: 'gone' })
    expect(lost).toEqual(['gone'])
  })
})
