/** What a host that lies says of its network and its load: numbers stay numbers, reports printable, and it speaks of itself alone. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'vitest'
import { hostEvent, linkEvent } from '../../../src/cli/net/mesh.ts'
import { formatMesh, meshCsv, meshSvg, PLAIN_PAINT } from '../../../src/ops/net/mesh/format-mesh.ts'
import { judgeMesh } from '../../../src/ops/net/mesh/judge.ts'
import { type MeshEvent, type MeshOptions, measureMesh } from '../../../src/ops/net/mesh/measure-mesh.ts'
import { measurePair, type PairEvent } from '../../../src/ops/net/pair/measure-pair.ts'
import type { WatchHandlers } from '../../../src/ops/net/watch/repeated-script.ts'
import type { Sample } from '../../../src/ops/net/watch/sample.ts'
import { HostWatch } from '../../../src/ops/net/watch/watch-hosts.ts'
import { lineChart } from '../../../src/ui/charts/line-chart.ts'
import { themes } from '../../../src/ui/compositor/scene.ts'
import { watchPanes } from '../../../src/ui/network/watch-panes.ts'
import { FIRST_VIEW } from '../../../src/ui/network/watch-view.ts'
import { FIRST_TABLE_VIEW } from '../../../src/ui/rows/table-view.ts'
import { goodResult, hostileHosts, resultOf } from '../../support/hostile-host/hostile-hosts.ts'
import { type Choice, mutate } from '../../support/hostile-host/mutate.ts'
import { expectNoDefect, expectNumbers, expectPrintable, playMutations } from '../../support/hostile-host/play.ts'
import { ManualClock } from '../../unit/ssh/manual-clock.ts'

const fixture = (name: string): Buffer => readFileSync(join(import.meta.dirname, '../../fixtures/net', name))
const signal = new AbortController().signal

describe('a hostile host that is watched', () => {
  const GPUS =
    'nvidia 0, GPU-1, NVIDIA A100, 97, 1000, 40960, 60, 300.5\nnvproc GPU-1, 4711, 900\nrocm device,Card series,GPU use (%),VRAM Total Memory (B)\nrocm card0,MI300,5,1000\n'
  const NFS =
    'device m10:/x mounted on /x with fstype nfs4 statvers=1.1\nbytes:	1 2 3 4 5 6 0 0\nREAD: 10 9 0 1 1 0 100 8 0\n'
  const captured = fixture('watch-debian.txt').toString()
  const good = Buffer.from(captured.replaceAll('=\n', `${NFS}=\n`).replace('=\n', `${GPUS}=\n`))

  it('has possible numbers within bounds, and none about another host', async () => {
    await playMutations(({ choice, note }) => {
      const clock = new ManualClock()
      const said: WatchHandlers[] = []
      const samples: Sample[] = []
      using watch = new HostWatch(['m1', 'm2'], {
        port: {
          start(host, _, handlers) {
            if (host === 'm2') said.push(handlers)
            return { stop() {} }
          },
        },
        clock,
        onSample(host, sample) {
          if (host !== 'm2') throw new Error(`it is about ${host}`)
          samples.push(sample)
        },
        onTrouble: () => {},
      })
      const answer = mutate(good, choice, ['m1', 'host m1', '=', 'none'])
      note(...answer.how)
      const decoder = new TextDecoder()
      for (const piece of answer.pieces) said[0]?.onText(decoder.decode(piece, { stream: true }))
      for (let count = 0; answer.endless !== undefined && count < 300; count++)
        said[0]?.onText(decoder.decode(answer.endless, { stream: true }))
      for (const sample of samples) {
        expectNumbers(sample, 'the sample')
        if (sample.cpu > 1 || (sample.diskBusy ?? 0) > 1) throw new Error(`more than all: ${JSON.stringify(sample)}`)
      }
      const [own, other] = [
        watch.hosts.find(({ host }) => host === 'm2'),
        watch.hosts.find(({ host }) => host === 'm1'),
      ]
      if ((other?.samples.length ?? 0) > 0 || (own?.samples.length ?? 0) > 2000)
        throw new Error('samples of another, or too many')
      const look = {
        rect: { column: 0, row: 0, width: choice.one([40, 80, 200]), height: choice.one([10, 40]) },
        theme: themes.dark,
        nowMs: clock.now(),
        chart: choice.once(8) ? lineChart : undefined,
        tables: { hosts: FIRST_TABLE_VIEW, processes: FIRST_TABLE_VIEW },
      }
      watchPanes(watch.hosts, { ...FIRST_VIEW, selected: 'm2', isDetailed: choice.once(2) }, look)
      if (clock.timerCount > 1) throw new Error('timers are left')
    })
  })
})

const FACTS = `login 10.0.0.2
iperf3 iperf 3.12 (cJSON 1.7.15)
iperf2 iperf version 2.1.8 (12 August 2022) pthreads
has ping
has timeout
card eth0 1500 1000 full
card lo 65536 - -
if lo
addr 127.0.0.1/8 host
if eth0
addr 10.0.0.2/24 global
`
const PINGS = 'ping 0 0.1 0.2 0.3\nloss 0 0\nwhole 0 yes\nping 1 0.1 0.2 0.3\nloss 1 20\nwhole 1 no\n'
const SERVED = `Server listening on 5301 (test #1)
[ ID] Interval           Transfer     Bitrate
[  5]   0.00-1.00   sec  5472 KBytes  44826 Kbits/sec  0.010 ms  0/171 (0%)
[  5]   1.00-2.00   sec  6112 KBytes  50069 Kbits/sec  0.012 ms  0/191 (0%)
`

function answerTo(script: string, choice: Choice, tool: string): Buffer {
  if (script.includes('SSH_CONNECTION')) return Buffer.from(FACTS)
  if (script.includes('look()')) return Buffer.from(PINGS)
  if (script.includes('exec ping') || script.includes('ping -n'))
    return Buffer.from('64 bytes from 10.0.0.1: icmp_seq=1 ttl=64 time=0.05 ms\n')
  if (/iperf3? -s/.test(script))
    return tool === 'iperf2'
      ? Buffer.concat([Buffer.from('Server listening on TCP port 5301\n'), fixture('iperf2-tcp-server.txt')])
      : Buffer.from(SERVED)
  if (script.includes('iperf3'))
    return fixture(choice.one(['iperf3-tcp.json', 'iperf3-udp.json', 'iperf3-refused.json', 'iperf3-busy.json']))
  if (script.includes('iperf')) return fixture(choice.one(['iperf2-tcp.txt', 'iperf2-udp.txt', 'iperf2-refused.txt']))
  return Buffer.from('arrived 1000000\narrived 2000000\n')
}

const NAMES = ['m1', 'm2', 'm3']
const OPTIONS: Omit<MeshOptions, 'tool'> = {
  ...{ seconds: 1, streams: 1, isSerial: false, isBidirectional: false, isThisMachineOnly: false },
  declared: new Map(NAMES.map((name) => [name, `10.0.0.${name.slice(1)}`])),
  ...{ ports: { first: 5301, last: 5303 }, sshTarget: () => ({ user: 'ada', port: 22 }) },
}

/** m2 lies, the others do not. */
function lyingHosts(choice: Choice, tool: string, note: (...how: readonly string[]) => void) {
  const foreign = [
    'm1',
    'm3',
    '10.0.0.1',
    '127.0.0.1',
    'Server listening',
    'addr 10.0.0.1/24 global',
    'card eth1 1 1 full',
  ]
  return hostileHosts(async (host, script, options) => {
    const good = answerTo(script, choice, tool)
    if (host !== 'm2') {
      const own = Buffer.from(good.toString().replaceAll('10.0.0.2', `10.0.0.${host.slice(1)}`))
      options.onOutput?.('stdout', own.toString())
      return goodResult({ stdout: own })
    }
    const answer = mutate(good, choice, foreign)
    note(...answer.how)
    return resultOf(answer, choice.once(6) ? { stderr: good } : { stdout: good }, options)
  })
}

