/** The Network tab over the console's own work port. */
import { mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { nfsTest } from '../../../../src/ops/net/kept-test.ts'
import { themes } from '../../../../src/ui/compositor/scene.ts'
import { footerBars } from '../../../../src/ui/console/header.ts'
import type { NetTestsPort } from '../../../../src/ui/network/net-tests-port.ts'
import { pageHints } from '../../../../src/ui/tabs/page-keys.ts'
import type { WorkPort } from '../../../../src/ui/work-views/work-port.ts'
import { createConsoleHarness, idleNetTests } from '../console/console-harness.ts'
import { FakeQueue, hostSpecs, statusOf } from '../jobs/fake-queue.ts'

const LEADER = '\x1d'
const second = (up: number, busy: number) =>
  `${up}.00 1.00\ncpu  ${busy} 0 0 ${up * 100} 0 0 0 0\nMemTotal: 1000 kB\nMemAvailable: 400 kB\n=\n`

it('samples the hosts from the first opening of the tab on, shows the samples, and goes back to the shells', () => {
  const started = new Map<string, Parameters<WorkPort['startCommand']>>()
  const stopped: string[] = []
  const work: WorkPort = {
    startCommand(...order) {
      started.set(order[0], order)
      return { stop: () => stopped.push(order[0]), abandon() {}, pause() {}, resume() {} }
    },
    copy: async () => undefined,
    saveOutput: async () => '',
    fanOut: 64,
    spillDirectory: '',
  }
  const harness = createConsoleHarness({ hosts: ['m1', 'm2'], work })
  const page = harness.console.pages.network
  const text = () =>
    page
      .panes({ column: 0, row: 1, width: 80, height: 22 }, themes.none)
      .flatMap(({ notice }) => notice.map((row) => row.map((span) => span.text).join('')))
      .join('\n')
  expect(started.size).toBe(0)
  harness.type(`${LEADER}3`)
  expect(harness.console.state.tab).toBe('network')
  expect([...started.keys()]).toEqual(['m1', 'm2'])
  expect(started.get('m1')?.[1]).toMatch(/^exec \/bin\/sh -c '[^']*'$/)
  expect(text()).toContain('collecting data…')
  const [, , m1] = started.get('m1') ?? []
  const [, , m2] = started.get('m2') ?? []
  m1?.onBegin()
  m1?.onStdout(Buffer.from(second(1, 0) + second(2, 100)))
  m2?.onEnd({ kind: 'unreachable', reason: 'no connection' })
  harness.clock.advance(1000)
  expect(text()).toMatch(/^ m1 +50% .*60%/m)
  expect(text()).toMatch(/^ m2 +unreachable: no connection$/m)
  harness.type('>')
  expect(text()).toMatch(/CPU▾/)
  harness.type('\r')
  expect(harness.console.state.watch.view).toMatchObject({ isDetailed: true, selected: 'm1' })
  harness.type('q/m2\r')
  harness.type('\x1b')
  expect(harness.console.state.watch.view).toMatchObject({ isDetailed: false, selected: 'm2' })
  harness.type('/m1\x1b')
  harness.type('q')
  expect(harness.console.state.tab).toBe('network')
  expect(harness.console.state.notice?.text).toBe('Ctrl-] q quits, Ctrl-] D detaches, 1 shows the shells')
  harness.type('1')
  expect(harness.console.state.tab).toBe('shells')
  // Sampling continues until the console closes; only the processes of the page are no longer listed.
  expect(stopped).toEqual(['m1'])
  expect(harness.fleet.received.get('m1')).toBeUndefined()
  harness.console[Symbol.dispose]()
  expect(stopped).toContain('m1')
})

it('lists the processes of a host while its page is open, the heaviest first, sorted and filtered as any table', () => {
  const scripts: { host: string; handlers: Parameters<WorkPort['startCommand']>[2]; isStopped: boolean }[] = []
  const work: WorkPort = {
    startCommand(host, command, handlers) {
      const script = {
        host: `${host}${command.includes('stat') && command.includes('awk') ? ' processes' : ''}`,
        handlers,
        isStopped: false,
      }
      scripts.push(script)
      return { stop: () => (script.isStopped = true), abandon() {}, pause() {}, resume() {} }
    },
    copy: async () => undefined,
    saveOutput: async () => '',
    fanOut: 64,
    spillDirectory: '',
  }
  const harness = createConsoleHarness({ hosts: ['m1', 'm2'], work })
  const running = () =>
    scripts.filter(({ isStopped, host }) => !isStopped && host.includes(' ')).map(({ host }) => host)
  const print = (host: string, text: string) =>
    scripts.findLast((script) => script.host === host)?.handlers.onStdout(Buffer.from(text))
  const lines = (width = 80, height = 22) =>
    (harness.console.page?.panes({ column: 0, row: 1, width, height }, themes.none).at(-1)?.notice ?? []).map((row) =>
      row.map(({ text }) => text).join(''),
    )
  const report = (up: number, ticks: number) =>
    [
      `up ${up}\np 10 1 S ${ticks} 0 3 5 90000 ${ticks}000000 0 python3\n`,
      `p 11 1 S 0 0 1 5 50 - - sh\np 12 1 S ${ticks / 2} 0 1 5 100 - - cc1\n=\n`,
    ].join('')
  harness.type(`${LEADER}3`)
  print('m1', second(1, 0) + second(2, 100))
  harness.clock.advance(1000)
  harness.type('\r')
  expect(running()).toEqual(['m1 processes'])
  expect(lines().join('\n')).toContain('collecting data…')
  print('m1 processes', `c 10 alice python3 train.py\nc 11 bob sleep 1\nc 12 bob cc1 -O3 x.c\n${report(10, 100)}`)
  harness.clock.advance(1000)
  // Rates are known from the second report on; their columns have their places from the start.
  expect(lines()[1]).toBe('     PID USER        CPU   MEM  READ/s  WRITE/s COMMAND')
  expect(lines()[2]).toBe('      10 alice         –  352M       –        – python3 train.py')
  print('m1 processes', report(12, 300))
  harness.clock.advance(1000)
  expect(lines().slice(1, 5)).toEqual([
    '     PID USER        CPU   MEM  READ/s  WRITE/s COMMAND',
    '      10 alice      100%  352M    100M        0 python3 train.py',
    '      12 bob         50%  400k       –        – cc1 -O3 x.c',
    '      11 bob          0%  200k       –        – sleep 1',
  ])
  harness.type('>')
  expect(lines()[1]).toContain('PID▴')
  expect(
    lines()
      .slice(2, 5)
      .map((text) => text.slice(6, 8)),
  ).toEqual(['10', '11', '12'])
  harness.type('I/bob !cc1\r')
  expect(
    lines()
      .slice(2)
      .filter((text) => text !== ''),
  ).toEqual([expect.stringMatching(/^ +11 bob .*sleep 1/)])
  // Esc clears the filter first, and what it found stays selected.
  harness.type('\x1b\x1b[B')
  expect(harness.console.state.watch.view).toMatchObject({ isDetailed: true, pid: 10 })
  harness.type('\x1b[C')
  expect(running()).toEqual(['m2 processes'])
  // On another tab they are not visible.
  harness.type('6')
  print('m1', second(3, 100))
  expect(running()).toEqual([])
  harness.type('3')
  expect(running()).toEqual(['m2 processes'])
  harness.type('q')
  expect(running()).toEqual([])
  expect(harness.fleet.received.get('m1')).toBeUndefined()
  harness.console[Symbol.dispose]()
})

it('names another directory from the page of a measurement that could not begin', async () => {
  const netTests = {
    ...idleNetTests,
    measureNfs: async () => Promise.reject(new Error('it has no NFS mount; to measure another directory, name it')),
  }
  const harness = createConsoleHarness({ hosts: ['m1', 'm2'], netTests, size: { columns: 120, rows: 40 } })
  const hints = () =>
    footerBars(harness.console.state, themes.none)
      .left.map(({ text }) => text)
      .join('')
  harness.type(`${LEADER}3n\x15m2\r`)
  await new Promise((resolve) => setImmediate(resolve))
  expect(hints()).toContain('n another directory')
  harness.type('n')
  expect(harness.console.state.mode).toMatchObject({
    kind: 'dialog',
    dialog: { id: 'nfs-test', input: { text: 'm2 ' } },
  })
})

it.each([
  ['nothing', [], false],
  ['something', [4e6], true],
])('offers to write a measurement of an NFS mount that measured %s: %j, %s', async (_, writes, isOffered) => {
  const netTests: NetTestsPort = {
    ...idleNetTests,
    measureNfs: async (record) => {
      record.writes.push(...writes)
      return { test: nfsTest(record, 0), findings: [], last: undefined, problem: undefined }
    },
  }
  const harness = createConsoleHarness({ hosts: ['m1', 'm2'], netTests, size: { columns: 120, rows: 40 } })
  harness.type(`${LEADER}3n\x15m2\r`)
  await new Promise((resolve) => setImmediate(resolve))
  const hints = footerBars(harness.console.state, themes.none).left.map(({ text }) => text)
  expect(/\bw write/.test(hints.join(''))).toBe(isOffered)
  harness.console[Symbol.dispose]()
})

it('records what it shows, and replays recordings, newest first', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'muster-tab-'))
  try {
    const handlers: Parameters<WorkPort['startCommand']>[2][] = []
    const work: WorkPort = {
      startCommand(_host, _command, own) {
        handlers.push(own)
        return { stop() {}, abandon() {}, pause() {}, resume() {} }
      },
      copy: async () => undefined,
      saveOutput: async () => '',
      fanOut: 64,
      spillDirectory: '',
    }
    const hosts = hostSpecs(1).map((host) => ({ ...host, name: 'm1' }))
    const jobs = new FakeQueue([], statusOf(hosts, []))
    const harness = createConsoleHarness({ hosts: ['m1'], jobs, work, environment: { XDG_STATE_HOME: directory } })
    const table = () => harness.console.pages.network.panes({ column: 0, row: 1, width: 80, height: 8 }, themes.none)
    const text = () => table().flatMap(({ notice, badges }) => [...notice.flat(), ...badges].map((span) => span.text))
    const say = (up: number, busy: number) => handlers[0]?.onStdout(Buffer.from(second(up, busy)))
    harness.type(`${LEADER}3o`)
    expect(harness.console.state.notice?.text).toContain('no recordings yet')
    say(1, 0)
    harness.type('r')
    expect(text()).toContain(' ● recording ')
    expect(
      footerBars(harness.console.state, themes.none)
        .left.map((part) => part.text)
        .join(''),
    ).toContain('r stop recording')
    say(2, 100)
    harness.clock.advance(1000)
    say(3, 100)
    harness.type('r')
    expect(text()).not.toContain(' ● recording ')
    const [time = ''] = readdirSync(join(directory, 'muster', 'recordings'))
    const file = join(directory, 'muster', 'recordings', time, 'network.jsonl')
    expect(statSync(file).mode & 0o777).toBe(0o600)
    harness.clock.advance(60_000)
    say(4, 700)
    expect(text().join('')).toContain('86%')
    harness.type('o')
    expect(text().join('')).toMatch(/ m1 +50%.*replay \d\d:\d\d:\d\d · 1 of 1/)
    // The tab Packing goes on showing what is used now.
    harness.type('4')
    await new Promise((resolve) => setImmediate(resolve))
    const packing = harness.console.page?.panes({ column: 0, row: 1, width: 120, height: 22 }, themes.none) ?? []
    expect(packing.flatMap(({ notice }) => notice.flat().map((span) => span.text)).join('')).toContain('uses 86 % cpu')
    harness.type('3')
    // Neither begins a recording, nor says that it could.
    harness.type('r')
    expect(harness.console.state.notice?.text).toContain('r does nothing here')
    expect(pageHints(harness.console.state).map(([key]) => key)).not.toContain('r')
    harness.type('p')
    expect(text().join('')).toContain('paused')
    expect(pageHints(harness.console.state)).toEqual(
      expect.arrayContaining([
        ['p', 'continue'],
        ['Right', 'skip 10 s'],
      ]),
    )
    harness.type('p')
    expect(text().join('')).not.toContain('paused')
    expect(pageHints(harness.console.state)).toContainEqual(['p', 'pause'])
    harness.type('\x1b[C')
    expect(text().join('')).toMatch(/ m1 +0%.*the end/)
    harness.type('o')
    expect(harness.console.state.notice?.text).toContain('no older recording')
    harness.type('q')
    expect(harness.console.state.tab).toBe('network')
    expect(text().join('')).toContain('86%')
    harness.console[Symbol.dispose]()
  } finally {
    rmSync(directory, { recursive: true })
  }
})
