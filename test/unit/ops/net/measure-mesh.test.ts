/** The steps of a mesh, on stand-in hosts. */
import { expect, it } from 'vitest'
import { type MeshEvent, measureMesh } from '../../../../src/ops/net/mesh/measure-mesh.ts'
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
