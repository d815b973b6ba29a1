import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { allReduceS, findRing, formatRing, type LinkSpeed, orderOnRing } from '../../../../src/scheduler/launch/ring.ts'
import { randomRuns } from '../../../support/random-runs.ts'

const names = (count: number) => Array.from({ length: count }, (_, index) => `m${index + 1}`)

/** `FROM TO` → bit/s; all other links have `rest`. */
const speedsOf =
  (some: Readonly<Record<string, number | undefined>>, rest: number | undefined = 941e6): LinkSpeed =>
  (from, to) =>
    Object.hasOwn(some, `${from} ${to}`) ? some[`${from} ${to}`] : rest

/** Every ring, without a thought for speed. */
function ringsOf([first = '', ...others]: readonly string[]): readonly (readonly string[])[] {
  const orders = (rest: readonly string[]): string[][] =>
    rest.length === 0
      ? [[]]
      : rest.flatMap((one) => orders(rest.filter((x) => x !== one)).map((more) => [one, ...more]))
  return orders(others).map((order) => [first, ...order])
}

function judged(ring: readonly string[], speed: LinkSpeed) {
  const speeds = ring.map((from, index) => speed(from, ring[(index + 1) % ring.length] ?? ''))
  const known = speeds.filter((one) => one !== undefined)
  return { unmeasured: speeds.length - known.length, slowest: Math.min(...known) }
}

/** Random speeds of each direction, some unknown, by index. */
const meshes = (least: number, most: number) =>
  fc.integer({ min: least, max: most }).chain((count) =>
    fc
      .array(fc.option(fc.constantFrom(1e6, 10e6, 100e6, 941e6, 10e9), { nil: undefined, freq: 8 }), {
        minLength: count * count,
        maxLength: count * count,
      })
      .map((speeds) => {
        const hosts = names(count)
        const speed: LinkSpeed = (from, to) => speeds[hosts.indexOf(from) * count + hosts.indexOf(to)]
        return { hosts, speed }
      }),
  )

describe('the ring of a gang', () => {
  it('is as good as the best of all rings', () => {
    fc.assert(
      fc.property(meshes(2, 6), ({ hosts, speed }) => {
        const found = findRing(hosts, speed)
        const all = ringsOf(hosts).map((ring) => judged(ring, speed))
        const unmeasured = Math.min(...all.map((one) => one.unmeasured))
        if (found === undefined) {
          expect(unmeasured).toBe(hosts.length)
          return
        }
        const slowest = Math.max(...all.filter((one) => one.unmeasured === unmeasured).map((one) => one.slowest))
        expect(judged(found.hosts, speed)).toEqual({ unmeasured, slowest })
        expect([found.unmeasured ?? 0, found.bitsPerSecond]).toEqual([unmeasured, slowest])
        expect(found.hosts.toSorted()).toEqual(hosts.toSorted())
        expect(found.hosts[0]).toBe(hosts[0])
      }),
    )
  })

  it('is as good as the best of all rings within 5 %, where each link has a speed of its own', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 3, max: 6 }),
        fc.array(fc.integer({ min: 1000, max: 1e9 }), { minLength: 36, maxLength: 36 }),
        (count, speeds) => {
          const hosts = names(count)
          const speed: LinkSpeed = (from, to) => speeds[hosts.indexOf(from) * 6 + hosts.indexOf(to)]
          const best = Math.max(...ringsOf(hosts).map((ring) => judged(ring, speed).slowest))
          expect(findRing(hosts, speed)?.bitsPerSecond).toBeGreaterThanOrEqual(best / 1.05)
        },
      ),
    )
  })

  it('is never worse than the given order, above eight hosts either, and always the same', () => {
    fc.assert(
      fc.property(meshes(9, 14), ({ hosts, speed }) => {
        const found = findRing(hosts, speed)
        const given = judged(hosts, speed)
        if (found === undefined) {
          expect(given.unmeasured).toBe(hosts.length)
          return
        }
        const now = judged(found.hosts, speed)
        expect(now.unmeasured).toBeLessThanOrEqual(given.unmeasured)
        if (now.unmeasured === given.unmeasured) expect(now.slowest).toBeGreaterThanOrEqual(given.slowest)
        expect(found.hosts.toSorted()).toEqual(hosts.toSorted())
        expect(found.hosts[0]).toBe(hosts[0])
        expect(findRing(hosts, speed)).toEqual(found)
      }),
      { numRuns: randomRuns(30) },
    )
  })

  it('keeps the given order where no other one is faster, also if measurements differ a little', () => {
    const speeds = fc.integer({ min: 100e6, max: 100e9 })
    fc.assert(
      fc.property(fc.integer({ min: 2, max: 20 }), fc.integer({ min: 0, max: 1e6 }), speeds, (count, seed, least) => {
        const hosts = names(count)
        const speed: LinkSpeed = (from, to) => least + ((from.length * 31 + to.charCodeAt(1) * seed) % 3e6)
        expect(findRing(hosts, speed)?.hosts).toEqual(hosts)
      }),
      // Gigabit Ethernet.
      { examples: [[10, 551_019, 941e6]] },
    )
  })

  it('avoids the slow direction of one link among three hosts', () => {
    const ring = findRing(names(3), speedsOf({ 'm1 m2': 10e6 }))
    expect(ring).toEqual({ hosts: ['m1', 'm3', 'm2'], bitsPerSecond: 941e6 })
    expect(findRing(names(3), speedsOf({ 'm1 m3': 10e6 }))?.hosts).toEqual(['m1', 'm2', 'm3'])
  })

  it('avoids a link between two hosts that is slow in both directions', () => {
    const ring = findRing(names(4), speedsOf({ 'm2 m3': 10e6, 'm3 m2': 10e6 }))
    expect(ring?.bitsPerSecond).toBe(941e6)
    expect(ring?.hosts).toEqual(['m1', 'm2', 'm4', 'm3'])
  })

  it('crosses the slow uplink between two switches as rarely as it can', () => {
    const switchOf = (host: string) => Number(host.slice(1)) % 2
    const speed: LinkSpeed = (from, to) => (switchOf(from) === switchOf(to) ? 10e9 : 1e9)
    for (const count of [8, 64]) {
      const { hosts = [] } = findRing(names(count), speed) ?? {}
      const crossed = hosts.filter((host, index) => switchOf(host) !== switchOf(hosts[(index + 1) % count] ?? ''))
      expect(crossed).toHaveLength(2)
    }
  })

  it('finds a ring without slow links among 64 hosts of which every pair is slow one time in five', () => {
    const slow = (from: string, to: string) => (Number(from.slice(1)) * 37 + Number(to.slice(1)) * 51) % 5 === 0
    const speed: LinkSpeed = (from, to) => (slow(from, to) ? 10e6 : 941e6)
    const hosts = names(64)
    expect(judged(hosts, speed).slowest).toBe(10e6)
    expect(findRing(hosts, speed)?.bitsPerSecond).toBe(941e6)
  })

  it('counts what was not measured, and is unknown where nothing was', () => {
    expect(findRing(names(2), speedsOf({ 'm2 m1': undefined }))).toEqual({
      hosts: ['m1', 'm2'],
      bitsPerSecond: 941e6,
      unmeasured: 1,
    })
    expect(findRing(names(3), () => undefined)).toBeUndefined()
    expect(findRing(names(3), () => 0)).toBeUndefined()
    expect(findRing(['m1'], () => 1e9)).toBeUndefined()
  })

  it('predicts an all-reduce from the slowest link', () => {
    const ring = { hosts: ['m1', 'm3', 'm2'], bitsPerSecond: 941e6 }
    expect(allReduceS(ring, 100e6)).toBeCloseTo(1.134, 3)
    expect(formatRing(ring)).toBe(
      'm1 → m3 → m2 → m1, slowest 941 Mbit/s; an all-reduce of 100 MB takes about 1.1 s or longer',
    )
    expect(formatRing({ hosts: names(64), bitsPerSecond: 9.4e9, unmeasured: 2 })).toBe(
      'm1 → m2 → m3 → m4 → m5 → m6 → m7 → m8 → m9 → m10 → … → m64 → m1, slowest 9.4 Gbit/s (2 of 64 links not measured); an all-reduce of 100 MB takes about 0.17 s or longer',
    )
  })
})

