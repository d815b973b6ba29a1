/** Pairs and kept results in the Network tab, over a port that measures nothing. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { resultPaths, resultsDirectory } from '../../../../src/ops/net/kept-results.ts'
import { concludeTest, pairTest, readTest } from '../../../../src/ops/net/kept-test.ts'
import { keepMesh, readKept } from '../../../../src/ops/net/mesh/kept-mesh.ts'
import { failed } from '../../../../src/ops/net/mesh/link.ts'
import type { MeshReport } from '../../../../src/ops/net/mesh/measure-mesh.ts'
import type { PairEvent } from '../../../../src/ops/net/pair/measure-pair.ts'
import { takePairEvent } from '../../../../src/ops/net/pair/pair-record.ts'
import { themes } from '../../../../src/ui/compositor/scene.ts'
import type { NetTestsPort } from '../../../../src/ui/network/net-tests-port.ts'
import { createConsoleHarness, idleNetTests } from '../console/console-harness.ts'

const LEADER = '\x1d'

const settle = async () => {
  for (let turn = 0; turn < 10; turn += 1) await new Promise((resolve) => setImmediate(resolve))
}

const textOf = ({ console: { pages } }: ReturnType<typeof createConsoleHarness>): string =>
  pages.network
    .panes({ column: 0, row: 1, width: 120, height: 38 }, themes.none)
    .map(({ title, badges, notice }) =>
      [[...title, ...badges], ...notice].map((row) => row.map(({ text }) => text).join('')).join('\n'),
    )
    .join('\n')

function reportOf(names: readonly string[], slow: string): MeshReport {
  const links = names.flatMap((from) =>
    names.flatMap((to) => {
      const bitsPerSecond = from === slow || to === slow ? 1e8 : 1e9
      return from === to ? [] : [{ from, to, outcome: { kind: 'measured', tool: 'iperf3', bitsPerSecond } as const }]
    }),
  )
  return { hosts: [], pings: [], links }
}

it('measures the two marked hosts, shows what arrived in each direction, and keeps the result', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'muster-results-'))
  onTestFinished(() => rmSync(directory, { recursive: true }))
  const environment = { XDG_STATE_HOME: directory }
  const saved: string[] = []
  let now = Date.parse('2026-11-20T10:00:00Z')
  let onEvent: ((event: PairEvent) => void) | undefined
  let pair = ''
  const netTests: NetTestsPort = {
    ...idleNetTests,
    async measurePair(record, _, signal, changed) {
      pair = `${record.first} ${record.second}`
      onEvent = (event) => {
        takePairEvent(record, event)
        changed()
      }
      await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()))
      return concludeTest(environment, pairTest(record, 'tcp', now), now)
    },
    keptResults: () => resultPaths(environment),
    readKept: readTest,
    save(path, text) {
      saved.push(`${path}: ${text}`)
      return path
    },
  }
  const harness = createConsoleHarness({ netTests })
  harness.type(`${LEADER}3  p`)
  expect(pair).toBe('m1 m2')
  expect(harness.console.pages.network.busy).toMatchObject([{ hosts: ['m1', 'm2'] }])
  for (const [second, bitsPerSecond] of [9e8, 8e8, 7e8].entries()) {
    onEvent?.({ type: 'interval', from: 'm1', to: 'm2', second: second + 1, bitsPerSecond })
    onEvent?.({ type: 'interval', from: 'm2', to: 'm1', second: second + 1, bitsPerSecond: bitsPerSecond / 10 })
  }
  harness.clock.advance(300)
  expect(textOf(harness)).toContain('bits a second, m1 and m2 · 3 of 30 s')
  expect(textOf(harness)).toMatch(/m1 → m2 700Mbit\/s.*m2 → m1 70Mbit\/s/)
  harness.type('\x1b')
  await settle()
  expect(textOf(harness)).toContain('m1 → m2: median 800 Mbit/s, from 700 Mbit/s to 900 Mbit/s in 3 s')
  expect(textOf(harness)).toContain('m2 → m1: median 80 Mbit/s')
  expect(textOf(harness)).toMatch(/risk: m2 → m1 is 90 % slower than m1 → m2/)
  harness.type('wpair.csv\r')
  expect(saved).toEqual([expect.stringContaining('m2 → m1,bit/s,3,70000000')])
  now += 24 * 3_600_000
  harness.type('r')
  onEvent?.({ type: 'interval', from: 'm1', to: 'm2', second: 1, bitsPerSecond: 2e8 })
  harness.type('\x1b')
  await settle()
  expect(textOf(harness)).toMatch(/risk: slower than at 2026-11-20 .*: m1 → m2 800 Mbit\/s → 200 Mbit\/s/)
  harness.type('v')
  await settle()
  expect(textOf(harness)).toMatch(/2026-11-21 .*pair .*m\[1-2\] .*1\/2 .*200 Mbit\/s .*m1 → m2 200 Mbit\/s/)
  expect(textOf(harness)).toMatch(/2026-11-20 .*pair .*m\[1-2\] .*2\/2 .*800 Mbit\/s .*90 % slower/)
  harness.type('d')
  expect(textOf(harness)).toMatch(/slower than at 2026-11-20 /)
  harness.type('\x1b\x1b[B\r')
  expect(textOf(harness)).toContain('m2 → m1: median 80 Mbit/s')
  expect(textOf(harness)).toMatch(/ 2026-11-20 /)
  harness.type('wold.svg\r')
  expect(saved[1]).toMatch(/^old\.svg: <svg /)
  harness.type('\x1b\x1b\x1b')
  expect(textOf(harness)).toMatch(/●m1/)
  harness.console[Symbol.dispose]()
})

it('asks for a pair unless two hosts are marked, and refuses three', () => {
  const harness = createConsoleHarness()
  harness.type(`${LEADER}3p`)
  expect(harness.console.state.mode).toMatchObject({ dialog: { id: 'pair' } })
  harness.type('m[1-3]')
  expect(harness.console.state.mode).toMatchObject({
    dialog: { input: { error: expect.stringContaining('name two hosts, not 3') } },
  })
  harness.console[Symbol.dispose]()
})

it('lists kept results with their findings, compares two of them, and overwrites a file only after a confirmation', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'muster-results-'))
  try {
    const environment = { XDG_STATE_HOME: directory }
    const names = ['m1', 'm2', 'm3', 'm4']
    keepMesh(environment, reportOf(names, 'm9'), 'tcp', Date.parse('2026-11-20T10:00:00Z'), { addresses: {} })
    keepMesh(environment, reportOf(names, 'm3'), 'tcp', Date.parse('2026-11-21T10:00:00Z'), { addresses: {} })
    const file = join(directory, 'net.csv')
    const netTests: NetTestsPort = {
      ...idleNetTests,
      keptResults: () => resultPaths(environment),
      readKept,
      save(path, text, overwrites) {
        try {
          writeFileSync(path, text, { flag: overwrites ? 'w' : 'wx' })
          return path
        } catch (error) {
          if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
          return undefined
        }
      },
    }
    const harness = createConsoleHarness({ netTests })
    harness.type(`${LEADER}3v`)
    await settle()
    expect(textOf(harness)).toMatch(/2026-11-21 .* m\[1-4\] .* 12\/12 .*m3 is slow to and from all hosts/)
    expect(textOf(harness)).toMatch(/2026-11-20 .*no problems found/)
    harness.type('/slow\r')
    expect(textOf(harness)).not.toContain('2026-11-20')
    harness.type('\x1b')
    harness.type('  d')
    expect(textOf(harness)).toMatch(/mesh of 4 hosts · change/)
    expect(textOf(harness)).toMatch(/measured 2026-11-21 [\s\S]*compared with 2026-11-20 /)
    expect(textOf(harness)).toMatch(/m1 .*\+0% *▓ .*−90% *░ .*\+0% *▓/)
    expect(textOf(harness)).toContain('slower than at 2026-11-20')
    harness.type(`w${file}\r`)
    await settle()
    const written = readFileSync(file, 'utf8')
    expect(written.split('\n')).toHaveLength(14)
    writeFileSync(file, 'mine')
    harness.type(`w${file}\r`)
    await settle()
    expect(harness.console.state.mode).toMatchObject({ dialog: { id: 'overwrite' } })
    harness.type('\x1b')
    expect(readFileSync(file, 'utf8')).toBe('mine')
    harness.type(`w${file}\r`)
    await settle()
    harness.type('y')
    expect(readFileSync(file, 'utf8')).toBe(written)
    // Enter alone writes a picture with a name of its own, which does not exist here.
    harness.type('w')
    expect(harness.console.state.mode).toMatchObject({
      dialog: { input: { placeholder: expect.stringMatching(/^mesh-2026-11-21-\d{4}\.svg$/) } },
    })
    harness.type('\x1b')
    // A prompt that failed keeps what was typed.
    harness.type(`w${directory}/missing/net.svg\r`)
    await settle()
    expect(harness.console.state.mode).toMatchObject({
      dialog: { input: { text: `${directory}/missing/net.svg`, error: expect.stringContaining('ENOENT') } },
    })
    harness.console[Symbol.dispose]()
  } finally {
    rmSync(directory, { recursive: true })
  }
})

it('selects the newest result after a measurement, and says when two results have nothing in common', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'muster-results-'))
  onTestFinished(() => rmSync(directory, { recursive: true }))
  const environment = { XDG_STATE_HOME: directory }
  const keep = (names: readonly string[], time: string) =>
    keepMesh(environment, reportOf(names, 'm9'), 'tcp', Date.parse(time), { addresses: {} })
  keep(['m1', 'm2', 'm3'], '2026-11-20T10:00:00Z')
  const harness = createConsoleHarness({
    netTests: { ...idleNetTests, keptResults: () => resultPaths(environment), readKept },
  })
  harness.type(`${LEADER}3v`)
  await settle()
  harness.type('q')
  keep(['m4', 'm5'], '2026-11-21T10:00:00Z')
  harness.type('v')
  await settle()
  expect(harness.console.state.network.results.selected).toBe(resultPaths(environment)[0])
  harness.type('  d')
  expect(textOf(harness)).toContain('no link was measured in both')
  harness.console[Symbol.dispose]()
})

it('lists results that cannot be read, and says so when one is opened', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'muster-results-'))
  onTestFinished(() => rmSync(directory, { recursive: true }))
  const environment = { XDG_STATE_HOME: directory }
  const time = '2026-11-20T10:00:00.000Z'
  const path = keepMesh(environment, reportOf(['m1', 'm2'], 'm9'), 'tcp', Date.parse(time), { addresses: {} })
  const text = readFileSync(path, 'utf8')
  const write = (name: string, bytes: string) => writeFileSync(join(resultsDirectory(environment), name), bytes)
  write('mesh-2026-11-20T09-00-00.000Z.json', text.slice(0, 40))
  write('mesh-2026-11-20T08-00-00.000Z.json', text.replace(time, 'yesterday'))
  write('pair-1.json', '{"version":1,"links":"\x1b"}')
  const harness = createConsoleHarness({
    netTests: { ...idleNetTests, keptResults: () => resultPaths(environment), readKept },
  })
  harness.type(`${LEADER}3v`)
  await settle()
  const why = 'cannot be read: damaged, or of a later version'
  expect(harness.console.state.network.results.rows.map(({ test, found }) => [test, found === why])).toEqual([
    ['mesh', false],
    ['mesh', true],
    ['mesh', true],
    ['pair', true],
  ])
  expect(textOf(harness)).toMatch(/2026-11-20 \d\d:00 +mesh +–/)
  expect(textOf(harness)).not.toMatch(/Inval|NaN/)
  harness.type('G\r')
  expect(harness.console.state.notice?.text).toMatch(
    /^cannot be read, as it is damaged or of a later version: \S+pair-1.json$/,
  )
  harness.console[Symbol.dispose]()
})

it('does not compare UDP with TCP', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'muster-results-'))
  onTestFinished(() => rmSync(directory, { recursive: true }))
  const environment = { XDG_STATE_HOME: directory }
  const keep = (way: string, time: string) =>
    keepMesh(environment, reportOf(['m1', 'm2', 'm3'], 'm9'), way, Date.parse(time), { addresses: {} })
  keep('tcp, 1 streams', '2026-11-20T10:00:00Z')
  keep('udp 900000000, 1 streams', '2026-11-21T10:00:00Z')
  const harness = createConsoleHarness({
    netTests: { ...idleNetTests, keptResults: () => resultPaths(environment), readKept },
  })
  harness.type(`${LEADER}3v`)
  await settle()
  harness.type('d')
  expect(harness.console.state.notice?.text).toBe('no earlier result of these hosts')
  harness.type('  d')
  expect(harness.console.state.notice?.text).toBe('UDP is compared only with UDP at the same rate')
  harness.console[Symbol.dispose]()
})

it('lists and opens kept meshes in which nothing was measured', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'muster-results-'))
  onTestFinished(() => rmSync(directory, { recursive: true }))
  const environment = { XDG_STATE_HOME: directory }
  const cancelled = { from: 'm1', to: 'm2', outcome: failed('cancelled', 'cancelled') }
  for (const [day, links] of [[], [cancelled]].entries()) {
    const time = Date.parse(`2026-11-1${day}T10:00:00Z`)
    keepMesh(environment, { hosts: [], pings: [], links }, 'tcp', time, { addresses: {} })
  }
  const netTests: NetTestsPort = { ...idleNetTests, keptResults: () => resultPaths(environment), readKept }
  const harness = createConsoleHarness({ netTests })
  harness.type(`${LEADER}3v`)
  await settle()
  expect(textOf(harness).match(/mesh .*nothing was measured/g)).toHaveLength(2)
  harness.type('j\r')
  expect(textOf(harness)).toContain('mesh of 0 h')
})
