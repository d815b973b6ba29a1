import { describe, expect, test } from 'vitest'
import { clip } from '../../../../src/base/text-width.ts'
import { createCellGrid } from '../../../../src/terminal/cells.ts'
import { dialogSpot, layoutDialog } from '../../../../src/ui/components/layout-dialog.ts'
import { themes } from '../../../../src/ui/compositor/scene.ts'
import { footerBars, headerBars, noticeBar } from '../../../../src/ui/console/header.ts'
import { buildScene } from '../../../../src/ui/console/pane-view.ts'
import type { Preferences } from '../../../../src/ui/preferences.ts'
import { type ConsoleHarness, createConsoleHarness } from './console-harness.ts'

const LEADER = '\x1d'
const barText = (bars: { left: readonly { text: string }[]; right: readonly { text: string }[] }): string =>
  [...bars.left, ...bars.right].map(({ text }) => text).join('')
const header = ({ console }: ConsoleHarness): string =>
  barText(headerBars(console.state, themes.dark, console.arrangement))
const said = ({ console }: ConsoleHarness): string => noticeBar(console.state, themes.dark)?.part.text ?? ''

describe('typing', () => {
  test('sends typed keys unchanged to every receiver', () => {
    const harness = createConsoleHarness()
    harness.type('uptime\r')
    expect([harness.got('m1'), harness.got('m4')]).toEqual(['uptime\r', 'uptime\r'])
  })

  test('sends the leader when it is typed twice', () => {
    const harness = createConsoleHarness()
    harness.type(LEADER + LEADER)
    expect(harness.got('m2')).toBe(LEADER)
  })

  test('treats a key after the leader as a command that reaches no host', () => {
    const harness = createConsoleHarness()
    harness.type(`${LEADER}n`)
    harness.type('x')
    expect(harness.got('m1')).toBe('')
    expect(said(harness)).toContain('no receivers: Ctrl-] a selects all hosts')
  })

  test('reports an unknown command key, which reaches no host', () => {
    const harness = createConsoleHarness()
    harness.type(`${LEADER}Y`)
    expect(harness.got('m1')).toBe('')
    expect(said(harness)).toContain('unknown command: Y')
  })

  test('says which hosts were skipped, and why', () => {
    const harness = createConsoleHarness()
    harness.fleet.away.set('m3', 'reconnecting')
    harness.type('x')
    expect(said(harness)).toContain('sent to 3 of 4, not to m3: reconnecting')
    for (const host of ['m1', 'm2', 'm4']) harness.fleet.away.set(host, 'shell ended')
    harness.type('x')
    expect(said(harness)).toContain('not sent to m[1-2,4]: shell ended; m3: reconnecting')
  })

  test('no longer says it once they get keys again', () => {
    const harness = createConsoleHarness()
    harness.fleet.away.set('m3', 'reconnecting')
    harness.type('x')
    expect(harness.console.state.notice?.text).toBe('sent to 3 of 4, not to m3: reconnecting')
    harness.fleet.away.delete('m3')
    harness.type('y')
    expect(harness.console.state.notice).toBeUndefined()
  })

  test('logs once that the same hosts get no keys, whatever they try meanwhile', () => {
    const harness = createConsoleHarness()
    for (const reason of ['connecting', 'unreachable', 'connecting']) {
      harness.fleet.away.set('m3', reason)
      harness.type('x')
    }
    const logged = () => harness.console.state.log.filter(({ text }) => text.startsWith('sent to'))
    expect(logged().map(({ text }) => text)).toEqual(['sent to 3 of 4, not to m3: connecting'])
    harness.fleet.away.set('m4', 'connecting')
    harness.type('x')
    expect(logged()).toHaveLength(2)
    harness.clock.advance(10_000)
    harness.type('x')
    expect(logged()).toHaveLength(3)
  })

  test('says which host dropped typed bytes to make room for an interrupt', () => {
    const harness = createConsoleHarness()
    harness.fleet.discarded = [
      { host: 'm3', bytes: 12 },
      { host: 'm4', bytes: 1_048_576 },
    ]
    harness.type('\x03')
    expect(said(harness)).toContain('m3 dropped 12 bytes; m4 dropped 1048576 bytes')
    expect(harness.console.state.log.at(-1)?.text).toContain('m3 dropped 12 bytes')
  })

  test('sends an arrow key as each host requested it', async () => {
    const harness = createConsoleHarness()
    await harness.print('m2', '\x1b[?1h')
    harness.type('\x1b[A')
    expect([harness.got('m1'), harness.got('m2')]).toEqual(['\x1b[A', '\x1bOA'])
  })

  test('never types an answer of the terminal into a host', () => {
    const harness = createConsoleHarness()
    harness.type('\x1b]11;rgb:0000/0000/0000\x1b\\\x1b[?62c')
    expect(harness.got('m1')).toBe('')
  })

  test('answers a query of one host only to that host', async () => {
    const harness = createConsoleHarness()
    await harness.print('m2', '\x1b[6n')
    expect(harness.got('m2')).toBe('\x1b[1;1R')
    expect(harness.got('m1')).toBe('')
  })
})

