import { describe, expect, test } from 'vitest'
import { footerBars, headerBars } from '../../../../src/ui/console/header.ts'
import { themes } from '../../../../src/ui/theme/theme.ts'
import { createStand, type Stand } from './stand.ts'

const LEADER = '\x1d'
const barText = (bars: { left: readonly { text: string }[]; right: readonly { text: string }[] }): string =>
  [...bars.left, ...bars.right].map(({ text }) => text).join('')
const header = ({ console }: Stand): string => barText(headerBars(console.state, themes.dark, console.arrangement))
const footer = ({ console }: Stand): string => barText(footerBars(console.state, themes.dark, console.options.keymap))

describe('typing', () => {
  test('sends typed keys unchanged to every receiver', () => {
    const stand = createStand()
    stand.type('uptime\r')
    expect([stand.got('m1'), stand.got('m4')]).toEqual(['uptime\r', 'uptime\r'])
  })

  test('sends the leader when it is typed twice', () => {
    const stand = createStand()
    stand.type(LEADER + LEADER)
    expect(stand.got('m2')).toBe(LEADER)
  })

  test('treats a key after the leader as a command that reaches no host', () => {
    const stand = createStand()
    stand.type(`${LEADER}n`)
    stand.type('x')
    expect(stand.got('m1')).toBe('')
    expect(footer(stand)).toContain('no receivers: Ctrl-] a selects all hosts')
  })

  test('reports an unknown command key, which reaches no host', () => {
    const stand = createStand()
    stand.type(`${LEADER}Y`)
    expect(stand.got('m1')).toBe('')
    expect(footer(stand)).toContain('unknown command: Y')
  })

  test('says which hosts were skipped, and why', () => {
    const stand = createStand()
    stand.fleet.away.set('m3', 'reconnecting')
    stand.type('x')
    expect(footer(stand)).toContain('sent to 3 of 4, not to m3: reconnecting')
    for (const host of ['m1', 'm2', 'm4']) stand.fleet.away.set(host, 'shell ended')
    stand.type('x')
    expect(footer(stand)).toContain('not sent to m[1-2,4]: shell ended; m3: reconnecting')
  })

  test('says which host dropped typed bytes to make room for an interrupt', () => {
    const stand = createStand()
    stand.fleet.discarded = [
      { host: 'm3', bytes: 12 },
      { host: 'm4', bytes: 1_048_576 },
    ]
    stand.type('\x03')
    expect(footer(stand)).toContain('m3 dropped 12 bytes; m4 dropped 1048576 bytes')
    expect(stand.console.state.log.at(-1)?.text).toContain('m3 dropped 12 bytes')
  })

  test('sends an arrow key as each host requested it', async () => {
    const stand = createStand()
    await stand.print('m2', '\x1b[?1h')
    stand.type('\x1b[A')
    expect([stand.got('m1'), stand.got('m2')]).toEqual(['\x1b[A', '\x1bOA'])
  })

  test('never types an answer of the terminal into a host', () => {
    const stand = createStand()
    stand.type('\x1b]11;rgb:0000/0000/0000\x1b\\\x1b[?62c')
    expect(stand.got('m1')).toBe('')
  })

  test('answers a query of one host only to that host', async () => {
    const stand = createStand()
    await stand.print('m2', '\x1b[6n')
    expect(stand.got('m2')).toBe('\x1b[1;1R')
    expect(stand.got('m1')).toBe('')
  })
})

