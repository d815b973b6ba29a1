/** Results of pairs and NFS mounts: how they are kept, compared and exported, and which files are rejected. */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { testCsv, testSvg } from '../../../../src/ops/net/format-test.ts'
import { keepResult, resultPaths, resultsDirectory } from '../../../../src/ops/net/kept-results.ts'
import {
  concludeTest,
  type KeptTest,
  nfsTest,
  pairTest,
  readTest,
  seriesOf,
} from '../../../../src/ops/net/kept-test.ts'
import { newNfsRecord, takeNfsEvent } from '../../../../src/ops/net/nfs/measure-nfs.ts'
import { newPairRecord } from '../../../../src/ops/net/pair/pair-record.ts'

const BEGAN_MS = Date.parse('2026-11-20T10:00:00Z')
const DAY_MS = 24 * 3_600_000

const pair = (there: number, back: number, day = 0, ms = 0.3, hosts: readonly [string, string] = ['m1', 'm2']) => {
  const record = newPairRecord(...hosts)
  for (const part of [0.9, 1, 1.1]) {
    record.there.push(there * 1e6 * part)
    record.back.push(back * 1e6 * part)
    record.roundTrips.push(ms * part)
  }
  return pairTest(record, 'tcp, 1 streams', BEGAN_MS + day * DAY_MS)
}

function nfs(megabytes: number, ms: number, day = 0, source = 'm10:/srv') {
  const record = newNfsRecord('m8')
  const mount = { point: '/data', source, version: '4.2' }
  takeNfsEvent(record, { type: 'directory', host: 'm8', directory: '/data', mount })
  // Less than a second, which counts all the same.
  takeNfsEvent(record, { type: 'block', host: 'm8', does: 'write', bytes: megabytes * 5e5, seconds: 0.5 })
  takeNfsEvent(record, { type: 'small-file', host: 'm8', ms })
  return nfsTest(record, BEGAN_MS + day * DAY_MS)
}