describe('receivers', () => {
  test('are all hosts at the start, and the header says so', () => {
    expect(header(createConsoleHarness())).toContain('TYPING INTO ALL 4: m[1-4]')
  })

  test('lose the focused host on toggle, and typing continues without it', () => {
    const harness = createConsoleHarness()
    harness.type(`${LEADER} `)
    harness.type('ls')
    expect(harness.got('m1')).toBe('')
    expect(harness.got('m2')).toBe('ls')
  })

  test('are selected with arrows and Space until another key is typed', () => {
    const harness = createConsoleHarness()
    harness.type(`${LEADER} `)
    harness.type('\x1b[C \x1b[B ')
    expect(harness.receivers()).toBe('m3')
    harness.type('q')
    expect(harness.got('m3')).toBe('q')
  })

  test('are one host only, and then the earlier ones again', () => {
    const harness = createConsoleHarness()
    harness.type(`${LEADER} `)
    harness.type(`\r${LEADER}s`)
    expect(harness.receivers()).toBe('m1')
    harness.type(`${LEADER}s`)
    expect(harness.receivers()).toBe('m2,m3,m4')
  })

  test('are in view when they are named: the focus goes to the first of them, unless it is on one', () => {
    const harness = createConsoleHarness()
    const shown = () => [...harness.console.arrangement.shown]
    harness.type(`${LEADER}z`)
    expect(shown()).toEqual(['m1'])
    harness.type(`${LEADER}/m[3-4]\r`)
    expect(shown()).toEqual(['m3'])
    harness.type(`${LEADER}/m[1-3]\r`)
    expect(shown()).toEqual(['m3'])
  })

  test('are inverted', () => {
    const harness = createConsoleHarness()
    harness.type(`${LEADER} \r${LEADER}i`)
    expect(harness.receivers()).toBe('m1')
  })

  test('are a host set, with a preview while it is typed; a wrong one is explained and changes nothing', () => {
    const harness = createConsoleHarness()
    harness.type(`${LEADER}/m[2-3`)
    const { mode } = harness.console.state
    expect(mode.kind === 'dialog' && mode.dialog.input?.error).toBeTruthy()
    harness.type('\r')
    expect(harness.receivers()).toBe('m1,m2,m3,m4')
    harness.type(']\r')
    expect(harness.receivers()).toBe('m2,m3')
    harness.type('x')
    expect([harness.got('m1'), harness.got('m2')]).toEqual(['', 'x'])
  })

  test('are a group of hosts.yaml', () => {
    const harness = createConsoleHarness({ groups: new Map([['workers', ['m3', 'm4']]]) })
    harness.type(`${LEADER}gworkers\r`)
    expect(harness.receivers()).toBe('m3,m4')
  })

  test('are only hosts that differ from the majority', async () => {
    const harness = createConsoleHarness()
    for (const host of ['m1', 'm2', 'm3', 'm4']) await harness.print(host, host === 'm3' ? 'kernel 6.2' : 'kernel 6.1')
    harness.type(`${LEADER}f`)
    expect(harness.receivers()).toBe('m3')
  })

  test('leave room for the page and the tab at 80 columns, also with 20 hosts and new output', async () => {
    const hosts = Array.from({ length: 20 }, (_, index) => `m${index + 1}`)
    const harness = createConsoleHarness({ hosts, size: { columns: 80, rows: 24 } })
    for (const host of hosts) await harness.print(host, 'news')
    const { left, right } = headerBars(harness.console.state, themes.none, harness.console.arrangement)
    expect([...left, ...right].map(({ text }) => text).join('')).toMatch(
      /ALL 20: m\[1-20\] · 16 out of view +1\/5 +1 Shells/,
    )
  })

  test.each([
    [44, ' TYPING INTO ALL 3: m[1-3] · 2 out of view '],
    [38, ' TYPING INTO ALL 3 · 2 out of view '],
    [30, ' INTO ALL 3 · 2 out of view '],
    [20, ' INTO ALL 3 '],
  ])('lose their names before anything else at %i columns', (columns, text) => {
    expect(header(createConsoleHarness({ hosts: ['m1', 'm2', 'm3'], size: { columns, rows: 12 } }))).toContain(text)
  })

  test('are counted when they are out of view, in the colour of danger', () => {
    const harness = createConsoleHarness({
      hosts: Array.from({ length: 30 }, (_, index) => `m${index + 1}`),
      size: { columns: 80, rows: 24 },
    })
    const bars = headerBars(harness.console.state, themes.dark, harness.console.arrangement)
    const part = bars.left.find(({ text }) => text.includes('TYPING'))
    expect(part?.text).toContain('out of view')
    expect(part?.fill).toBe(themes.dark.danger)
  })
})

describe('the number of different hosts', () => {
  test('is in the header, also if it is zero', async () => {
    const harness = createConsoleHarness({ size: { columns: 120, rows: 40 } })
    for (const host of ['m1', 'm2', 'm3', 'm4']) await harness.print(host, 'kernel 6.1')
    harness.type(`${LEADER}d`)
    expect(header(harness)).toContain(' screens equal ')
    // The only sign of it where the header has no room for words.
    expect(harness.console.state.notice?.text).toBe('all 4 screens are equal')
    await harness.print('m3', 'x')
    harness.clock.advance(300)
    expect(header(harness)).toContain(' 1 screen differs ')
    await harness.print('m4', 'y')
    harness.clock.advance(300)
    expect(header(harness)).toContain(' 2 screens differ ')
    await harness.print('m1', 'z')
    harness.clock.advance(300)
    expect(header(harness)).toContain(' all screens differ ')
    harness.type(`${LEADER}d`)
    expect(header(harness)).not.toContain('differ')
  })
})