describe('receivers', () => {
  test('are all hosts at the start, and the header says so', () => {
    expect(header(createStand())).toContain('TYPING INTO ALL 4: m[1-4]')
  })

  test('lose the focused host on toggle, and typing continues without it', () => {
    const stand = createStand()
    stand.type(`${LEADER} `)
    stand.type('ls')
    expect(stand.got('m1')).toBe('')
    expect(stand.got('m2')).toBe('ls')
  })

  test('are selected with arrows and Space until another key is typed', () => {
    const stand = createStand()
    stand.type(`${LEADER} `)
    stand.type('\x1b[C \x1b[B ')
    expect(stand.receivers()).toBe('m3')
    stand.type('q')
    expect(stand.got('m3')).toBe('q')
  })

  test('are one host only, and then the earlier ones again', () => {
    const stand = createStand()
    stand.type(`${LEADER} `)
    stand.type(`\r${LEADER}s`)
    expect(stand.receivers()).toBe('m1')
    stand.type(`${LEADER}s`)
    expect(stand.receivers()).toBe('m2,m3,m4')
  })

  test('are inverted', () => {
    const stand = createStand()
    stand.type(`${LEADER} \r${LEADER}i`)
    expect(stand.receivers()).toBe('m1')
  })

  test('are a host set, with a preview while it is typed; a wrong one is explained and changes nothing', () => {
    const stand = createStand()
    stand.type(`${LEADER}/m[2-3`)
    const { mode } = stand.console.state
    expect(mode.kind === 'dialog' && mode.dialog.input?.error).toBeTruthy()
    stand.type('\r')
    expect(stand.receivers()).toBe('m1,m2,m3,m4')
    stand.type(']\r')
    expect(stand.receivers()).toBe('m2,m3')
    stand.type('x')
    expect([stand.got('m1'), stand.got('m2')]).toEqual(['', 'x'])
  })

  test('are a group of hosts.yaml', () => {
    const stand = createStand({ groups: new Map([['workers', ['m3', 'm4']]]) })
    stand.type(`${LEADER}gworkers\r`)
    expect(stand.receivers()).toBe('m3,m4')
  })

  test('are only hosts that differ from the majority', async () => {
    const stand = createStand()
    for (const host of ['m1', 'm2', 'm3', 'm4']) await stand.print(host, host === 'm3' ? 'kernel 6.2' : 'kernel 6.1')
    stand.type(`${LEADER}f`)
    expect(stand.receivers()).toBe('m3')
  })

  test('are counted when they are out of view, in the colour of danger', () => {
    const stand = createStand({
      hosts: Array.from({ length: 30 }, (_, index) => `m${index + 1}`),
      size: { columns: 80, rows: 24 },
    })
    const bars = headerBars(stand.console.state, themes.dark, stand.console.arrangement)
    const part = bars.left.find(({ text }) => text.includes('TYPING'))
    expect(part?.text).toContain('out of view')
    expect(part?.fill).toBe(themes.dark.danger)
  })
})

describe('the number of different hosts', () => {
  test('is in the header, also if it is zero', async () => {
    const stand = createStand({ size: { columns: 120, rows: 40 } })
    for (const host of ['m1', 'm2', 'm3', 'm4']) await stand.print(host, 'kernel 6.1')
    stand.type(`${LEADER}d`)
    expect(header(stand)).toContain('all equal')
    await stand.print('m3', 'x')
    stand.clock.advance(300)
    expect(header(stand)).toContain(' 1 differs ')
    await stand.print('m4', 'y')
    stand.clock.advance(300)
    expect(header(stand)).toContain(' 2 differ ')
    await stand.print('m1', 'z')
    stand.clock.advance(300)
    expect(header(stand)).toContain(' all differ ')
    stand.type(`${LEADER}d`)
    expect(header(stand)).not.toContain('differ')
  })
})