describe('a hostile host of a mesh', () => {
  it('causes no impossible number, no link between others and no report that acts', async () => {
    await playMutations(async ({ choice, note }) => {
      const tool = choice.one(['iperf3', 'iperf2', 'ssh'] as const)
      const clock = new ManualClock()
      const events: MeshEvent[] = []
      const hosts = lyingHosts(choice, tool, note)
      const report = await measureMesh(
        NAMES,
        { ...OPTIONS, tool },
        { hosts, signal, clock, onEvent: (event) => void events.push(event) },
      )
      for (const link of report.links) {
        if (link.outcome.kind === 'measured') expectNumbers(link.outcome, 'the link')
        else if (link.from !== 'm2' && link.to !== 'm2' && tool === 'ssh')
          throw new Error(`it broke ${link.from} → ${link.to}`)
      }
      for (const ping of report.pings) expectNumbers(ping, 'the ping')
      const findings = judgeMesh(report)
      const text = formatMesh(report, findings, choice.one([40, 80, 200]), PLAIN_PAINT)
      expectPrintable(text.replaceAll('\n', ''), 'the report')
      expectNoDefect(text, 'the report')
      expectPrintable(meshCsv(report).replaceAll(/\r?\n/g, ''), 'the CSV')
      expectPrintable(meshSvg(report, findings, 'title').replaceAll('\n', ''), 'the picture')
      JSON.stringify([events.length, report.hosts.map(hostEvent), report.pings, report.links.map(linkEvent), findings])
    })
  })

  it('causes no impossible number between two hosts', async () => {
    await playMutations(async ({ choice, note }) => {
      const tool = choice.one(['iperf3', 'iperf2'] as const)
      const events: PairEvent[] = []
      const hosts = lyingHosts(choice, tool, note)
      const context = {
        hosts,
        signal,
        clock: new ManualClock(),
        onEvent: (event: PairEvent) => void events.push(event),
      }
      await measurePair('m1', 'm2', { ...OPTIONS, tool, isOneWay: choice.once(2) }, context)
      if (events.length > 50_000) throw new Error(`${events.length} events`)
      for (const event of events)
        if (event.type === 'interval' || event.type === 'round-trip') expectNumbers(event, 'the event')
    })
  })
})
