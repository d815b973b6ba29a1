/** The panel in a console on fakes: where keys go, what is asked, what is begun and ended. */
import { tmpdir } from 'node:os'
import { setImmediate } from 'node:timers/promises'
import { afterEach, describe, expect, it } from 'vitest'
import type { CommandHandlers } from '../../../../src/ops/run/run-hosts.ts'
import { themes } from '../../../../src/ui/compositor/scene.ts'
import { footerBars, headerBars } from '../../../../src/ui/console/header.ts'
import type { CopyOrder, WorkPort } from '../../../../src/ui/work-views/work-port.ts'
import { type ConsoleHarness, createConsoleHarness } from '../console/console-harness.ts'

const LEADER = '\x1d'

type FakeWork = WorkPort & {
  readonly commands: Map<
    string,
    { command: string; handlers: CommandHandlers; ends: string[]; isRetry?: boolean | undefined }
  >
  readonly orders: (CopyOrder & { end(): void })[]
  readonly saved: { directory: string; hosts: string[] }[]
}

function fakeWork(): FakeWork {
  const commands: FakeWork['commands'] = new Map()
  const orders: FakeWork['orders'] = []
  const saved: FakeWork['saved'] = []
  return {
    commands,
    orders,
    saved,
    fanOut: 64,
    spillDirectory: tmpdir(),
    startCommand(host, command, handlers, isRetry) {
      const ends: string[] = []
      commands.set(host, { command, handlers, ends, isRetry })
      return {
        stop: () => {
          ends.push('stop')
          handlers.onEnd({ kind: 'signal', signal: 'SIGTERM' })
        },
        abandon: () => ends.push('abandon'),
        pause() {},
        resume() {},
      }
    },
    copy: async (order) => {
      const ended = Promise.withResolvers<void>()
      orders.push({ ...order, end: ended.resolve })
      order.signal.addEventListener('abort', () => ended.resolve())
      await ended.promise
    },
    saveOutput: async (directory, outputs) => {
      saved.push({ directory, hosts: [...outputs.keys()] })
      return directory
    },
  }
}

const stands: ConsoleHarness[] = []
const open = (columns = 120, rows = 40): { harness: ConsoleHarness; work: FakeWork } => {
  const work = fakeWork()
  const harness = createConsoleHarness({ work, size: { columns, rows } })
  stands.push(harness)
  return { harness, work }
}

afterEach(() => {
  for (const { console } of stands.splice(0)) console[Symbol.dispose]()
})

const header = ({ console }: ConsoleHarness): string => {
  const { left, right } = headerBars(console.state, themes.dark, console.arrangement)
  return [...left, ...right].map(({ text }) => text).join('')
}
const footer = ({ console }: ConsoleHarness): string =>
  footerBars(console.state, themes.dark)
    .left.map(({ text }) => text)
    .join('')

/** The rows of the panel. */
function panelRows({ console }: ConsoleHarness, height = 40): string[] {
  const rect = { column: 0, row: 0, width: 90, height }
  const pane = console.work.pane(rect, themes.dark)
  return (pane?.notice ?? []).map((row) =>
    row
      .map(({ text }) => text)
      .join('')
      .trimEnd(),
  )
}

const end = (work: FakeWork, host: string, output: string, code = 0): void => {
  const handlers = work.commands.get(host)?.handlers
  handlers?.onBegin()
  if (output !== '') handlers?.onStdout(Buffer.from(output))
  handlers?.onEnd({ kind: 'exit', code })
}

/** Hosts and outcomes of the entries for the session report. */
const reported = ({ console }: ConsoleHarness) =>
  console.sessionLog.entries.map((entry) =>
    entry.kind === 'run' ? entry.groups.map(({ hosts, outcome }) => `${hosts.join(' ')}: ${outcome}`).join(', ') : '',
  )