describe('panes', () => {
  test('have equal terminals, and zoom gives one the whole screen', () => {
    const harness = createConsoleHarness()
    const sizes = new Set([...harness.fleet.sizes.values()].map(({ columns, rows }) => `${columns}x${rows}`))
    expect([...sizes]).toEqual(['58x17'])
    harness.type(`${LEADER}z`)
    expect(harness.fleet.sizes.get('m1')).toEqual({ columns: 118, rows: 36 })
    expect(harness.fleet.sizes.get('m2')).toEqual({ columns: 58, rows: 17 })
  })

  test('turn the page when the focus moves over the lower edge', () => {
    const harness = createConsoleHarness({
      hosts: Array.from({ length: 30 }, (_, index) => `m${index + 1}`),
      size: { columns: 80, rows: 24 },
    })
    expect(harness.console.arrangement.placed).toHaveLength(4)
    harness.type(`${LEADER}j`)
    harness.type('\x1b[B')
    expect(harness.console.state.focus).toBe('m5')
    expect(harness.console.arrangement.page).toBe(1)
  })

  test('fit six hosts on 80×24', () => {
    const harness = createConsoleHarness({
      hosts: ['m1', 'm2', 'm3', 'm4', 'm5', 'm6'],
      size: { columns: 80, rows: 24 },
    })
    expect(harness.console.arrangement.placed).toHaveLength(6)
  })

  test('show new output on other pages until the page is shown', async () => {
    const harness = createConsoleHarness({
      hosts: Array.from({ length: 8 }, (_, index) => `m${index + 1}`),
      size: { columns: 80, rows: 24 },
    })
    await harness.print('m8', 'done')
    expect(header(harness)).toContain('1/2 · 1 new')
    harness.type(`${LEADER}\x1b[6~`)
    expect(header(harness)).not.toContain(' new')
  })

  test('count no prompts as new output that are drawn again in another size', async () => {
    const harness = createConsoleHarness({
      hosts: Array.from({ length: 8 }, (_, index) => `m${index + 1}`),
      size: { columns: 80, rows: 24 },
    })
    harness.type(`${LEADER}>`)
    const hasNews = (host: string) => harness.console.state.hosts.get(host)?.hasNews
    await harness.print('m8', '\r\x1b[Kroot@m8:~# ')
    expect(hasNews('m8')).toBe(false)
    harness.clock.advance(1001)
    await harness.print('m8', 'done')
    expect(hasNews('m8')).toBe(true)
    harness.type(`${LEADER}>`)
    await harness.print('m7', 'y\r\n'.repeat(2000))
    expect(hasNews('m7')).toBe(true)
  })

  test('fold equal screens into one pane, and split when they differ', async () => {
    const harness = createConsoleHarness()
    for (const host of ['m1', 'm2', 'm3', 'm4']) await harness.print(host, `root@${host}:~# `)
    harness.type(`${LEADER}=`)
    expect(harness.console.arrangement.units).toEqual([['m1', 'm2', 'm3', 'm4']])
    await harness.print('m3', 'x')
    harness.clock.advance(300)
    expect(harness.console.arrangement.units).toEqual([['m1', 'm2', 'm4'], ['m3']])
    harness.type(`${LEADER}=`)
    expect(harness.console.arrangement.units).toHaveLength(4)
  })

  test('are focused by a click, and toggled by a click on the title', () => {
    const harness = createConsoleHarness()
    harness.type('\x1b[<0;70;10M')
    expect(harness.console.state.focus).toBe('m2')
    harness.type('\x1b[<0;70;2M')
    expect(harness.receivers()).toBe('m1,m3,m4')
  })

  test('pass mouse events inside a pane to a program that requested them', async () => {
    const harness = createConsoleHarness()
    await harness.print('m2', '\x1b[?1000h\x1b[?1006h')
    harness.type('\x1b[<0;70;10M')
    expect(harness.got('m2')).toBe('\x1b[<0;9;8M')
    expect(harness.got('m1')).toBe('')
  })

  test('turn the wheel into arrow keys for a full-screen program without mouse support', async () => {
    const harness = createConsoleHarness()
    await harness.print('m1', '\x1b[?1049h')
    await harness.print('m2', '\x1b[?1049h\x1b[?1h')
    harness.type('\x1b[<65;5;5M')
    expect([harness.got('m1'), harness.got('m2')]).toEqual(['\x1b[B'.repeat(3), ''])
    harness.type('\x1b[<64;70;10M')
    expect([harness.got('m1'), harness.got('m2')]).toEqual(['\x1b[B'.repeat(3), '\x1bOA'.repeat(3)])
  })
})

describe('hosts that call themselves something else', () => {
  const fold = async (prompts: readonly string[]) => {
    const harness = createConsoleHarness({ hosts: ['m1', 'm2', 'm3'] })
    for (const [index, prompt] of prompts.entries()) await harness.print(`m${index + 1}`, prompt)
    for (const [index, prompt] of prompts.entries()) await harness.print(`m${index + 1}`, `date\r\nnow\r\n${prompt}`)
    return harness.console.comparison.refresh()
  }

  test('are folded at their prompts', async () => {
    expect(await fold(['root@node1:~# ', 'root@node2:~# ', 'root@other:~# '])).toEqual([['m1', 'm2', 'm3']])
  })

  test('differ if they have the name of another host', async () => {
    expect(await fold(['root@m1:~# ', 'root@m3:~# ', 'root@m3:~# '])).toEqual([['m1', 'm3'], ['m2']])
  })
})

describe('selecting one host alone', () => {
  test('that was the only receiver before others were, leads back to these', () => {
    const harness = createConsoleHarness({ hosts: ['m1', 'm2', 'm3'] })
    const { console } = harness
    harness.type(`${LEADER}n${LEADER}l${LEADER} `)
    harness.type('\r')
    expect(harness.receivers()).toBe('m2')
    console.change((state) => ({ isFolded: true, equalGroups: [[...state.hosts.keys()]] }))
    harness.type(`${LEADER}s`)
    console.change(() => ({ isFolded: false, equalGroups: [], focus: 'm2' }))
    expect(harness.receivers()).toBe('m1,m2,m3')
    harness.type(`${LEADER}s`)
    expect(harness.receivers()).toBe('m2')
    harness.type(`${LEADER}s`)
    expect(harness.receivers()).toBe('m1,m2,m3')
  })
})

describe('selecting some of the receivers alone', () => {
  test('leads back to all that received, also if these were selected alone before', () => {
    const harness = createConsoleHarness({ hosts: ['m1', 'm2'] })
    const { console } = harness
    harness.type(`${LEADER}/`)
    harness.type('m1\r')
    expect(harness.receivers()).toBe('m1')
    console.change(() => ({ isFolded: true, equalGroups: [['m1', 'm2']] }))
    harness.type(`${LEADER}s`)
    expect(harness.receivers()).toBe('m1,m2')
    console.change(() => ({ isFolded: false, equalGroups: [], focus: 'm2' }))
    harness.type(`${LEADER}s`)
    expect(harness.receivers()).toBe('m2')
    harness.type(`${LEADER}s`)
    expect(harness.receivers()).toBe('m1,m2')
  })
})

