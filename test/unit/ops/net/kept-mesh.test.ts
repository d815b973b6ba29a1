/** Which kept results say how fast the links between hosts of a job are. */
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { resultsDirectory } from '../../../../src/ops/net/kept-results.ts'
import { keepMesh, type MeshPlace, measuredLinks } from '../../../../src/ops/net/mesh/kept-mesh.ts'
import type { LinkOutcome } from '../../../../src/ops/net/mesh/link.ts'

const DAY_MS = 24 * 3_600_000
const NOW_MS = Date.UTC(2026, 10, 30)
const ADDRESSES = { m1: '10.0.0.1', m2: '10.0.0.2', m3: 'm3' }

describe('measured links', () => {
  let environment: Readonly<Record<string, string>>
  beforeEach(() => {
    environment = { XDG_STATE_HOME: mkdtempSync(join(tmpdir(), 'muster-kept-')) }
  })
  afterEach(() => rmSync(environment.XDG_STATE_HOME ?? '', { recursive: true }))

  type Kept = Partial<MeshPlace> & { way?: string; daysAgo?: number; mbit?: number; slow?: LinkOutcome }
  const keep = ({ way = 'tcp, 1 streams', daysAgo = 1, mbit = 941, slow, addresses = ADDRESSES, at }: Kept) => {
    const names = Object.keys(addresses)
    const outcome = { kind: 'measured', tool: 'iperf3', bitsPerSecond: mbit * 1e6 } as const
    const links = names.flatMap((from) =>
      names
        .filter((to) => to !== from)
        .map((to) => ({ from, to, outcome: from === 'm1' && to === 'm2' && slow ? slow : outcome })),
    )
    const report = { hosts: [], links, pings: [] }
    const place = { addresses, ...(at === undefined ? {} : { at }) }
    return keepMesh(environment, report, way, NOW_MS - daysAgo * DAY_MS, place)
  }
  const find = (addresses: Readonly<Record<string, string>> = ADDRESSES, at?: string) =>
    measuredLinks(environment, new Map(Object.entries(addresses)), at, NOW_MS)

  it('are those of the newest result that covers the hosts', () => {
    expect(find()).toBeUndefined()
    keep({ daysAgo: 3, mbit: 100 })
    keep({ daysAgo: 2, mbit: 200 })
    keep({ daysAgo: 1, addresses: { m1: '10.0.0.1', m2: '10.0.0.2' }, mbit: 300 })
    expect(find()?.speed('m1', 'm3')).toBe(200e6)
    expect(find()?.timeMs).toBe(NOW_MS - 2 * DAY_MS)
    expect(find({ m2: '10.0.0.2', m1: '10.0.0.1' })?.speed('m2', 'm1')).toBe(300e6)
    expect(find({ m1: '10.0.0.1', m9: '10.0.0.9' })).toBeUndefined()
  })

  it('are not those of other hosts that had the names, nor of old results', () => {
    keep({ addresses: { ...ADDRESSES, m2: '10.0.0.7' } })
    keep({ daysAgo: 31 })
    expect(find()).toBeUndefined()
  })

  it('are those of the same network, over TCP', () => {
    keep({ at: '10.9.0.0/16', mbit: 10_000 })
    keep({ way: 'udp 100000000, 1 streams', daysAgo: 2 })
    expect(find()).toBeUndefined()
    expect(find(ADDRESSES, '10.9.0.0/16')?.speed('m3', 'm1')).toBe(10e9)
  })

  it('are unknown where a link failed, and none where the measurement was interrupted', () => {
    keep({ slow: { kind: 'failed', cause: 'no-answer', reason: 'a firewall drops it' }, daysAgo: 2 })
    const links = find()
    expect([links?.speed('m1', 'm2'), links?.speed('m2', 'm1')]).toEqual([undefined, 941e6])
    keep({ slow: { kind: 'failed', cause: 'cancelled', reason: 'interrupted' } })
    expect(find()?.timeMs).toBe(NOW_MS - 2 * DAY_MS)
  })

  it('are not taken from damaged files, those of earlier versions, or where others can write', () => {
    const path = keep({})
    const { addresses: _, ...earlier } = JSON.parse(readFileSync(path, 'utf8')) as Record<string, unknown>
    for (const value of [earlier, { ...earlier, addresses: null }, { ...earlier, addresses: 'm1' }, null]) {
      writeFileSync(path, JSON.stringify(value))
      expect(find()).toBeUndefined()
    }
    keep({})
    expect(find()).toBeDefined()
    chmodSync(resultsDirectory(environment), 0o777)
    expect(find()).toBeUndefined()
  })
})