describe('the panel of a run', () => {
  it('is named before a host on which it still runs is closed, and keeps the receivers if its hosts are closed', () => {
    const { harness, work } = open()
    const { console } = harness
    harness.type(`${LEADER}!on m[1-2]: sleep 30\r`)
    harness.type('\t')
    end(work, 'm2', '')
    harness.type(`${LEADER}x`)
    expect(console.state.mode).toMatchObject({
      dialog: { lines: [{}, { text: 'This also ends “sleep 30” on m1.', tone: 'warning' }] },
    })
    harness.type('Y')
    end(work, 'm1', '')
    console.removeHosts(['m2'])
    harness.type(`${LEADER}ot`)
    expect(harness.receivers()).toBe('m3,m4')
    expect(console.state.notice?.text).toBe('m[1-2] are closed: Ctrl-] + opens them')
    expect(console.state.panel?.hasKeys).toBe(true)
  })

  it('starts on the receivers and takes the keys; no host receives any', () => {
    const { harness, work } = open()
    harness.type(`${LEADER} `)
    harness.type('\r')
    harness.type(`${LEADER}!uptime\r`)
    expect([...work.commands.keys()]).toEqual(['m2', 'm3', 'm4'])
    expect(header(harness)).toContain(' RUN VIEW · hosts get no keys ')
    expect(footer(harness)).toMatch(/^ RUN VIEW {2}Tab shells {2}c stop/)
    harness.type('kgbnGhl ')
    harness.type('\x1b[200~rm -rf /\x1b[201~')
    for (const host of ['m1', 'm2', 'm3', 'm4']) expect(harness.got(host)).toBe('')
    harness.type('\thello')
    expect(header(harness)).toContain(' TYPING INTO 3: m[2-4] ')
    expect(harness.got('m2')).toBe('hello')
  })

  it('is named in the footer of the shells, with its key, also at 80×24', () => {
    const { harness } = open(80, 24)
    harness.type(`${LEADER}!sleep 20\r`)
    harness.type('\t')
    expect(footer(harness)).toContain(' Ctrl-] o run view ')
  })

  it('keeps the keys over a leader command and a dialog, and after the log', () => {
    const { harness } = open()
    harness.type(`${LEADER}!uptime\r`)
    harness.type(`${LEADER}n`)
    expect(header(harness)).toContain('RUN VIEW · hosts get no keys')
    harness.type(`${LEADER}a${LEADER}?`)
    harness.type('\x1b')
    harness.type(`${LEADER}6`)
    expect(header(harness)).not.toContain('RUN VIEW')
    harness.type('1')
    expect(header(harness)).toContain('RUN VIEW')
    harness.type('hello')
    expect(harness.got('m1')).toBe('')
  })

  it('folds hosts with equal output, failures first', () => {
    const { harness, work } = open()
    harness.type(`${LEADER}!id\r`)
    end(work, 'm1', 'same\n')
    end(work, 'm2', 'same\n')
    end(work, 'm3', 'bad\n', 7)
    work.commands.get('m4')?.handlers.onBegin()
    harness.clock.advance(1000)
    expect(panelRows(harness)).toEqual(
      expect.arrayContaining([
        ' $ id',
        expect.stringMatching(/^ 3 of 4 done, 1 failed, running 1\.0 s: m4$/),
        expect.stringMatching(/^▸ ✗ m3 {2}exit 7/),
        expect.stringMatching(/^ {2}… m4 {2}running 1\.0 s/),
        expect.stringMatching(/^ {2}✓ m\[1-2\] \(2\) {2}ok/),
      ]),
    )
    expect(panelRows(harness).filter((row) => row === '   same')).toHaveLength(1)
  })

  it('does not scroll beyond the longest line', async () => {
    const { harness, work } = open()
    harness.type(`${LEADER}!seq\r`)
    for (const host of ['m1', 'm2', 'm3', 'm4']) end(work, host, 'short\n')
    await setImmediate()
    harness.type('l')
    expect(panelRows(harness)).toContain('   short')
    expect(harness.console.state.notice?.text).toBe('no line here goes on to the right')
  })

  it('shows the line of the last match unchanged after a search that finds nothing, and scrolled to the right', async () => {
    const { harness, work } = open()
    harness.type(`${LEADER}!seq\r`)
    const long = 'x'.repeat(300)
    for (const host of ['m1', 'm2', 'm3', 'm4']) end(work, host, `line 7 of ${host}\nline 8 of ${host}\n${long}\n`)
    const search = async (needle: string) => {
      harness.type(`/${needle}\r`)
      await setImmediate()
      harness.clock.advance(1000)
    }
    expect(footer(harness)).not.toContain(' n ')
    await search('line 8')
    expect(panelRows(harness)).toContain(' ▸ line 8 of m1')
    expect(footer(harness)).toContain(' n next match  N previous match ')
    harness.type('l')
    expect(panelRows(harness).join('\n')).not.toMatch(/line|of m1/)
    harness.type('h')
    await search('zzz')
    expect(harness.console.state.notice?.text).toBe('“zzz” not found')
    expect(panelRows(harness)).toContain('   line 8 of m1')
    await search('line 9 of m1')
    expect(panelRows(harness)).toContain('   line 8 of m1')
    // Enter alone searches for the same again.
    await search('line 7')
    await search('')
    expect(panelRows(harness)).toContain(' ▸ line 7 of m2')
  })

  it('says which of all matches is shown, until more output comes', async () => {
    const { harness, work } = open()
    harness.type(`${LEADER}!seq\r`)
    for (const host of ['m1', 'm2', 'm3']) end(work, host, `Line of ${host}\nother\nline of ${host}\n`)
    const press = async (keys: string) => {
      harness.type(keys)
      await setImmediate()
      harness.clock.advance(1000)
      const { left, right } = footerBars(harness.console.state, themes.none)
      return [...left, ...right].map(({ text }) => text).join('')
    }
    expect(await press('/line\r')).toContain(' “line” 1 of 6 ')
    expect(await press('n')).toContain(' “line” 2 of 6 ')
    expect(await press('N')).toContain(' “line” 1 of 6 ')
    expect(await press('N')).toContain(' “line” 6 of 6 ')
    expect(await press('/Line\r')).toContain(' “Line” 1 of 3 ')
    // The groups have no match that is shown.
    expect(await press('\x1b')).not.toContain(' of 3 ')
    expect(await press('/Line of m\r')).toContain(' “Line of m” 1 of 3 ')
    harness.console.resize(40, 12)
    expect(await press('')).toMatch(/^ RUN VIEW +Tab shells +c stop $/)
    end(work, 'm4', 'Line of m4\n')
    harness.clock.advance(1000)
    expect(await press('')).not.toContain(' of 3 ')
    expect(await press('/zzz\r')).not.toContain(' of ')
  })

  it('keeps what was found in view while more output comes', async () => {
    const { harness, work } = open()
    harness.type(`${LEADER}!on m1: seq\r`)
    const handlers = work.commands.get('m1')?.handlers
    const print = (from: number, count: number) => {
      const lines = Array.from({ length: count }, (_, at) => `line ${from + at}\n`)
      handlers?.onStdout(Buffer.from(lines.join('')))
      harness.clock.advance(1000)
    }
    handlers?.onBegin()
    print(1, 9)
    harness.type('/line 8\r')
    await setImmediate()
    print(10, 200)
    expect(panelRows(harness)).toContain(' ▸ line 8')
    harness.type('G')
    print(210, 100)
    expect(panelRows(harness)).toContain('   line 309')
  })

  it('takes its notices with it when the keys go back to the shells', () => {
    const { harness, work } = open()
    harness.type(`${LEADER}!seq\r`)
    for (const host of ['m1', 'm2', 'm3', 'm4']) end(work, host, 'same\n')
    for (const [keys, key] of [
      ['\x1b', 'x'],
      [`${LEADER}o\x1b`, '\t'],
    ] as const) {
      harness.type(keys)
      expect(harness.console.state.notice?.text).toBe('Tab goes back to the shells, x closes')
      harness.type(key)
      expect(harness.console.state.notice).toBeUndefined()
    }
  })

  it('retries only on failed hosts, and says when there are none', () => {
    const { harness, work } = open()
    harness.type(`${LEADER}!id\r`)
    for (const host of ['m1', 'm2', 'm3', 'm4']) end(work, host, `${host}\n`, host === 'm3' ? 1 : 0)
    harness.clock.advance(1000)
    expect(work.commands.get('m3')?.isRetry).toBe(false)
    work.commands.clear()
    harness.type('r')
    expect(harness.console.state.mode).toMatchObject({ dialog: { title: 'Run again on m3?' } })
    expect([...work.commands]).toEqual([])
    harness.type('y')
    expect([...work.commands].map(([host, { isRetry }]) => [host, isRetry])).toEqual([['m3', true]])
    end(work, 'm3', 'now\n')
    harness.clock.advance(1000)
    expect(reported(harness)).toEqual(['m3: exit 1, m1: exit 0, m2: exit 0, m4: exit 0', 'm3: exit 0'])
    expect(panelRows(harness)).toContain('   now')
    expect(panelRows(harness)).not.toContain('   m3')
    harness.type('r')
    expect(harness.console.state.notice?.text).toContain('no host failed')
  })

  it('stops on Ctrl-C, and does not start again while it runs', () => {
    const { harness, work } = open()
    harness.type(`${LEADER}!sleep 9\r`)
    const dialog = () => {
      const { mode } = harness.console.state
      return mode.kind === 'dialog' ? mode.dialog : undefined
    }
    const reason = '“sleep 9” is still running: Esc, then Ctrl-] o shows it, c stops it'
    harness.type(`${LEADER}!`)
    expect(dialog()?.lines).toEqual([{ text: reason, tone: 'warning' }])
    harness.type('other\r')
    expect([dialog()?.input?.error, dialog()?.lines]).toEqual([reason, []])
    harness.type('\x1b')
    harness.type(`${LEADER}o${LEADER}o`)
    expect(harness.console.state.panel?.hasKeys).toBe(true)
    expect([...work.commands.values()].every(({ command }) => command === 'sleep 9')).toBe(true)
    harness.type('\x03')
    expect([...work.commands.values()].map(({ ends }) => ends)).toEqual(Array(4).fill(['stop']))
    expect(panelRows(harness)).toContain(' 4 hosts: 4 cancelled')
    harness.clock.advance(1000)
    expect(harness.console.state.log.at(-1)?.text).toBe('stopped on m[1-4]: “sleep 9”')
  })

  it('asks before it closes what runs, but not while that is being stopped, and withdraws the question when it has ended', () => {
    const { harness, work } = open()
    const mode = () => harness.console.state.mode
    harness.type(`${LEADER}!sleep 9\r`)
    harness.type('x')
    expect(mode()).toMatchObject({ kind: 'dialog', dialog: { id: 'stop-run' } })
    for (const host of ['m1', 'm2', 'm3', 'm4']) end(work, host, '')
    harness.clock.advance(1000)
    expect(mode()).toMatchObject({ kind: 'typing' })
    const stopSlowly = fakeWork()
    stopSlowly.startCommand = () => ({ stop() {}, abandon() {}, pause() {}, resume() {} })
    const other = createConsoleHarness({ work: stopSlowly })
    stands.push(other)
    other.type(`${LEADER}!sleep 9\r`)
    other.type('\x03x')
    expect(other.console.state.mode).toMatchObject({ kind: 'typing' })
    expect(other.console.state.notice?.text).toBe('it is being stopped; x closes it afterwards')
  })

  it('asks before the console closes, and stops running work when it does', () => {
    const { harness, work } = open()
    harness.type(`${LEADER}!sleep 9\r`)
    harness.type(`${LEADER}q`)
    expect(harness.quits()).toBe(0)
    harness.type('\x1b')
    expect(header(harness)).toContain('RUN VIEW')
    harness.type(`${LEADER}qy`)
    expect(harness.quits()).toBe(1)
    harness.console[Symbol.dispose]()
    expect(work.commands.get('m1')?.ends).toEqual(['abandon'])
  })

  it('closes without a question when nothing is running', () => {
    const { harness, work } = open()
    harness.type(`${LEADER}!id\r`)
    for (const host of ['m1', 'm2', 'm3', 'm4']) end(work, host, '')
    harness.type(`${LEADER}q`)
    expect(harness.quits()).toBe(1)
  })

  it('closes with x and opens again; Esc goes back to all groups and never into the shells', () => {
    const { harness, work } = open()
    harness.type(`${LEADER}!id\r`)
    for (const host of ['m1', 'm2', 'm3', 'm4']) end(work, host, `${host}\n`)
    harness.clock.advance(200)
    harness.type('j\r')
    expect(panelRows(harness)).not.toContain('   m1')
    harness.type('\x1b')
    expect(panelRows(harness)).toContain('   m1')
    harness.type('\x1b')
    harness.clock.advance(200)
    harness.type('\x1b')
    expect(harness.console.state.notice?.text).toBe('Tab goes back to the shells, x closes')
    harness.type('m')
    expect(harness.got('m1')).toBe('')
    harness.type('xterm\r')
    expect([harness.console.state.panel, harness.got('m1')]).toEqual([undefined, ''])
    harness.clock.advance(500)
    harness.type(`hi${LEADER}o`)
    expect(harness.got('m1')).toBe('hi')
    expect(panelRows(harness)).toContain('   m1')
  })

  it('gives the keys back to the shells when their tab is asked for beside it', () => {
    const { harness } = open()
    harness.type(`${LEADER}!id\r`)
    expect(harness.console.state.panel?.hasKeys).toBe(true)
    harness.type(`${LEADER}1`)
    expect(harness.console.state).toMatchObject({ tab: 'shells', panel: { hasKeys: false } })
  })

  it('shares its rows out: what short outputs leave goes to the long ones, and no single line is hidden', () => {
    const { harness, work } = open()
    harness.type(`${LEADER}!id\r`)
    const lines = Array.from({ length: 40 }, (_, index) => `line ${index + 1}\n`).join('')
    for (const host of ['m1', 'm2', 'm3']) end(work, host, lines)
    end(work, 'm4', 'bad\n', 3)
    harness.clock.advance(200)
    const rows = panelRows(harness, 20)
    expect(rows).toHaveLength(18)
    expect(rows.slice(-3)).toEqual(['   line 9', '   line 10', expect.stringContaining('… 30 more lines')])
    const whole = panelRows(harness, 49)
    expect(whole).toHaveLength(47)
    expect(whole.at(-1)).toBe('   line 40')
    expect(panelRows(harness, 48).at(-1)).toContain('… 2 more lines')
  })

  it('makes the hosts of a group the receivers', () => {
    const { harness, work } = open()
    harness.type(`${LEADER}!id\r`)
    for (const host of ['m1', 'm2', 'm3', 'm4']) end(work, host, host === 'm2' || host === 'm4' ? 'odd\n' : 'even\n')
    harness.clock.advance(200)
    harness.type('Gt')
    expect(harness.receivers()).toBe('m2,m4')
    expect(harness.console.state.focus).toBe('m2')
    // As in `tail x`.
    harness.type('ail')
    harness.clock.advance(5000)
    expect(header(harness)).toContain(' UNTIL ENTER · hosts get no keys ')
    harness.type(' x\r')
    expect([harness.got('m2'), harness.got('m4')]).toEqual(['', ''])
    harness.clock.advance(500)
    harness.type('x')
    expect(harness.got('m4')).toBe('x')
  })

  it('saves to the directory typed, and says whether the command still runs', async () => {
    const { harness, work } = open()
    harness.type(`${LEADER}!id\r`)
    harness.type('skept\r')
    expect(work.saved).toEqual([{ directory: 'kept', hosts: ['m1', 'm2', 'm3', 'm4'] }])
    await setImmediate()
    const notice = () => harness.console.state.notice?.text
    expect(notice()).toBe('saved what m[1-4] printed so far to kept; the command is still running')
    for (const host of ['m1', 'm2', 'm3', 'm4']) end(work, host, 'x\n')
    harness.clock.advance(200)
    harness.type('skept\r')
    await setImmediate()
    expect(notice()).toBe('saved the output of m[1-4] to kept')
  })

  it.each([
    [80, 24],
    [20, 5],
    [2, 1],
    [1, 1],
  ])('is drawn and handles its keys on a terminal of %i×%i', (columns, rows) => {
    const { harness, work } = open(columns, rows)
    harness.type(`${LEADER}!id\r`)
    end(work, 'm1', 'x'.repeat(300))
    harness.clock.advance(200)
    for (const key of ['j', 'k', ' ', 'b', 'g', 'G', 'h', 'l', 'z', 'd', '\r', '\x1b', 'n', 'N']) {
      harness.type(key)
      const rect = { column: 0, row: 0, width: columns, height: rows }
      expect(harness.console.work.pane(rect, themes.dark)?.notice.length).toBe(Math.max(0, rows - 2))
    }
  })
})