describe('a notice that is too long for the screen', () => {
  const long = `cannot reload hosts.yaml: ${'because '.repeat(12)}of this`

  test.each([80, 120])('ends with (Log), and the Log has all of it once, in %i columns', (columns) => {
    const harness = createConsoleHarness({ size: { columns, rows: 24 } })
    const { console } = harness
    const logged = () => console.state.log.map(({ text }) => text).filter((text) => text !== 'connected')
    console.notice('short')
    expect([said(harness), logged()]).toEqual([' short ', []])
    console.notice(long, 'warning')
    expect(said(harness)).toMatch(/^ cannot reload hosts\.yaml: .*… \(Log\) $/)
    expect(said(harness).length).toBeLessThanOrEqual(columns - 4)
    expect(logged()).toEqual([long])
    // Code that has logged the text itself.
    const other = `${long} and that`
    console.log('m1', other, 'warning')
    console.notice(other, 'warning')
    expect(logged()).toEqual([long, other])
  })
})

describe('pastes', () => {
  test('are told from what is composed, also when it is opened again', async () => {
    const harness = createConsoleHarness()
    await askForBrackets(harness)
    const dialog = () => {
      const { mode } = harness.console.state
      return mode.kind === 'dialog' ? [mode.dialog.id, mode.dialog.title] : undefined
    }
    const composed = ['compose', 'Compose for 4 hosts: m[1-4]']
    harness.type(`${LEADER}p`)
    expect(dialog()).toEqual(composed)
    const { mode } = harness.console.state
    expect(mode.kind === 'dialog' && mode.dialog.lines.at(-1)?.text).toContain('only after your Enter')
    harness.type('one\rtwo')
    harness.type('\x1b')
    harness.type(`${LEADER}p`)
    expect(dialog()).toEqual(composed)
    harness.type('\x13')
    harness.type(paste('one\ntwo'))
    harness.type('\x1b')
    harness.type(`${LEADER}p`)
    expect(dialog()).toEqual(['paste-review', 'Paste 2 lines into 4 hosts: m[1-4]'])
  })

  test('are shown first where Esc was typed before, as a line editor then runs each line', async () => {
    const harness = createConsoleHarness({ hosts: ['m1'] })
    const isReviewed = () => {
      const { mode } = harness.console.state
      if (mode.kind !== 'dialog') return false
      expect(mode.dialog.lines.map(({ text }) => text).join()).toContain('as if typed')
      harness.type('\x1b')
      harness.clock.advance(1000)
      return true
    }
    await harness.print('m1', '\x1b[?2004h$ ')
    harness.type(paste('one\ntwo'))
    expect([isReviewed(), harness.got('m1')]).toEqual([false, '\x1b[200~one\rtwo\x1b[201~'])
    harness.type('\x1b')
    harness.clock.advance(1000)
    harness.type(paste('one\ntwo'))
    expect(isReviewed()).toBe(true)
    harness.type('x')
    harness.type(paste('three\nfour'))
    expect(isReviewed()).toBe(false)
    // An editor on the whole screen takes Esc at once.
    await harness.print('m1', '\x1b[?1049h')
    harness.type('\x1b')
    harness.clock.advance(1000)
    harness.type(paste('five\nsix'))
    expect([isReviewed(), harness.got('m1').endsWith('\x1b[200~five\rsix\x1b[201~')]).toEqual([false, true])
  })

  test('are counted without a line for a line break at the end', () => {
    for (const [text, title] of [
      ['one\ntwo\n', 'Paste 2 lines into 4 hosts'],
      ['one\ntwo\nthree', 'Paste 3 lines into 4 hosts'],
    ] as const) {
      const harness = createConsoleHarness()
      harness.type(`\x1b[200~${text}\x1b[201~`)
      const { mode } = harness.console.state
      expect(mode.kind === 'dialog' && mode.dialog.title).toContain(title)
    }
  })

  test('name the hosts that can get them, as the header does', () => {
    const harness = createConsoleHarness()
    harness.fleet.events.emit({ type: 'shell', host: 'm2', state: { kind: 'ended', end: { kind: 'exit', code: 0 } } })
    harness.type(paste('one\ntwo'))
    const { mode } = harness.console.state
    expect(mode.kind === 'dialog' && mode.dialog.title).toBe('Paste 2 lines into 3 hosts: m[1,3-4]')
  })

  test('name a host that is lost while they are open, which gets nothing of them', async () => {
    const harness = createConsoleHarness()
    await askForBrackets(harness)
    harness.type(paste('one\ntwo'))
    const shown = () => {
      const { mode } = harness.console.state
      if (mode.kind !== 'dialog') return []
      const { title, lines, keys } = mode.dialog
      return [title, lines.at(-1)?.text, keys[0]?.[1]]
    }
    expect(shown()).toEqual(['Paste 2 lines into 4 hosts: m[1-4]', '2 │ two▏', 'send to 4'])
    harness.fleet.events.emit({ type: 'shell', host: 'm2', state: { kind: 'ended', end: { kind: 'exit', code: 0 } } })
    expect(shown()).toEqual([
      'Paste 2 lines into 3 hosts: m[1,3-4]',
      'not to m2: lost since this was opened',
      'send to 3',
    ])
  })

  test('go to no new shell, and keep the text if all hosts have a new one', () => {
    const harness = createConsoleHarness()
    harness.type(paste('one\ntwo'))
    for (const host of ['m1', 'm2', 'm3', 'm4']) harness.fleet.renewShell(host)
    expect(dialog(harness)?.title).toBe('Paste 2 lines into 0 hosts')
    harness.type('\x13')
    expect(['m1', 'm2', 'm3', 'm4'].map(harness.got)).toEqual(['', '', '', ''])
    expect(harness.console.state.notice?.text).toBe(
      'Ctrl-] p opens the text again; not sent to m[1-4]: its shell is new',
    )
    harness.type(`${LEADER}p`)
    expect(dialog(harness)?.title).toBe('Paste 2 lines into 4 hosts: m[1-4]')
    harness.type('\x13')
    expect(harness.got('m4')).toBe('one\rtwo')
  })

  test('name hosts that take the text as if it were typed, where others take it as a paste', async () => {
    const harness = createConsoleHarness()
    const last = () => {
      harness.type(paste('one\ntwo'))
      const { mode } = harness.console.state
      harness.type('\x18\x18')
      return mode.kind === 'dialog' ? mode.dialog.lines.at(-1)?.text : undefined
    }
    expect(last()).toBe('as if typed (no bracketed paste): a shell runs each line at once')
    for (const host of ['m1', 'm2', 'm4']) await harness.print(host, '\x1b[?2004h')
    expect(last()).toBe('as if typed on m3 (no bracketed paste): a shell runs each line at once')
    await harness.print('m3', '\x1b[?2004h')
    expect(last()).toBe('2 │ two▏')
  })

  const paste = (text: string): string => `\x1b[200~${text}\x1b[201~`

  const askForBrackets = async (harness: ConsoleHarness): Promise<void> => {
    for (const host of harness.console.state.hosts.keys()) await harness.print(host, '\x1b[?2004h')
  }

  test('say how many control characters they leave out, in one line and in the review', async () => {
    const harness = createConsoleHarness({ hosts: ['m1', 'm2'] })
    await askForBrackets(harness)
    harness.type(paste('A\x03B\x07'))
    expect(harness.got('m1')).toContain('AB')
    expect(harness.console.state.notice?.text).toBe('left 2 control characters out of the paste')
    harness.type(paste('one\x0ctwo\nthree'))
    const { mode, notice } = harness.console.state
    expect(mode.kind === 'dialog' && mode.dialog.lines.map(({ text }) => text)).toEqual(['1 │ onetwo', '2 │ three▏'])
    expect(notice?.text).toBe('left 1 control character out of the paste')
    harness.type('\x1b\x1d6')
    harness.type(paste('\x03'))
    expect(harness.console.state.notice?.text).toBe('pasting works only in the shells: press 1')
  })

  test('send one line at once, bracketed if the host requested it', async () => {
    const harness = createConsoleHarness()
    await harness.print('m2', '\x1b[?2004h')
    harness.type(paste('ls -l'))
    expect([harness.got('m1'), harness.got('m2')]).toEqual(['ls -l', '\x1b[200~ls -l\x1b[201~'])
  })

  test('of several lines to several hosts are held for review', () => {
    const harness = createConsoleHarness()
    harness.type(paste('one\ntwo'))
    expect(harness.got('m1')).toBe('')
    harness.type('\r\r')
    expect(harness.got('m1')).toBe('')
    harness.type('\x13')
    expect(harness.got('m1')).toBe('one\rtwo\r\r')
  })

  test('keep what was not sent', () => {
    const harness = createConsoleHarness()
    harness.type(paste('one\ntwo'))
    harness.type('\x1b')
    harness.type(`${LEADER}p\x13`)
    expect(harness.got('m1')).toBe('one\rtwo')
  })

  const dialog = ({ console }: ConsoleHarness) => {
    const { mode } = console.state
    return mode.kind === 'dialog' ? mode.dialog : undefined
  }

  test('keep a text that was not sent when another one is pasted, and show both', () => {
    const harness = createConsoleHarness()
    harness.type(`${paste('one\ntwo')}\x1b`)
    harness.type(paste('three\nfour'))
    expect(dialog(harness)?.lines.at(-1)?.text).toBe('1 other text kept: Ctrl-o shows it')
    harness.type('\x0f')
    expect(dialog(harness)?.lines.map(({ text }) => text)).toContain('2 │ two▏')
    harness.type('\x1b')
    harness.type(`${LEADER}p\x0f\x13`)
    expect(harness.got('m1')).toBe('three\rfour')
    harness.type(`${LEADER}p\x13`)
    expect(harness.got('m1')).toBe('three\rfourone\rtwo')
    harness.type(`${LEADER}p`)
    expect(dialog(harness)?.title).toBe('Compose for 4 hosts: m[1-4]')
  })

  test('do not open a kept text while a host asks for a password, and show it with Ctrl-o', async () => {
    const harness = createConsoleHarness()
    harness.type(`${paste('one\ntwo')}\x1b`)
    await harness.print('m1', 'Password: ')
    harness.type(`${LEADER}p`)
    expect(dialog(harness)?.title).toBe('Compose for 4 hosts: m[1-4]')
    expect(dialog(harness)?.lines.at(-1)?.text).toBe('1 other text kept: Ctrl-o shows it')
    harness.type('S3cret')
    expect(dialog(harness)?.lines[0]?.text).toBe('1 │ ••••••▏')
    harness.type('\x1b')
    expect(harness.console.state.notice?.text).toBe('not sent, and not kept: it may be a password')
    harness.type(`${LEADER}p\x0f`)
    expect(dialog(harness)?.lines.map(({ text }) => text)).toContain('2 │ two▏')
    harness.type('\x1b')
    expect(harness.console.state.notice?.text).toBe('not sent; Ctrl-] p, then Ctrl-o, opens the text again')
    await harness.print('m1', '\r\nm1# ')
    harness.type(`${LEADER}p`)
    expect(dialog(harness)?.lines.map(({ text }) => text)).toContain('2 │ two▏')
  })

  test('keep the text before when the new one is sent, and delete one with Ctrl-x', () => {
    const harness = createConsoleHarness()
    harness.type(`${paste('one\ntwo')}\x1b`)
    harness.type(`${paste('three\nfour')}\x13`)
    expect(harness.got('m1')).toBe('three\rfour')
    harness.type(`${LEADER}p`)
    expect(dialog(harness)?.title).toContain('Paste 2 lines')
    harness.type('\x18')
    expect(dialog(harness)?.lines.at(-1)?.text).toBe('Ctrl-x again deletes the text')
    harness.type('\x1b[D')
    expect(dialog(harness)?.lines.map(({ text }) => text)).not.toContain('Ctrl-x again deletes the text')
    harness.type('\x18\x18')
    expect(dialog(harness)).toBeUndefined()
    harness.type(`${LEADER}p`)
    expect([harness.got('m1'), dialog(harness)?.title]).toEqual(['three\rfour', 'Compose for 4 hosts: m[1-4]'])
    harness.type('\x18')
    expect(dialog(harness)).toBeUndefined()
  })

  test('are sent once by Ctrl-s: pressed again, it would stop what hosts show', () => {
    const harness = createConsoleHarness()
    harness.type(paste('one\ntwo'))
    harness.type('\x13')
    harness.type('\x13\x13')
    expect(harness.got('m1')).toBe('one\rtwo')
    expect(harness.console.state.notice?.text).toBe('not sent: Ctrl-s has sent the text already')
    harness.type('l\x13')
    expect(harness.got('m1')).toBe('one\rtwol\x13')
    expect(harness.console.state.notice?.text).toBe('Ctrl-s may stop what hosts show: Ctrl-q continues')
  })

  test.each([
    'Password: ',
    'Enter password:\r\n',
    'Enter pass phrase for /tmp/k.pem:',
    'pw: ',
    'mdp : ',
    'Código? ',
    'PIN (4 digits) ',
    'Continue [y/N]',
  ])("of what may be a password are neither shown nor kept: '%s'", async (question) => {
    const harness = createConsoleHarness({ hosts: ['m1', 'm2'] })
    for (const host of ['m1', 'm2']) await harness.print(host, question)
    const dots = '•'.repeat('S3cr3t'.length)
    harness.type(paste('S3cr3t\n'))
    expect(dialog(harness)?.lines.map(({ text }) => text)).toEqual([
      `1 │ ${dots}`,
      '2 │ ▏',
      'as if typed (no bracketed paste): a shell runs each line at once',
      'Not shown: it may be a password that a host asks for.',
    ])
    harness.type('\x1b')
    expect(harness.console.state.notice?.text).toBe('not sent, and not kept: it may be a password')
    harness.type(`${LEADER}p`)
    expect(dialog(harness)?.title).toContain('Compose')
    harness.type('\x1b')
    harness.type(paste('S3cr3t\n'))
    harness.type('\x13')
    expect([harness.got('m1'), harness.got('m2')]).toEqual(['S3cr3t\r', 'S3cr3t\r'])
  })

  test.each([
    ['Password: ', '1 │ •••'],
    ['Overwrite? ', '1 │ one'],
    ['Overwrite [y/N] ', '1 │ one'],
  ])("of several lines, where one host of two asks '%s'", async (question, shown) => {
    const harness = createConsoleHarness({ hosts: ['m1', 'm2'] })
    await harness.print('m1', question)
    harness.type(paste('one\ntwo'))
    expect(dialog(harness)?.lines[0]?.text).toBe(shown)
  })

  test.each([
    '[root@m1 src] ',
    'm1 [~] ',
    'm1 [/srv/data] ',
    'm1> ',
    '(env) ',
  ])("are shown where the host is at the prompt '%s'", async (prompt) => {
    const harness = createConsoleHarness({ hosts: ['m1', 'm2'] })
    for (const host of ['m1', 'm2']) await harness.print(host, prompt)
    harness.type(paste('one\n'))
    harness.type(paste('two\n'))
    expect(dialog(harness)?.lines[0]?.text).toBe('1 │ one')
  })

  test('of several lines to one host are held only where its shell would run them at once', async () => {
    const harness = createConsoleHarness()
    harness.type(`${LEADER}s`)
    harness.type(paste('one\ntwo'))
    expect([harness.got('m1'), dialog(harness)?.title]).toEqual(['', 'Paste 2 lines into 1 host: m1'])
    harness.type('\x1b')
    await harness.print('m1', '\x1b[?2004h')
    harness.type(paste('one\ntwo'))
    expect(harness.got('m1')).toBe(paste('one\rtwo'))
  })

  test.each([60, 80])('say all of their warning in %i columns', (columns) => {
    const harness = createConsoleHarness({ size: { columns, rows: 24 } })
    harness.type(`${paste('one\ntwo')}\x1b`)
    harness.type(paste('three\nfour'))
    const said = reviewed(harness).slice(2).join(' ')
    expect(said).toBe(
      'as if typed (no bracketed paste): a shell runs each line at once 1 other text kept: Ctrl-o shows it',
    )
  })

  test.each([
    [60, 20],
    [80, 24],
  ])('show all keys of the review, which can be clicked, on %i×%i', (columns, rows) => {
    const harness = createConsoleHarness({ size: { columns, rows } })
    harness.type(`${paste('one\ntwo')}\x1b`)
    harness.type(paste('three\n'.repeat(40)))
    const { mode } = harness.console.state
    if (mode.kind !== 'dialog') throw new Error('no review')
    const { rect, keys, body } = layoutDialog(mode.dialog, columns, rows)
    const texts = keys.map((row) => row.map(({ text }) => text).join(''))
    expect(texts.join('').trim().split(/ {2,}/)).toEqual([
      'Ctrl-s send to 4',
      'Enter new line',
      'Ctrl-x delete',
      'Ctrl-o other text',
      'Esc close, keep text',
    ])
    for (const text of texts) expect(text.length).toBeLessThanOrEqual(rect.width - 2)
    // The keys take no row from the text.
    expect(body.map(({ text }) => text)).toEqual(mode.dialog.lines.map(({ text }) => text))
    expect(rect.row + rect.height).toBeLessThan(rows)
    const last = rect.row + rect.height - 2
    const at = rect.column + 1 + (texts.at(-1)?.indexOf('Esc') ?? 0)
    expect(dialogSpot(mode.dialog, { columns, rows }, { column: at, row: last })).toEqual({ press: 'Esc' })
    const first = { column: rect.column + 3, row: last - 1 }
    expect(dialogSpot(mode.dialog, { columns, rows }, first)).toEqual({ press: 'Ctrl-s' })
  })

  const reviewed = ({ console }: ConsoleHarness): string[] => {
    const { mode, columns, rows } = console.state
    if (mode.kind !== 'dialog') return []
    // As drawn: a selected line keeps the others from being wrapped again.
    const width = layoutDialog(mode.dialog, columns, rows).rect.width
    return mode.dialog.lines.map(({ text }) => clip(text, width - 4))
  }

  test('show the end of a long line, and where the cursor is', async () => {
    const harness = createConsoleHarness({ size: { columns: 80, rows: 24 } })
    await askForBrackets(harness)
    harness.type(paste(`echo one\necho hello${' '.repeat(120)}; touch /tmp/x\necho three`))
    expect(reviewed(harness)).toEqual([
      '1 │ echo one',
      `2 │ echo hello${'·'.repeat(57)}`,
      `  │ ${'·'.repeat(63)}; to`,
      '  │ uch /tmp/x',
      '3 │ echo three▏',
    ])
    harness.type('\x1b[A\x1b[FWWW')
    expect(reviewed(harness)[3]).toBe('  │ uch /tmp/xWWW▏')
    harness.type('\x1b[A\x1b[A\x1b[A\x1b[AX')
    expect(reviewed(harness)[0]).toBe('1 │ echo oneX▏')
    harness.type('\x1b[B\x1b[HY')
    expect(reviewed(harness)[1]).toMatch(/^2 │ Y▏echo hello·/)
  })

  test('say that there is more above and below, also of one line', async () => {
    const harness = createConsoleHarness({ size: { columns: 80, rows: 24 } })
    await askForBrackets(harness)
    harness.type(paste(`first\n${'🙂'.repeat(2000)}\nlast`))
    expect(reviewed(harness)).toHaveLength(16)
    expect(reviewed(harness).at(-1)).toBe('↑ more')
    harness.type('\x1b[A\x1b[5~\x1b[5~')
    expect(reviewed(harness).at(-1)).toBe('↑ more   ↓ more')
    harness.type('\x1b[5~'.repeat(8))
    expect(reviewed(harness).at(-1)).toBe('↓ more')
    expect(reviewed(harness)[0]).toMatch(/^1 │ .*▏/)
  })

  test('say how to get to the prompt from the scroll-back', async () => {
    const harness = createConsoleHarness()
    await harness.print('m1', 'x')
    harness.type(`${LEADER}[`)
    harness.type(paste('ls'))
    expect(harness.console.state.notice?.text).toBe('pasting works only in the shells: Esc leaves the scroll-back')
    harness.type('\x1b')
    harness.type(paste('ls'))
    expect(harness.got('m1')).toBe('ls')
  })

  test('let no control characters act', () => {
    const harness = createConsoleHarness()
    harness.type(paste('rm\x03\x1b[A'))
    expect(harness.got('m1')).toBe('rm[A')
  })
})