describe('panes', () => {
  test('have equal terminals, and zoom gives one the whole screen', () => {
    const stand = createStand()
    const sizes = new Set([...stand.fleet.sizes.values()].map(({ columns, rows }) => `${columns}x${rows}`))
    expect([...sizes]).toEqual(['58x17'])
    stand.type(`${LEADER}z`)
    expect(stand.fleet.sizes.get('m1')).toEqual({ columns: 118, rows: 36 })
    expect(stand.fleet.sizes.get('m2')).toEqual({ columns: 58, rows: 17 })
  })

  test('turn the page when the focus moves over the lower edge', () => {
    const stand = createStand({
      hosts: Array.from({ length: 30 }, (_, index) => `m${index + 1}`),
      size: { columns: 80, rows: 24 },
    })
    expect(stand.console.arrangement.placed).toHaveLength(4)
    stand.type(`${LEADER}j`)
    stand.type('\x1b[B')
    expect(stand.console.state.focus).toBe('m5')
    expect(stand.console.arrangement.page).toBe(1)
  })

  test('fit six hosts on 80×24', () => {
    const stand = createStand({ hosts: ['m1', 'm2', 'm3', 'm4', 'm5', 'm6'], size: { columns: 80, rows: 24 } })
    expect(stand.console.arrangement.placed).toHaveLength(6)
  })

  test('show new output on other pages until the page is shown', async () => {
    const stand = createStand({
      hosts: Array.from({ length: 8 }, (_, index) => `m${index + 1}`),
      size: { columns: 80, rows: 24 },
    })
    await stand.print('m8', 'done')
    expect(header(stand)).toContain('1/2 · 1 new')
    stand.type(`${LEADER}\x1b[6~`)
    expect(header(stand)).not.toContain(' new')
  })

  test('fold equal screens into one pane, and split when they differ', async () => {
    const stand = createStand()
    for (const host of ['m1', 'm2', 'm3', 'm4']) await stand.print(host, `root@${host}:~# `)
    stand.type(`${LEADER}=`)
    expect(stand.console.arrangement.units).toEqual([['m1', 'm2', 'm3', 'm4']])
    await stand.print('m3', 'x')
    stand.clock.advance(300)
    expect(stand.console.arrangement.units).toEqual([['m1', 'm2', 'm4'], ['m3']])
    stand.type(`${LEADER}=`)
    expect(stand.console.arrangement.units).toHaveLength(4)
  })

  test('are focused by a click, and toggled by a click on the title', () => {
    const stand = createStand()
    stand.type('\x1b[<0;70;10M')
    expect(stand.console.state.focus).toBe('m2')
    stand.type('\x1b[<0;70;2M')
    expect(stand.receivers()).toBe('m1,m3,m4')
  })

  test('pass mouse events inside a pane to a program that requested them', async () => {
    const stand = createStand()
    await stand.print('m2', '\x1b[?1000h\x1b[?1006h')
    stand.type('\x1b[<0;70;10M')
    expect(stand.got('m2')).toBe('\x1b[<0;9;8M')
    expect(stand.got('m1')).toBe('')
  })

  test('turn the wheel into arrow keys for a full-screen program without mouse support', async () => {
    const stand = createStand()
    await stand.print('m1', '\x1b[?1049h')
    await stand.print('m2', '\x1b[?1049h\x1b[?1h')
    stand.type('\x1b[<65;5;5M')
    expect([stand.got('m1'), stand.got('m2')]).toEqual(['\x1b[B'.repeat(3), ''])
    stand.type('\x1b[<64;70;10M')
    expect([stand.got('m1'), stand.got('m2')]).toEqual(['\x1b[B'.repeat(3), '\x1bOA'.repeat(3)])
  })
})

describe('pastes', () => {
  test('are counted without a line for a line break at the end', () => {
    for (const [text, title] of [
      ['one\ntwo\n', 'Paste 2 lines into 4 hosts'],
      ['one\ntwo\nthree', 'Paste 3 lines into 4 hosts'],
    ] as const) {
      const stand = createStand()
      stand.type(`\x1b[200~${text}\x1b[201~`)
      const { mode } = stand.console.state
      expect(mode.kind === 'dialog' && mode.dialog.title).toContain(title)
    }
  })

  const paste = (text: string): string => `\x1b[200~${text}\x1b[201~`

  test('send one line at once, bracketed if the host requested it', async () => {
    const stand = createStand()
    await stand.print('m2', '\x1b[?2004h')
    stand.type(paste('ls -l'))
    expect([stand.got('m1'), stand.got('m2')]).toEqual(['ls -l', '\x1b[200~ls -l\x1b[201~'])
  })

  test('of several lines to several hosts are held for review', () => {
    const stand = createStand()
    stand.type(paste('one\ntwo'))
    expect(stand.got('m1')).toBe('')
    stand.type('\r\r')
    expect(stand.got('m1')).toBe('')
    stand.type('\x13')
    expect(stand.got('m1')).toBe('one\rtwo\r\r')
  })

  test('keep what was not sent', () => {
    const stand = createStand()
    stand.type(paste('one\ntwo'))
    stand.type('\x1b')
    stand.type(`${LEADER}p\x13`)
    expect(stand.got('m1')).toBe('one\rtwo')
  })

  test('of several lines to one host are not held', () => {
    const stand = createStand()
    stand.type(`${LEADER}s`)
    stand.type(paste('one\ntwo'))
    expect(stand.got('m1')).toBe('one\rtwo')
  })

  test('let no control characters act', () => {
    const stand = createStand()
    stand.type(paste('rm\x03\x1b[A'))
    expect(stand.got('m1')).toBe('rm[A')
  })
})

