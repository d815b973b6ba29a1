/** Answers of iperf3 3.12 and iperf 2.1.8 as they were captured. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { formatBitRate, shortBitRate } from '../../../../src/base/format-bit-rate.ts'
import { chooseAddress, parseMeshFacts, parseNetwork } from '../../../../src/ops/net/mesh/host-facts.ts'

import { explainFailure } from '../../../../src/ops/net/mesh/measure-mesh.ts'
import { parseIperf2, parseIperf3 } from '../../../../src/ops/net/mesh/parse-iperf.ts'
import { parsePings } from '../../../../src/ops/net/mesh/scripts.ts'
import { IntervalReader } from '../../../../src/ops/net/pair/measure-pair.ts'
import type { RunOutcome } from '../../../../src/ops/run/outcome.ts'

const fixture = (name: string) => readFileSync(join(import.meta.dirname, '../../../fixtures/net', name), 'utf8')

describe('the result of iperf3', () => {
  it('counts what arrived, over all streams', () => {
    const { kind, ...rest } = parseIperf3(fixture('iperf3-tcp.json'))
    expect(kind).toBe('measured')
    expect(rest).toMatchObject({
      measured: {
        bitsPerSecond: 13226920561.794159,
        sentBytes: 1665925120,
        retransmits: 1,
        cpuFraction: expect.closeTo(0.7529, 3),
      },
    })
  })

  describe('with what its server says', () => {
    const client = (mbits: number, sent = mbits) =>
      JSON.stringify({
        end: { sum_sent: { bits_per_second: sent * 1e6 }, sum_received: { bits_per_second: mbits * 1e6 } },
      })
    const server = (mbits: number, more = '', stream = '  5') =>
      `[${stream}]   0.00-2.01   sec  3.36 GBytes  ${mbits * 1000} Kbits/sec  ${more}                receiver\n`
    const rateOf = (said: string, text: string, isUdp = false) => {
      const parsed = parseIperf3(said, { text, isUdp })
      if (parsed.kind === 'failed') return parsed.reason
      const { bitsPerSecond, disputedBitsPerSecond } = parsed.measured
      return [bitsPerSecond, disputedBitsPerSecond].flatMap((each) => (each === undefined ? [] : each / 1e6))
    }

    it('has the lower rate, and both if one end claims far more', () => {
      const interval = '[  5]   0.00-1.00   sec  1.93 GBytes  5000000 Kbits/sec                  \n'
      expect(rateOf(client(941, 980), interval + server(941))).toEqual([941])
      expect(rateOf(client(4705, 4900), server(941))).toEqual([941, 4705])
      // Its server lies to the client, too.
      expect(rateOf(client(4705, 980), server(4705))).toEqual([980, 4705])
      // Much is still in the sender's kernel.
      expect(rateOf(client(10, 40), server(10))).toEqual([10])
    })

    it('counts all streams', () => {
      const streams = server(400, '', '  5') + server(500, '', '  8')
      expect(rateOf(client(900), streams)).toEqual([900])
      expect(rateOf(client(900), streams + server(890, '', 'SUM'))).toEqual([890])
    })

    it('is a failure if no data reached it, except with UDP, whose rate not every server knows', () => {
      for (const text of ['', 'Server listening on 5301 (test #1)\n', server(0)]) {
        expect(rateOf(client(941), text)).toBe('the receiver reports that nothing arrived')
        expect(rateOf(client(941), text, true)).toEqual([941])
      }
      expect(rateOf(client(941), server(91, '0.010 ms  67/763 (8.8%)'), true)).toEqual([91, 941])
    })
  })

  it('has jitter and loss with UDP', () => {
    expect(parseIperf3(fixture('iperf3-udp.json'))).toMatchObject({
      measured: { jitterMs: expect.closeTo(0.0096, 3), lostFraction: 0, bitsPerSecond: expect.closeTo(20178166.9, 0) },
    })
  })

  it.each([
    ['iperf3-refused.json', 'unable to connect to server: Connection refused'],
    ['iperf3-busy.json', 'the server is busy running a test. try again later'],
  ])('is a failure despite exit code 0: %s', (name, reason) => {
    expect(parseIperf3(fixture(name))).toEqual({ kind: 'failed', reason, saidBy: 'client' })
  })

  it.each([
    '',
    '{"end":',
    'iperf3: unrecognized option',
    '{"end":{"sum_received":{"bits_per_second":"1"}}}',
    '[]',
    'null',
  ])('is a failure if it is no result: %j', (text) => {
    expect(parseIperf3(text).kind).toBe('failed')
  })
})

describe('the result of iperf2', () => {
  it('is at most what the client has sent', () => {
    const report = (mbits: number) => `[  1] 0.0000-1.0239 sec  576716860 Bytes  ${mbits * 1e6} bits/sec\n`
    expect(parseIperf2(report(900), report(9000), false)).toMatchObject({
      measured: { bitsPerSecond: 900e6, disputedBitsPerSecond: 9000e6 },
    })
  })

  it('counts what the server received, not what the client sent', () => {
    expect(parseIperf2(fixture('iperf2-tcp.txt'), fixture('iperf2-tcp-server.txt'), false)).toMatchObject({
      measured: { bitsPerSecond: 4890528323, retransmits: expect.any(Number), loadedRttMs: expect.any(Number) },
    })
  })

  it('has jitter and loss in the report that the server sends with UDP', () => {
    expect(parseIperf2(fixture('iperf2-udp.txt'), '', true)).toEqual({
      kind: 'measured',
      measured: { bitsPerSecond: 20988584, jitterMs: 0.001, lostFraction: 0 },
    })
  })

  it('is a failure although its exit code was 0', () => {
    const parsed = parseIperf2(fixture('iperf2-refused.txt'), '', false)
    expect(parsed).toEqual({ kind: 'failed', reason: 'tcp connect failed: Connection refused', saidBy: 'client' })
  })
})

describe('why a link was not measured', () => {
  const pair = { from: 'm1', to: { name: 'm2', place: { address: '10.81.0.2' } } }
  it.each([
    ['unable to connect to server: Connection timed out', 'no-answer'],
    ['unable to connect to server: Operation now in progress', 'no-answer'],
    ['tcp connect failed: Connection refused', 'refused'],
    ['the server is busy', 'broken'],
  ])('%s: %s', (said, cause) => {
    expect(explainFailure({ reason: said, saidBy: 'client' }, pair, { port: 5301, tool: 'iperf2' })).toMatchObject({
      kind: 'failed',
      cause,
      reason: expect.stringContaining(`m1's iperf said: “${said}”`),
    })
  })

  it('blames no firewall if the server has ended by itself', () => {
    const failure = { reason: 'unable to connect to server: Connection refused', saidBy: 'client' } as const
    const endOf = (outcome: RunOutcome) => {
      const none = new Uint8Array()
      const end = { result: { outcome, stdout: none, stderr: none, durationMs: 0 }, text: '' }
      return explainFailure(failure, pair, { port: 5301, tool: 'iperf3', end })
    }
    const reason =
      "m2's server on port 5301 ended before m1 connected to 10.81.0.2 (m1's iperf3 said: “unable to connect to server: Connection refused”)"
    expect(endOf({ kind: 'exit', code: 0 })).toEqual({ kind: 'failed', cause: 'no-server', reason })
    expect(endOf({ kind: 'cancelled' })).toMatchObject({
      cause: 'refused',
      reason: expect.stringContaining('firewall'),
    })
  })

  it('names the address, and blames no firewall where the host alone says that it is its own', () => {
    const reasonOf = (reason: string, isOwnWord: boolean) => {
      const outcome = explainFailure(
        { reason },
        { ...pair, to: { ...pair.to, isOwnWord } },
        { port: 5301, tool: 'iperf2' },
      )
      return outcome.kind === 'failed' ? outcome.reason : ''
    }
    const listens = 'says that it listens on port 5301, but'
    const claims = `m2, which gives 10.81.0.2 as its address, ${listens}`
    expect(reasonOf('Connection refused', true)).toBe(`${claims} 10.81.0.2 refuses m1 (Connection refused)`)
    expect(reasonOf('Connection refused', false)).toBe(
      `m2 (10.81.0.2) ${listens} 10.81.0.2 refuses m1: a firewall may reject it (Connection refused)`,
    )
    const why = 'a firewall drops it, or there is no route, or the address is wrong'
    expect(reasonOf('no answer to a probe', true)).toBe(
      `${claims} nothing from m1 arrives: ${why} (no answer to a probe)`,
    )
  })

  it("is told in a program's own words only with whose they are", () => {
    const error = 'm2: its server did not start to listen within 15 s'
    const parsed = parseIperf3(JSON.stringify({ error }))
    if (parsed.kind !== 'failed') throw new Error('a failure was expected')
    expect(explainFailure(parsed, pair, { port: 5301, tool: 'iperf3' })).toEqual({
      kind: 'failed',
      cause: 'broken',
      reason: `m1's iperf3 said: “${error}”`,
    })
    expect(explainFailure({ reason: 'nothing arrived' }, pair, { port: 5301, tool: 'iperf3' })).toMatchObject({
      reason: 'nothing arrived',
    })
  })
})

const FACTS = `login 10.0.0.8
iperf3 iperf 3.12 (cJSON 1.7.15)
iperf2 sh: iperf: not found
has ping
card lo 65536 - -
card eth0 1500 1000 full
card eth1 9000 10000 half
card tap0 1500 -1 unknown
if lo
addr 127.0.0.1/8 host
if eth0
addr 10.0.0.8/24 global
addr fe80::1/64 link
if eth1
addr fd00::8/64 global
addr 192.168.7.8/24 global
`

describe('facts of a host', () => {
  const facts = parseMeshFacts(FACTS)

  it('are its programs, cards and addresses', () => {
    expect(facts).toMatchObject({ loginAddress: '10.0.0.8', iperf3: '3.12', hasPing: true, hasTimeout: false })
    expect(facts.iperf2).toBeUndefined()
    expect(facts.cards).toContainEqual({ name: 'eth1', mtuBytes: 9000, linkBitsPerSecond: 1e10, isHalfDuplex: true })
    expect(facts.cards).toContainEqual({ name: 'tap0', mtuBytes: 1500 })
    expect(facts.addresses.map(({ address }) => address)).toEqual(['127.0.0.1', '10.0.0.8', 'fd00::8', '192.168.7.8'])
  })

  it.each([
    [{}, { address: '10.0.0.8', card: 'eth0' }],
    [{ interface: 'eth1' }, { address: '192.168.7.8', card: 'eth1' }],
    [{ network: '192.168.0.0/16' }, { address: '192.168.7.8', card: 'eth1' }],
    [{ network: 'fd00::/64' }, { address: 'fd00::8', card: 'eth1' }],
    [{ isThisMachineOnly: true }, { address: '127.0.0.1', card: 'lo' }],
  ])('name the measured address: %j', (wish, { address, card }) => {
    expect(chooseAddress(facts, { isThisMachineOnly: false, ...wish })).toMatchObject({ address, card: { name: card } })
  })

  it('say why it has none', () => {
    const reason = 'it has no address on eth7'
    expect(chooseAddress(facts, { interface: 'eth7', isThisMachineOnly: false })).toEqual({ reason })
  })

  it('contain only valid addresses', () => {
    expect(parseMeshFacts('login $(reboot)\naddr ;reboot/8 global\naddr -x global\n').addresses).toEqual([])
    expect(parseNetwork('10.0.0.0/33')).toBeUndefined()
    expect(parseNetwork('10.0.0.0')).toBeUndefined()
  })
})

it('reads pings of each target', () => {
  const text = 'loss 1 100\nloss 0 20\nping 0 0.1 0.25 0.9\nwhole 0 no\nping 7 1 1 1\n'
  expect(parsePings(text, 'm1', ['m2', 'm3', 'm4'])).toEqual([
    { from: 'm1', to: 'm2', lostFraction: 0.2, minMs: 0.1, meanMs: 0.25, isWhole: false },
    { from: 'm1', to: 'm3', lostFraction: 1 },
  ])
})

it.each([
  [941_000_000, '941 Mbit/s', '941M'],
  [9_412_000_000, '9.41 Gbit/s', '9.41G'],
  [999_900_000, '1 Gbit/s', '1G'],
  [12_340, '12.3 kbit/s', '12.3k'],
  [7, '7 bit/s', '7'],
])('writes %d bits a second as %s', (rate, long, short) => {
  expect(formatBitRate(rate)).toBe(long)
  expect(shortBitRate(rate)).toBe(short)
})

describe('numbers of a host', () => {
  it.each([
    'NaN',
    '-1',
    '1e309',
    '1.2.3',
    'x',
    '99999999999999999999',
  ])('count only if they are possible: %j', (number) => {
    expect(parsePings(`loss 0 ${number}\nping 0 1 2 3\n`, 'm1', ['m2'])).toEqual([])
    expect(parsePings(`loss 0 0\nping 0 1 ${number} 3\n`, 'm1', ['m2'])).toEqual([
      { from: 'm1', to: 'm2', lostFraction: 0 },
    ])
    expect(new IntervalReader(1).push(`[  5]   0.00-1.00   sec  5472 KBytes  ${number} Kbits/sec\n`)).toEqual([])
    const report = { end: { sum_received: { bits_per_second: 5 }, sum_sent: { retransmits: Number(number) || -1 } } }
    expect(parseIperf3(JSON.stringify(report))).toEqual({ kind: 'measured', measured: { bitsPerSecond: 5 } })
  })
})