describe('own keys', () => {
  const footer = ({ console }: ConsoleHarness) => barText(footerBars(console.state, themes.none))
  const withKeys = (keys: Preferences['keys']) => createConsoleHarness({ preferences: { keys } })

  test('are named in the footer, in notices and in panes', () => {
    const harness = withKeys({ quit: ['Q'], help: ['H'], 'receive-all': ['A'] })
    expect(footer(harness)).toMatch(/Ctrl-\] H help .* Ctrl-\] Q quit /)
    harness.type(`${LEADER}?`)
    expect(harness.console.state.notice?.text).toBe('unknown command: ? (Ctrl-] H shows all)')
    harness.type(`${LEADER}n${LEADER}m`)
    expect(harness.console.state.notice?.text).toBe('no receivers: Ctrl-] A selects all hosts')
  })

  test('take the key of another command, which is then found by its name', () => {
    const harness = withKeys({ zoom: ['q'] })
    expect(footer(harness)).not.toContain('quit')
    harness.type(`${LEADER}3q`)
    expect(harness.console.state.notice?.text).toContain('Ctrl-] : quit quits, Ctrl-] D detaches')
  })

  test('are named as soon as they change', () => {
    const harness = withKeys({})
    harness.console.takePreferences({ ...harness.console.options.preferences, keys: { quit: ['Q'] } })
    expect(footer(harness)).toContain('Ctrl-] Q quit')
  })
})