describe('dialogs', () => {
  test('send no keys to a host', () => {
    const stand = createStand()
    stand.type(`${LEADER}?`)
    stand.type('jjG')
    expect(stand.got('m1')).toBe('')
    stand.type('\x1b')
    expect(stand.console.state.mode.kind).toBe('typing')
  })

  test('find an action by a word and run it, in the palette', () => {
    const stand = createStand()
    stand.type(`${LEADER}:select no\r`)
    expect(stand.receivers()).toBe('')
  })

  test('say why an action cannot run, in the palette', () => {
    const stand = createStand()
    stand.type(`${LEADER}:reconnect all\r`)
    const { mode } = stand.console.state
    expect(mode.kind === 'dialog' && mode.dialog.input?.error).toBe('no host is lost')
  })

  test('expand a macro for each host', () => {
    const stand = createStand()
    stand.type(`${LEADER}mtext\r`)
    stand.type('rank=%n of %h %%\r')
    expect([stand.got('m1'), stand.got('m3')]).toEqual(['rank=1 of m1 %', 'rank=3 of m3 %'])
  })

  test('ask before a host is closed, and close it only after y', () => {
    const stand = createStand()
    stand.type(`${LEADER}x`)
    stand.type('\r')
    expect(stand.fleet.hosts).toContain('m1')
    stand.type('y')
    expect(stand.fleet.hosts).not.toContain('m1')
    expect(stand.receivers()).toBe('m2,m3,m4')
    expect(stand.console.state.focus).toBe('m2')
  })

  test('add a host as a receiver only if all hosts are receivers', async () => {
    const stand = createStand()
    stand.type(`${LEADER} \r${LEADER}+m9\r`)
    await Promise.resolve()
    await Promise.resolve()
    expect([...stand.console.state.hosts.keys()]).toContain('m9')
    expect(stand.receivers()).toBe('m2,m3,m4')
  })

  test('open for an outside question only when the keyboard is idle', () => {
    const stand = createStand()
    stand.type('x')
    let isShown = false
    stand.console.dialogs.openWhenQuiet(({ onClose }) => {
      isShown = true
      return {
        view: () => ({ id: 'credentials', title: '', lines: [], keys: [] }),
        key: onClose,
        paste: () => undefined,
        cancel: onClose,
      }
    })
    stand.type('\r')
    expect(isShown).toBe(false)
    stand.clock.advance(1000)
    expect(isShown).toBe(true)
  })
})

describe('scrolling back', () => {
  test('scrolls and searches with keys that reach no host', async () => {
    const stand = createStand()
    await stand.print('m1', Array.from({ length: 100 }, (_, index) => `line ${index}\r\n`).join(''))
    stand.type(`${LEADER}[`)
    stand.type('g')
    const screen = stand.console.views.screen('m1')
    expect(screen?.viewOffset).toBe(screen?.historyLines)
    stand.type('/line 50\r')
    expect(stand.console.state.mode).toMatchObject({ kind: 'scroll', needle: 'line 50', hits: 1 })
    expect(screen?.visibleText().join('\n')).toContain('line 50')
    stand.type('\x1b')
    expect(screen?.viewOffset).toBe(0)
    expect(stand.got('m1')).toBe('')
  })

  test('returns to the latest output when the user types', async () => {
    const stand = createStand()
    await stand.print('m1', 'x\r\n'.repeat(100))
    stand.type('\x1b[<64;5;5M')
    expect(stand.console.views.screen('m1')?.viewOffset).toBe(3)
    stand.type('l')
    expect(stand.console.views.screen('m1')?.viewOffset).toBe(0)
  })
})

test('shows why a host is lost, and when it is tried again', () => {
  const stand = createStand()
  stand.fleet.events.emit({
    type: 'session',
    host: 'm2',
    state: { kind: 'waiting', attempt: 2, retryAtMs: stand.clock.now() + 3000, reason: 'no answer for 15 s' },
  })
  expect(header(stand)).toContain('3/4 up')
  expect(stand.console.state.log.at(-1)).toMatchObject({ host: 'm2', text: 'attempt 2 in 3 s: no answer for 15 s' })
})

test('quits', () => {
  const stand = createStand()
  stand.type(`${LEADER}q`)
  expect(stand.quits()).toBe(1)
})

test('uses keys that the user configured', () => {
  const stand = createStand({ preferences: { keys: { zoom: ['F11'] } } })
  stand.type(`${LEADER}\x1b[23~`)
  expect(stand.console.state.isZoomed).toBe(true)
})