describe('kept pairs and NFS mounts', () => {
  let environment: Readonly<Record<string, string>>
  beforeEach(() => {
    environment = { XDG_STATE_HOME: mkdtempSync(join(tmpdir(), 'muster-kept-')) }
  })
  afterEach(() => rmSync(environment.XDG_STATE_HOME ?? '', { recursive: true }))

  const conclude = (test: KeptTest) => concludeTest(environment, test, Date.parse(test.time))
  const textsOf = (test: KeptTest) => conclude(test).findings.map(({ gravity, text }) => `${gravity}: ${text}`)

  it('are compared with the last of the same hosts, in either order', () => {
    expect(textsOf(pair(900, 900))).toEqual([])
    const [finding] = textsOf(pair(880, 400, 1, 0.4, ['m2', 'm1']))
    expect(finding).toBe('risk: m1 → m2 is 55 % slower than m2 → m1: 400 Mbit/s against 880 Mbit/s')
    expect(textsOf(pair(890, 890, 2))).toEqual([
      expect.stringMatching(/^note: faster than at 2026-11-21 .*: m1 → m2 400 Mbit\/s → 890 Mbit\/s$/),
    ])
    expect(textsOf(pair(890, 880, 3))).toEqual([expect.stringMatching(/^note: as fast as at 2026-11-22/)])
    expect(textsOf(pair(890, 880, 4, 3))).toEqual([
      expect.stringMatching(/^risk: slower than at 2026-11-23 .*: round trip 0\.30 ms → 3\.0 ms$/),
    ])
    expect(textsOf(pair(90, 90, 5, 0.3, ['m1', 'm3']))).toEqual([])
    expect(textsOf(pairTest(pair(90, 90).record, 'udp 1000000, 1 streams', BEGAN_MS + 6 * DAY_MS))).toEqual([])
  })

  it('with UDP are judged by the rate that was asked for', () => {
    const udp = pairTest(pair(20, 15).record, 'udp 20000000, 1 streams', BEGAN_MS)
    expect(textsOf(udp)).toEqual([
      'risk: less than the 20 Mbit/s of --udp arrived: m2 → m1 15 Mbit/s',
      'note: m2 → m1 is 25 % slower than m1 → m2: 15 Mbit/s against 20 Mbit/s',
    ])
    expect(textsOf(pairTest(pair(20, 20).record, 'udp 20000000, 1 streams', BEGAN_MS + 1))).toEqual([
      expect.stringMatching(/^note: faster than at/),
    ])
  })

  it('of NFS are compared only at the same mount', () => {
    expect(textsOf(nfs(100, 3))).toEqual([])
    expect(textsOf(nfs(40, 4, 1))).toEqual([
      expect.stringMatching(/^risk: slower than at .*: write 95\.4 MiB\/s → 38\.1 MiB\/s$/),
    ])
    expect(textsOf(nfs(1, 9, 2, 'm11:/srv'))).toEqual([])
  })

  it('are read as they were written, with mode 0600, and 200 of each kind are kept', () => {
    const tests = [pair(900, 800), nfs(100, 3)]
    for (const test of tests) {
      const { problem } = conclude(test)
      expect(problem).toBeUndefined()
    }
    keepResult(environment, 'mesh', new Date(BEGAN_MS - DAY_MS).toISOString(), {})
    const paths = resultPaths(environment)
    expect(paths.map((path) => statSync(path).mode & 0o777)).toEqual([0o600, 0o600, 0o600])
    expect(paths.at(-1)).toMatch(/mesh-2026-11-19/)
    expect(new Set(paths.flatMap((path) => readTest(path)?.kind ?? []))).toEqual(new Set(['pair', 'nfs']))
    for (const test of tests) {
      const [path = ''] = resultPaths(environment, [test.kind])
      const read = readTest(path)
      expect(read && seriesOf(read)).toEqual(seriesOf(test))
    }
    for (let day = 1; day < 203; day += 1) conclude(pair(900, 800, day))
    expect(resultPaths(environment, ['pair'])).toHaveLength(200)
    expect(resultPaths(environment, ['nfs', 'mesh'])).toHaveLength(2)
  })

  it('are not kept if nothing was measured', () => {
    conclude(pairTest(newPairRecord('m1', 'm2'), 'tcp', BEGAN_MS))
    expect(resultPaths(environment)).toEqual([])
  })

  it('are rejected if they are damaged', () => {
    conclude(pair(900, 800))
    const [path = ''] = resultPaths(environment)
    const whole = JSON.parse(readFileSync(path, 'utf8')) as { record: object }
    const damaged = [
      null,
      [],
      { ...whole, version: 2 },
      { ...whole, kind: 'nfs' },
      { ...whole, time: 'yesterday' },
      { ...whole, record: { ...whole.record, there: [-1] } },
      { ...whole, record: { ...whole.record, back: ['9'] } },
      { ...whole, record: { ...whole.record, roundTrips: Array(100_001).fill(1) } },
      { ...whole, record: { ...whole.record, first: { toString: 'm1' } } },
      { ...whole, record: { ...whole.record, failures: undefined } },
    ]
    for (const value of damaged) {
      writeFileSync(path, JSON.stringify(value))
      expect(readTest(path)).toBeUndefined()
    }
    const other = join(resultsDirectory(environment), 'nfs-2026-11-20T10-00-00.000Z.json')
    writeFileSync(other, JSON.stringify(whole))
    expect(readTest(other)).toBeUndefined()
  })

  it('are rejected if they are a pipe or a device, without waiting for its end', () => {
    keepResult(environment, 'nfs', '2026-11-20T10:00:00Z', {})
    const path = (time: string) => join(resultsDirectory(environment), `pair-2026-11-2${time}T10-00-00Z.json`)
    execFileSync('mkfifo', [path('1')])
    symlinkSync('/dev/zero', path('2'))
    expect(resultPaths(environment, ['pair']).map(readTest)).toEqual([undefined, undefined])
  })

  it('are exported as a table and as charts, without markup or formulas from a host', () => {
    const record = { ...pair(900, 800).record, first: '=cmd()<b>', failures: ['\x1b[2J'] }
    const test = pairTest(record, 'tcp', BEGAN_MS)
    expect(testCsv(test).split('\n')).toHaveLength(1 + 9 + 1)
    expect(testCsv(test)).toContain("'=cmd()<b> → m2,bit/s,1,810000000\n")
    const svg = testSvg(test, conclude(test).findings)
    expect(svg).not.toContain('<b>')
    expect(svg.match(/<polyline /g)).toHaveLength(3)
    expect(svg).toContain('round trip: median 0.30 ms')
    expect(testSvg(nfs(100, 3), [])).toContain('m8:/data is m10:/srv (NFS 4.2)')
  })
})