describe('dialogs', () => {
  test('with text take the width of a terminal that grows or shrinks', () => {
    const harness = createConsoleHarness({ size: { columns: 60, rows: 24 } })
    const widest = () => {
      const { mode } = harness.console.state
      return mode.kind === 'dialog' ? Math.max(...mode.dialog.lines.map(({ text }) => text.length)) : 0
    }
    harness.type(`${LEADER}?`)
    expect(widest()).toBeLessThanOrEqual(52)
    harness.console.resize(120, 24)
    expect(widest()).toBeGreaterThan(80)
    harness.console.resize(60, 24)
    expect(widest()).toBeLessThanOrEqual(52)
  })

  test('send no keys to a host', () => {
    const harness = createConsoleHarness()
    harness.type(`${LEADER}?`)
    harness.type('jjG')
    expect(harness.got('m1')).toBe('')
    harness.type('\x1b')
    expect(harness.console.state.mode.kind).toBe('typing')
  })

  test('find an action by a word and run it, in the palette', () => {
    const harness = createConsoleHarness()
    harness.type(`${LEADER}:select no\r`)
    expect(harness.receivers()).toBe('')
  })

  test('say why an action cannot run, in the palette', () => {
    const harness = createConsoleHarness()
    harness.type(`${LEADER}:reconnect all\r`)
    const { mode } = harness.console.state
    expect(mode.kind === 'dialog' && mode.dialog.input?.error).toBe('no host is lost')
  })

  test('expand a macro that is typed in place of one that is chosen', () => {
    const harness = createConsoleHarness()
    harness.type(`${LEADER}m%h.log\r`)
    expect([harness.got('m1'), harness.got('m4')]).toEqual(['m1.log', 'm4.log'])
    harness.type(`${LEADER}m%n\r`)
    expect(harness.got('m4')).toBe('m4.log4')
  })

  test('expand a macro for each host', () => {
    const harness = createConsoleHarness()
    harness.type(`${LEADER}mtext\r`)
    harness.type('rank=%n of %h %%\r')
    expect([harness.got('m1'), harness.got('m3')]).toEqual(['rank=1 of m1 %', 'rank=3 of m3 %'])
  })

  test('ask before a host is closed, and close it only after y', () => {
    const harness = createConsoleHarness()
    harness.type(`${LEADER}x`)
    harness.type('\r')
    expect(harness.fleet.hosts).toContain('m1')
    harness.type('y')
    expect(harness.fleet.hosts).not.toContain('m1')
    expect(harness.receivers()).toBe('m2,m3,m4')
    expect(harness.console.state.focus).toBe('m2')
  })

  test('add a host as a receiver only if all hosts are receivers', async () => {
    const harness = createConsoleHarness()
    harness.type(`${LEADER} \r${LEADER}+m9\r`)
    await Promise.resolve()
    await Promise.resolve()
    expect([...harness.console.state.hosts.keys()]).toContain('m9')
    expect(harness.receivers()).toBe('m2,m3,m4')
  })

  test('open for an outside question only when the keyboard is idle', () => {
    const harness = createConsoleHarness()
    harness.type('x')
    let isShown = false
    harness.console.dialogs.openWhenQuiet(({ onClose }) => {
      isShown = true
      return {
        view: () => ({ id: 'credentials', title: '', lines: [], keys: [] }),
        key: onClose,
        paste: () => undefined,
        cancel: onClose,
      }
    })
    harness.type('\r')
    expect(isShown).toBe(false)
    harness.clock.advance(1000)
    expect(isShown).toBe(true)
  })
})

