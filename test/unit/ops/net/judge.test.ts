/** Meshes with one thing wrong each, and the words for it. */
import { chmodSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { timeText } from '../../../../src/base/time-text.ts'
import { resultsDirectory } from '../../../../src/ops/net/kept-results.ts'
import { formatMesh, meshCsv, meshSvg, PLAIN_PAINT } from '../../../../src/ops/net/mesh/format-mesh.ts'
import { judgeMesh } from '../../../../src/ops/net/mesh/judge.ts'
import { concludeMesh, keepMesh, readKept, reportOfKept } from '../../../../src/ops/net/mesh/kept-mesh.ts'
import { failed, type LinkResult, type Measured } from '../../../../src/ops/net/mesh/link.ts'
import type { MeshReport, ReadyHost } from '../../../../src/ops/net/mesh/measure-mesh.ts'

const NAMES = ['m1', 'm2', 'm3', 'm4', 'm5']

type Rate = (
  from: string,
  to: string,
) => number | Partial<Measured> | Exclude<LinkResult['outcome'], { kind: 'measured' }>

const host = (name: string, card: ReadyHost['place']['card'] = { name: 'eth0', mtuBytes: 1500 }): ReadyHost => ({
  name,
  facts: { addresses: [], cards: [], hasPing: true, hasTimeout: true },
  place: { address: '10.0.0.1', card },
})

function mesh(rate: Rate, hosts: MeshReport['hosts'] = NAMES.map((name) => host(name))): MeshReport {
  const names = hosts.map(({ name }) => name)
  const links = names.flatMap((from) =>
    names.flatMap((to): LinkResult[] => {
      if (from === to) return []
      const value = rate(from, to)
      if (typeof value === 'object' && 'kind' in value) return [{ from, to, outcome: value }]
      const measured = typeof value === 'number' ? { bitsPerSecond: value * 1e6 } : { bitsPerSecond: 941e6, ...value }
      return [{ from, to, outcome: { kind: 'measured', tool: 'iperf3', ...measured } }]
    }),
  )
  return { hosts, links, pings: [] }
}

const words = (report: MeshReport) => judgeMesh(report).map(({ id, text }) => `${id}: ${text}`)

describe('the findings of a mesh', () => {
  it('are none if all links are alike', () => {
    expect(words(mesh(() => 941))).toEqual([])
  })

  it('name a slow host, not its many slow links', () => {
    expect(words(mesh((from, to) => (from === 'm3' || to === 'm3' ? 94 : 941)))).toEqual([
      'slow-host: m3 is slow to and from all hosts: it sends at most 94 Mbit/s and receives at most 94 Mbit/s, the others usually 941 Mbit/s: its card, its cable or its port at the switch',
    ])
  })

  it('blame no host of which one link each way was measured, as after Ctrl-C', () => {
    const rate = (from: string) => (from === 'm2' ? 700 : 941)
    expect(words(mesh(rate))).toEqual(['asymmetric-host: m2 sends at most 700 Mbit/s and receives at most 941 Mbit/s'])
    const measured = ['m1 m2', 'm2 m3', 'm3 m1']
    const stopped = mesh((from, to) =>
      measured.includes(`${from} ${to}`) ? rate(from) : failed('cancelled', 'stopped'),
    )
    expect(words(stopped).join()).not.toContain('m2 sends')
  })

  it('name a host that is slow in one direction', () => {
    expect(words(mesh((from) => (from === 'm3' ? 200 : 941)))).toEqual([
      'slow-sender: m3 sends slowly to all hosts: at most 200 Mbit/s, the others usually 941 Mbit/s; it receives 941 Mbit/s',
    ])
    expect(words(mesh((_, to) => (to === 'm3' ? 200 : 941)))[0]).toContain('slow-receiver: m3 receives slowly')
  })

  it('name a single slow pair, in both directions or in one', () => {
    const isPair = (from: string, to: string) => [from, to].toSorted().join() === 'm2,m4'
    expect(words(mesh((from, to) => (isPair(from, to) ? 100 : 941)))).toEqual([
      'slow-link: m2 ↔ m4 is slow: 100 Mbit/s, though with others both reach 941 Mbit/s: the path between these two',
    ])
    expect(words(mesh((from, to) => (from === 'm4' && to === 'm2' ? 100 : 941)))).toEqual([
      'slow-link: m4 → m2 is slow: 100 Mbit/s, though with others both reach 941 Mbit/s: the path between these two; m2 → m4 is not: 941 Mbit/s',
    ])
  })

  it('blame no host for the only link that was measured before the measurement was stopped', () => {
    const slow = ['m5 m2', 'm6 m1', 'm4 m3']
    const rates = new Map([...slow.map((pair) => [pair, 100] as const), ['m1 m6', 941], ['m2 m5', 941], ['m3 m4', 941]])
    const stopped = { kind: 'failed', cause: 'cancelled', reason: 'stopped' } as const
    const hosts = ['m1', 'm2', 'm3', 'm4', 'm5', 'm6'].map((name) => host(name))
    const found = words(mesh((from, to) => rates.get(`${from} ${to}`) ?? stopped, hosts))
    expect(found.filter((each) => each.includes('all hosts'))).toEqual([])
    expect(found.filter((each) => each.startsWith('slow-link'))).toEqual([
      'slow-link: m6 → m1 is slow: 100 Mbit/s, the others usually 941 Mbit/s; too few other links were measured to tell why',
      'slow-link: m5 → m2 is slow: 100 Mbit/s, the others usually 941 Mbit/s; too few other links were measured to tell why',
      'slow-link: m4 → m3 is slow: 100 Mbit/s, the others usually 941 Mbit/s; too few other links were measured to tell why',
    ])
  })

  it('name an asymmetry over a fifth, also between only two hosts', () => {
    expect(words(mesh((from, to) => (from === 'm4' && to === 'm2' ? 700 : 941)))).toEqual([
      'asymmetric-link: m4 → m2 is 26 % slower than m2 → m4: 700 Mbit/s against 941 Mbit/s',
    ])
    expect(words(mesh((from) => (from === 'm1' ? 800 : 941), [host('m1'), host('m2')]))).toEqual([])
  })

  it('name an asymmetric link between two hosts, and blame neither', () => {
    const lopsided: Rate = (from) => (from === 'm1' ? 191 : 16_400)
    const words = ({ hosts, links, pings }: MeshReport) =>
      judgeMesh({ hosts, links, pings }).map(({ gravity, id, text }) => [gravity, id, text])
    const finding = ['risk', 'asymmetric-link', 'm1 → m2 is 99 % slower than m2 → m1: 191 Mbit/s against 16.4 Gbit/s']
    expect(words(mesh(lopsided, [host('m1'), host('m2')]))).toEqual([finding])
    const away = { name: 'm3', cause: 'away' as const, reason: 'timed out' }
    const failed = { kind: 'failed', cause: 'away', reason: 'm3: timed out' } as const
    const withThird = mesh(
      (from, to) => (from === 'm3' || to === 'm3' ? failed : lopsided(from, to)),
      [host('m1'), host('m2'), away],
    )
    expect(words(withThird)).toEqual([['blocker', 'away', 'm3 was not measured: timed out'], finding])
  })

  it('name the host that was lost, and why', () => {
    const lost = { kind: 'failed', cause: 'away', reason: 'm3: lost: the server closed the connection' } as const
    const report = mesh((from, to) => ([from, to].includes('m3') ? lost : 941), [host('m1'), host('m2'), host('m3')])
    expect(words(report)).toEqual([
      'lost: m3 was lost while it was measured (the server closed the connection); 4 links not measured',
    ])
  })

  it('name the links whose ends report different rates, and blame no other host', () => {
    const lies = (from: string) =>
      from === 'm2' ? { bitsPerSecond: 941e6, disputedBitsPerSecond: 4705e6 } : { bitsPerSecond: 941e6 }
    expect(words(mesh(lies, [host('m1'), host('m2'), host('m3')]))).toEqual([
      'disputed-rate: the two ends do not report the same rate, and the lower one counts: m2 → m1 941 Mbit/s or 4.71 Gbit/s, m2 → m3 941 Mbit/s or 4.71 Gbit/s',
    ])
  })

  it('name the receiver of a link of unknown rate, and blame no host', () => {
    const report = mesh((from) => (from === 'm3' ? { kind: 'failed', cause: 'unsteady', reason: 'unknown' } : 200))
    expect(judgeMesh(report).map(({ gravity, id, text }) => [gravity, id, text])).toEqual(
      ['m1', 'm2', 'm4', 'm5'].map((to) => ['risk', 'unsteady', `m3 → ${to}: unknown`]),
    )
  })

  it('distinguish slow hosts of different speeds', () => {
    const rates: Readonly<Record<string, number>> = { m1: 1000, m2: 900, m3: 800, m4: 700, m5: 100 }
    const found = words(mesh((from, to) => Math.min(rates[from] ?? 0, rates[to] ?? 0)))
    expect(found).toHaveLength(1)
    expect(found[0]).toContain('slow-host: m5')
  })

  it('name the rate that a card has negotiated', () => {
    const cards = NAMES.map((name) =>
      host(name, { name: 'eno1', mtuBytes: 1500, linkBitsPerSecond: name === 'm2' ? 1e8 : 1e9 }),
    )
    const found = words(mesh((from, to) => (from === 'm2' || to === 'm2' ? 94 : 941), cards))
    expect(found).toContain(
      'slow-card: m2: eno1 has auto-negotiated 100 Mbit/s only, the others 1 Gbit/s: its cable, or its port at the switch',
    )
    const half = [host('m1', { name: 'eth0', isHalfDuplex: true, linkBitsPerSecond: 1e9 }), host('m2')]
    expect(words(mesh(() => 300, half))).toEqual([
      'half-duplex: m1: eth0 has negotiated half duplex: it cannot send and receive at the same time',
      'below-card: m1 reaches 300 Mbit/s at best, 30 % of the 1 Gbit/s that eth0 has negotiated',
    ])
  })

  it('judge UDP by the rate that was asked for, not by the card', () => {
    const card = { name: 'eth0', mtuBytes: 1500, linkBitsPerSecond: 1e10 }
    const udp = (rate: Rate) => ({ ...mesh(rate, [host('m1', card), host('m2', card)]), udpBitsPerSecond: 20e6 })
    expect(words(udp(() => ({ bitsPerSecond: 19.99e6, cpuFraction: 1 })))).toEqual([])
    const lossy = udp((from) => (from === 'm1' ? { bitsPerSecond: 15e6, lostFraction: 0.25 } : 20))
    expect(words(lossy)).toEqual([
      'below-rate: less than the 20 Mbit/s of --udp arrived: m1 → m2 15 Mbit/s',
      'loss: packet loss: m1 → m2 25 %',
      'asymmetric-link: m1 → m2 is 25 % slower than m2 → m1: 15 Mbit/s against 20 Mbit/s',
    ])
    expect(formatMesh(lossy, [], 80, PLAIN_PAINT)).toContain('UDP at 20 Mbit/s · median 17.5 Mbit/s')
    const heats: string[] = []
    const paint = { ...PLAIN_PAINT, heat: (heat: string) => String(heats.push(heat)) }
    formatMesh(
      udp(() => 10),
      [],
      80,
      paint,
    )
    expect(heats).toEqual(['poor', 'poor'])
  })

  it('name a different MTU, or a smaller one on the way', () => {
    const hosts = NAMES.map((name) => host(name, { name: 'eth0', mtuBytes: name === 'm5' ? 1500 : 9000 }))
    expect(words(mesh(() => 941, hosts))[0]).toBe(
      'mtu-differs: the MTU differs: m[1-4] 9000, m5 1500: large packets may vanish between them',
    )
    const pings = [
      { from: 'm1', to: 'm2', lostFraction: 0, meanMs: 0.2, isWhole: false },
      { from: 'm2', to: 'm1', lostFraction: 0, meanMs: 0.2, isWhole: false },
    ]
    expect(words({ ...mesh(() => 941), pings })).toHaveLength(1)
  })

  it('name loss and retransmits', () => {
    const found = words(
      mesh((from) => (from === 'm1' ? { sentBytes: 1e9, retransmits: 5000, lostFraction: 0.05 } : 941)),
    )
    expect(found).toEqual([
      'loss: packet loss: m1 → m2 5 %, m1 → m3 5 %, m1 → m4 5 % and 1 more',
      'retransmits: retransmits: m1 → m2 5000 a GB, m1 → m3 5000 a GB, m1 → m4 5000 a GB and 1 more',
    ])
  })

  it('name what could not be measured, once per host and reason', () => {
    const hosts = [
      ...NAMES.slice(0, 4).map((name) => host(name)),
      { name: 'm5', cause: 'away' as const, reason: 'timed out' },
    ]
    const report = mesh((from, to) => {
      if ([from, to].includes('m5')) return { kind: 'failed', cause: 'away', reason: 'm5: timed out' }
      return to === 'm2' ? { kind: 'failed', cause: 'no-answer', reason: 'a firewall' } : 941
    }, hosts)
    expect(words(report)).toEqual(['away: m5 was not measured: timed out', 'no-answer: m[1,3-4] → m2: a firewall'])
  })
})

describe('a mesh on a screen', () => {
  const report = mesh((from, to) => (from === 'm3' || to === 'm3' ? 94 : 941))

  it('is a matrix with names if it fits, and one of bars if not', () => {
    const wide = formatMesh(report, judgeMesh(report), 80, PLAIN_PAINT)
    expect(wide.split('\n').slice(0, 3)).toEqual([
      'from ↓ to    m1    m2    m3    m4    m5',
      'm1            ·  941M   94M  941M  941M',
      'm2         941M     ·   94M  941M  941M',
    ])
    expect(wide).toContain('risk     m3 is slow to and from all hosts')
    const narrow = formatMesh(report, [], 30, PLAIN_PAINT)
    expect(narrow).toContain('m1  1     · █ ▁ █ █\n')
    for (const line of narrow.split('\n').slice(0, 7)) expect(line.length).toBeLessThanOrEqual(30)
    const names = Array.from({ length: 60 }, (_, index) => host(`gpu${index + 1}`))
    const many = formatMesh(
      mesh(() => 941, names),
      [],
      80,
      PLAIN_PAINT,
    ).split('\n')
    expect(many[11]).toBe(`gpu10 10 ${'█'.repeat(9)}·${'█'.repeat(50)}`)
    for (const line of many.slice(0, 62)) expect(line.length).toBeLessThanOrEqual(80)
  })

  it('lets no text of a host act on the terminal, in a spreadsheet or in a browser', () => {
    const reason = '=cmd()\u001b[2J<script>","x'
    const hostile = mesh(() => ({ kind: 'failed', cause: 'broken', reason }))
    const findings = judgeMesh(hostile)
    for (const text of [
      formatMesh(hostile, findings, 80, PLAIN_PAINT),
      meshCsv(hostile),
      meshSvg(hostile, findings, 't'),
    ]) {
      expect(text).not.toContain('\u001b')
    }
    expect(meshCsv(hostile)).toContain(`"'=cmd()\\x1b[2J<script>"",""x"`)
    expect(meshSvg(hostile, findings, 't')).not.toContain('<script')
    const other = mesh(() => ({ kind: 'failed', cause: 'broken', reason: 'no;=1+1; @x a;b\uffff' }))
    expect(meshCsv(other)).toContain("no;'=1+1;' @x a;b")
    expect(meshSvg(other, [], 't')).not.toContain('\uffff')
  })
})

describe('earlier results', () => {
  let environment: { readonly XDG_STATE_HOME: string }
  beforeEach(() => {
    environment = { XDG_STATE_HOME: mkdtempSync(join(tmpdir(), 'muster-net-')) }
  })
  afterEach(() => rmSync(environment.XDG_STATE_HOME, { recursive: true }))

  const keep = (report: MeshReport, way: string, timeMs: number) =>
    keepMesh(environment, report, way, timeMs, { addresses: {} })
  const NOW_MS = Date.UTC(2026, 10, 30)
  const THEN_MS = Date.UTC(2026, 10, 14, 20, 15)
  /** The differences, without what the measurement says by itself. */
  const changes = (report: MeshReport, way = 'tcp') =>
    concludeMesh(environment, report, way, NOW_MS, { addresses: {} })
      .findings.filter(({ id }) => /before$/.test(id))
      .map(({ text }) => text)

  it('are readable by the user only, found by how they were measured, and compared', () => {
    const path = keep(
      mesh(() => 941),
      'tcp',
      THEN_MS,
    )
    keep(
      mesh(() => 5),
      'udp',
      THEN_MS + 1000,
    )
    expect(statSync(path).mode & 0o777).toBe(0o600)
    writeFileSync(join(resultsDirectory(environment), 'mesh-2026-12-31T00-00-00.000Z.json'), '{"version":1')
    const then = timeText(THEN_MS, NOW_MS)
    const others = mesh(() => 5, [host('x1'), host('x2')])
    expect(changes(others)).toEqual([])
    expect(changes(mesh((from, to) => (from === 'm1' && to === 'm2' ? 94 : 941)))).toEqual([
      `slower than at ${then}: m1 → m2 941 Mbit/s → 94 Mbit/s`,
    ])
    expect(changes(mesh(() => 5))).toEqual([expect.stringContaining('slower than at')])
    // Whoever can write there could leave a pipe that hangs, or a file without end.
    chmodSync(resultsDirectory(environment), 0o777)
    expect(changes(mesh(() => 5))).toEqual([])
  })

  it('are compared link by link, each with the last time that it was measured', () => {
    keep(
      mesh(() => 941, [host('m1'), host('m2'), host('m3')]),
      'tcp',
      THEN_MS,
    )
    keep(
      mesh(() => 930, [host('m1'), host('m2')]),
      'tcp',
      THEN_MS + 60_000,
    )
    const [first, second] = [THEN_MS, THEN_MS + 60_000].map((ms) => timeText(ms, NOW_MS))
    const report = mesh((from, to) => (from === 'm1' && to === 'm3' ? 94 : 941), [host('m1'), host('m2'), host('m3')])
    const { earlier } = concludeMesh(environment, report, 'udp', NOW_MS, { addresses: {} })
    expect(earlier).toBeUndefined()
    expect(changes(report)).toEqual([
      `slower than at ${first}: m1 → m3 941 Mbit/s → 94 Mbit/s`,
      `as fast as at ${second}, within 20 % on 2 of 6 links`,
    ])
  })

  it.each(['away', 'no-address'] as const)('name a host that was not measured, as they did then: %s', (cause) => {
    const reason = 'none in 10.0.0.0/24'
    const away = failed(cause, `m3: ${reason}`)
    const report = mesh(
      (from, to) => (from === 'm3' || to === 'm3' ? away : 941),
      [host('m1'), host('m2'), { name: 'm3', cause, reason }],
    )
    const kept = readKept(keep(report, 'tcp', THEN_MS))
    expect(judgeMesh(report)).toMatchObject([{ id: cause, text: `m3 was not measured: ${reason}` }])
    expect(kept && judgeMesh(reportOfKept(kept))).toEqual(judgeMesh(report))
  })

  it('have the findings of their day, also those about cards, and none where a card cannot be read', () => {
    const card = { name: 'eth0', mtuBytes: 1500, linkBitsPerSecond: 1e10 }
    const path = keep(
      mesh(() => 20, [host('m1', card), host('m2', card)]),
      'tcp',
      THEN_MS,
    )
    const judged = () => {
      const kept = readKept(path)
      return kept && judgeMesh(reportOfKept(kept)).map(({ text }) => text)
    }
    expect(judged()).toContain('m1 reaches 20 Mbit/s at best, 0.2 % of the 10 Gbit/s that eth0 has negotiated')
    const udp = readKept(
      keep(
        mesh(() => 20, [host('m1', card), host('m2', card)]),
        'udp 20000000, 1 streams',
        THEN_MS + 1,
      ),
    )
    expect(udp && judgeMesh(reportOfKept(udp))).toEqual([])
    const kept = JSON.parse(readFileSync(path, 'utf8')) as object
    for (const cards of [undefined, 'eth0', { m1: 'eth0', m2: { name: 1 } }]) {
      writeFileSync(path, JSON.stringify({ ...kept, cards }))
      expect(judged()).toEqual([])
    }
  })
})
