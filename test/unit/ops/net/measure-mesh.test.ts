/** The steps of a mesh, on stand-in hosts. */
import { expect, it } from 'vitest'
import { parseMeshFacts } from '../../../../src/ops/net/mesh/host-facts.ts'
import { type MeshEvent, measureMesh, remainingOf } from '../../../../src/ops/net/mesh/measure-mesh.ts'
import { clientScript, serverScript } from '../../../../src/ops/net/mesh/scripts.ts'
import { ManualClock } from '../../ssh/manual-clock.ts'
import { StandInHosts } from '../kernel/stand-in-hosts.ts'

const NAMES = ['m1', 'm2', 'm3', 'm4']

async function measure(away: ReadonlySet<string>, signal = new AbortController().signal) {
  const events: MeshEvent[] = []
  const hosts = new StandInHosts((host, script) => {
    if (away.has(host)) return { outcome: { kind: 'unreachable', reason: 'no route to the host' } }
    if (!script.includes('SSH_CONNECTION')) return { stdout: 'arrived 1000000\n'.repeat(2) }
    return { stdout: `if eth0\naddr 10.0.0.${host.slice(1)}/24 global\n` }
  })
  const report = await measureMesh(
    NAMES,
    {
      ...{ seconds: 1, streams: 1, isSerial: false, isBidirectional: false, isThisMachineOnly: false, tool: 'ssh' },
      declared: new Map(),
      ...{ ports: { first: 5301, last: 5303 }, sshTarget: () => ({ user: 'ada', port: 22 }) },
    },
    { hosts, signal, clock: new ManualClock(), onEvent: (event) => void events.push(event) },
  )
  const steps = events.flatMap((event) => (event.type === 'slot' ? [`${event.index + 1} of ${event.count}`] : []))
  const links = report.links.map(({ from, to, outcome }) =>
    [from, to, outcome.kind === 'failed' ? outcome.cause : outcome.kind].join(' '),
  )
  return { steps, links }
}

it('counts only the steps that run, and reports the links of hosts that are away', async () => {
  const all = await measure(new Set())
  expect(all.steps).toHaveLength(6)
  expect(all.links.filter((link) => link.endsWith('measured'))).toHaveLength(12)
  const some = await measure(new Set(['m2', 'm4']))
  expect(some.steps).toEqual(['1 of 2', '2 of 2'])
  expect(some.links).toHaveLength(12)
  expect(some.links.filter((link) => link.endsWith('measured')).sort()).toEqual(['m1 m3 measured', 'm3 m1 measured'])
  expect(some.links.filter((link) => link.endsWith('away'))).toHaveLength(10)
})

it('blames no host for a measurement that is stopped before it begins', async () => {
  const { steps, links } = await measure(new Set(['m2']), AbortSignal.abort())
  expect(steps).toEqual([])
  expect(new Set(links.map((link) => link.split(' ')[2]))).toEqual(new Set(['cancelled']))
})

it('lets a server wait for a client of the step before, even one that hangs until its limit', () => {
  const facts = { ...parseMeshFacts(''), iperf3: '3.12', hasTimeout: true }
  const options = { seconds: 3, streams: 1 }
  const place = { address: '10.0.0.1', ownAddress: '10.0.0.2', port: 5301, facts }
  const [client] = [...clientScript('iperf3', place, options).matchAll(/timeout (\d+) /g)].map((match) =>
    Number(match[1]),
  )
  const server = [...serverScript('iperf3', place, options).matchAll(/timeout (\d+) /g)].map((match) =>
    Number(match[1]),
  )
  expect(server).toHaveLength(2)
  // Its own client may take as long.
  for (const seconds of server) expect(seconds).toBeGreaterThan(2 * (client ?? Number.NaN))
})

it('counts the steps that follow as time left while one takes longer than expected', () => {
  const step = { index: 1, count: 6, remainingMs: 15_000 }
  expect([0, 2_000, 20_000].map((elapsedMs) => remainingOf(step, elapsedMs))).toEqual([15_000, 13_000, 12_000])
  expect(remainingOf({ ...step, index: 5 }, 20_000)).toBe(0)
})