test('why a host is not connected is cut at its end, with the key to press', () => {
  const harness = createConsoleHarness({ hosts: ['m1', 'm2', 'm3', 'm4', 'm5', 'm6'], size: { columns: 80, rows: 24 } })
  const reason = 'cannot trust root@10.81.0.2:22: the key of 10.81.0.2 was not accepted'
  const shown = (why: string, hint: string) => {
    const failure = { kind: 'declined', phase: 'host-key', reason: why, hint } as const
    harness.fleet.events.emit({ type: 'session', host: 'm2', state: { kind: 'failed', failure, attempt: 1 } as never })
    const { panes } = buildScene(harness.console, createCellGrid(80, 24), harness.console.state, (error) => {
      throw error
    })
    return panes[1]?.notice.map((row) => row.map(({ text }) => text.trim()).join('')) ?? []
  }
  const lines = shown(reason, 'Reconnect to review the key again.')
  expect(lines.slice(0, 2).join(' ')).toBe(reason)
  expect(lines.at(-1)).toBe('Ctrl-] r reconnects')
  expect(lines.length).toBeLessThanOrEqual(5)
  const long = shown(`${reason} ${reason} ${reason}`, 'Reconnect to review the key again.')
  expect(long.slice(-2)).toEqual(['Reconnect to review the key again.', 'Ctrl-] r reconnects'])
  expect(long.at(-3)).toMatch(/…$/)
  expect(long).toHaveLength(5)
})