describe('the places of a gang', () => {
  const on = (...hosts: readonly string[]) => hosts.map((host, device) => ({ host, devices: [device] }))
  const hostsOf = (places: readonly { readonly host: string }[]) => places.map(({ host }) => host).join(' ')
  const slow = speedsOf({ 'm1 m2': 10e6 })

  it('follow the ring in the direction in which ranks send', () => {
    const next = orderOnRing(on('m1', 'm2', 'm3'), [3], 'next', slow)
    expect(hostsOf(next.places)).toBe('m1 m3 m2')
    expect(next.ring).toEqual({ hosts: ['m1', 'm3', 'm2'], bitsPerSecond: 941e6 })
    // Rank 1 sends to rank 0, and so on: the data take the same way.
    const previous = orderOnRing(on('m1', 'm2', 'm3'), [3], 'previous', slow)
    expect(hostsOf(previous.places)).toBe('m1 m2 m3')
    expect(previous.ring).toEqual(next.ring)
  })

  it('of one host become adjacent, and keep their order and devices', () => {
    const { places } = orderOnRing(on('m1', 'm2', 'm3', 'm1', 'm2', 'm3'), [6], 'next', slow)
    expect(places).toEqual(
      [0, 3, 2, 5, 1, 4].map((device) => ({ host: ['m1', 'm2', 'm3'][device % 3], devices: [device] })),
    )
  })

  it('of each role stay among themselves, and the largest role has the ring', () => {
    const { places, ring } = orderOnRing(on('m4', 'm1', 'm2', 'm3', 'm2', 'm1'), [1, 3, 2], 'next', slow)
    expect(hostsOf(places)).toBe('m4 m1 m3 m2 m2 m1')
    expect(ring?.hosts).toEqual(['m1', 'm3', 'm2'])
  })

  it('stay where nothing was measured', () => {
    const places = on('m1', 'm2', 'm1', 'm3')
    expect(orderOnRing(places, [4], 'next', () => undefined)).toEqual({ places, ring: undefined })
  })
})