describe('the panel of a copy', () => {
  it('shows the progress of each host and of all, and failures', () => {
    const { harness, work } = open()
    harness.type(`${LEADER}con m[1-2]: a 'b c' /srv/\r`)
    const [order] = work.orders
    expect(order).toMatchObject({ hosts: ['m1', 'm2'], sources: ['a', 'b c'], destination: '/srv/' })
    for (const host of ['m1', 'm2']) order?.onEvent({ type: 'begin', host, files: 2, totalBytes: 1000 })
    order?.onEvent({ type: 'progress', host: 'm1', bytes: 500 })
    harness.clock.advance(200)
    expect(panelRows(harness)).toEqual(
      expect.arrayContaining([
        expect.stringMatching(/^ 0 of 2 hosts done {2}\[####-+\] {2}25 % {2}500 B of 2\.0 KiB$/),
        expect.stringMatching(/^ … m1 {2}\[########-+\] {2}50 %/),
      ]),
    )
    const none = { copied: 1, identical: 0, failed: 1, sentBytes: 500, durationMs: 10 }
    order?.onEvent({
      type: 'file',
      host: 'm2',
      path: '/srv/a',
      action: 'failed',
      sizeBytes: 1,
      reason: 'No space left',
    })
    order?.onEvent({ type: 'result', host: 'm2', result: { outcome: 'failed', ...none } })
    harness.clock.advance(200)
    const rows = panelRows(harness)
    expect(rows.findIndex((row) => row.startsWith(' ✗ m2'))).toBeLessThan(
      rows.findIndex((row) => row.startsWith(' … m1')),
    )
    expect(rows).toContain('     /srv/a: No space left')
  })

  it('tells the session report why it failed', async () => {
    const { harness, work } = open()
    harness.type(`${LEADER}con m[1-3]: a /srv/\r`)
    const [order] = work.orders
    const none = { copied: 0, identical: 0, failed: 0, sentBytes: 0, durationMs: 10 }
    const file = { type: 'file', path: '/srv/a', action: 'failed', sizeBytes: 1, reason: 'No space left' } as const
    order?.onEvent({ host: 'm1', ...file })
    order?.onEvent({ type: 'result', host: 'm1', result: { ...none, outcome: 'failed', failed: 2 } })
    order?.onEvent({ type: 'result', host: 'm2', result: { ...none, outcome: 'unreachable', reason: 'no route' } })
    order?.onEvent({ type: 'result', host: 'm3', result: { ...none, outcome: 'ok', copied: 1 } })
    order?.end()
    await setImmediate()
    harness.clock.advance(200)
    expect(harness.console.sessionLog.entries).toMatchObject([
      {
        groups: [
          { hosts: ['m1'], outcome: 'failed', lines: ['/srv/a: No space left', '… and 1 more'] },
          { hosts: ['m2'], outcome: 'unreachable', lines: ['no route'] },
          { hosts: ['m3'], outcome: 'ok', lines: [] },
        ],
      },
    ])
  })

  it('retries only on failed hosts, and reports no other ones again', async () => {
    const { harness, work } = open()
    harness.type(`${LEADER}con m[1-2]: a /srv/\r`)
    const none = { copied: 1, identical: 0, failed: 0, sentBytes: 500, durationMs: 10 }
    const finish = (host: string, outcome: 'ok' | 'failed') =>
      work.orders.at(-1)?.onEvent({ type: 'result', host, result: { outcome, ...none } })
    finish('m1', 'ok')
    finish('m2', 'failed')
    work.orders[0]?.end()
    await setImmediate()
    harness.clock.advance(200)
    harness.type('r')
    expect(harness.console.state.mode).toMatchObject({ dialog: { title: 'Copy again on m2?' } })
    harness.type('y')
    expect(work.orders[1]).toMatchObject({ hosts: ['m2'], isRetry: true })
    finish('m2', 'ok')
    work.orders[1]?.end()
    await setImmediate()
    harness.clock.advance(200)
    expect(reported(harness)).toEqual(['m1: ok, m2: failed', 'm2: ok'])
  })

  it('is cancelled by its signal', () => {
    const { harness, work } = open()
    harness.type(`${LEADER}ca /srv/\r`)
    // As in `cat y`: the letters close or keep the question, and none answers it.
    harness.type('cat y')
    expect(work.orders[0]?.signal.aborted).toBe(false)
    harness.type('y')
    expect(work.orders[0]?.signal.aborted).toBe(true)
  })

  it('is cancelled at once with Ctrl-C', () => {
    const { harness, work } = open()
    harness.type(`${LEADER}ca /srv/\r`)
    harness.type('\x03')
    expect(work.orders[0]?.signal.aborted).toBe(true)
  })
})