describe('scrolling back', () => {
  test('scrolls and searches with keys that reach no host', async () => {
    const harness = createConsoleHarness()
    await harness.print('m1', Array.from({ length: 100 }, (_, index) => `line ${index}\r\n`).join(''))
    harness.type(`${LEADER}[`)
    harness.type('g')
    const screen = harness.console.views.screen('m1')
    expect(screen?.viewOffset).toBe(screen?.historyLines)
    expect(barText(footerBars(harness.console.state, themes.none))).not.toContain('n N')
    harness.type('/line 50\r')
    expect(harness.console.state.mode).toMatchObject({ kind: 'scroll', needle: 'line 50', hits: 1 })
    expect(screen?.visibleText().join('\n')).toContain('line 50')
    harness.type('/line 5\r')
    expect(harness.console.state.mode).toMatchObject({ hits: 11 })
    const hit = () => {
      const { mode } = harness.console.state
      return mode.kind === 'scroll' ? mode.hit : undefined
    }
    const found = hit() ?? 0
    expect(barText(footerBars(harness.console.state, themes.none))).toContain('n N previous, next match')
    harness.type('n')
    expect(hit()).toBe(found - 1)
    harness.type('N')
    expect(hit()).toBe(found)
    harness.type('\x1b')
    expect(screen?.viewOffset).toBe(0)
    expect(harness.got('m1')).toBe('')
  })

  test('returns to the latest output when the user types', async () => {
    const harness = createConsoleHarness()
    await harness.print('m1', 'x\r\n'.repeat(100))
    harness.type('\x1b[<64;5;5M')
    expect(harness.console.views.screen('m1')?.viewOffset).toBe(3)
    harness.type('l')
    expect(harness.console.views.screen('m1')?.viewOffset).toBe(0)
  })

  test('says that there is nothing to scroll before a shell was opened', () => {
    const harness = createConsoleHarness({ isResolving: true })
    harness.type(`${LEADER}[`)
    expect(said(harness)).toContain('nothing to scroll: m1 has not opened a shell yet')
    expect(harness.console.state.mode).toEqual({ kind: 'typing' })
  })
})

test('shows why a host is lost, and when it is tried again', () => {
  const harness = createConsoleHarness()
  harness.fleet.events.emit({
    type: 'session',
    host: 'm2',
    state: { kind: 'waiting', attempt: 2, retryAtMs: harness.clock.now() + 3000, reason: 'no answer for 15 s' },
  })
  expect(header(harness)).toContain('3/4 up')
  const text = expect.stringMatching(/^no answer for 15 s · attempt 2 at \d\d:\d\d:43$/)
  expect(harness.console.state.log.at(-1)).toMatchObject({ host: 'm2', text })
})

test('puts why a host is refused and what to do into two sentences of the Log', () => {
  const harness = createConsoleHarness()
  const failure = {
    kind: 'host-key',
    phase: 'host-key',
    reason: 'its key has changed',
    hint: 'If it is new, start again.',
  }
  harness.fleet.events.emit({ type: 'session', host: 'm2', state: { kind: 'failed', failure, sinceMs: 0 } as never })
  expect(harness.console.state.log.at(-1)?.text).toBe('its key has changed. If it is new, start again.')
})

test('quits', () => {
  const harness = createConsoleHarness()
  harness.type(`${LEADER}q`)
  expect(harness.quits()).toBe(1)
})

test('uses keys that the user configured', () => {
  const harness = createConsoleHarness({ preferences: { keys: { zoom: ['F11'] } } })
  harness.type(`${LEADER}\x1b[23~`)
  expect(harness.console.state.isZoomed).toBe(true)
})
