/** The header names receivers that differ, but not hosts that only print other numbers and names. */

import { describe, expect, it } from 'vitest'
import { themes } from '../../../../src/ui/compositor/scene.ts'
import { footerBars, headerBars } from '../../../../src/ui/console/header.ts'
import { paneView } from '../../../../src/ui/console/pane-view.ts'
import { differentHosts } from '../../../../src/ui/state/console-state.ts'
import { type ConsoleHarness, createConsoleHarness } from './console-harness.ts'

const LEADER = '\x1d'
const HOSTS = ['m1', 'm2', 'm3', 'm4', 'm5', 'm6']
const FULL = '\x1b[?1049h\x1b[H\x1b[2J'
const HTOP = `${FULL}\x1b[?1000h\x1b[?25l  CPU Mem Swp Tasks Load average Uptime\r\n  PID USER PRI NI VIRT RES SHR CPU MEM TIME Command`
const VIM = `${FULL}\x1b[?1h127.0.0.1 localhost\r\n~\r\n~\r\n"/etc/hosts" 9L, 221B`

const header = ({ console }: ConsoleHarness): string => {
  const { left, right } = headerBars(console.state, themes.none, console.arrangement)
  return [...left, ...right].map(({ text }) => text).join('')
}

const footer = ({ console }: ConsoleHarness): string =>
  footerBars(console.state, themes.none)
    .left.map(({ text }) => text)
    .join('')

const prompt = (host: string): string => `root@${host}:~# `

/** Hosts at their first prompts, at rest. */
async function atPrompts(size = { columns: 120, rows: 40 }, promptOf = prompt): Promise<ConsoleHarness> {
  const harness = createConsoleHarness({ hosts: HOSTS, size })
  for (const host of HOSTS) await harness.print(host, promptOf(host))
  rest(harness)
  return harness
}

const rest = ({ clock }: ConsoleHarness): void => {
  clock.advance(600)
}

async function print(harness: ConsoleHarness, textOf: (host: string) => string): Promise<void> {
  for (const host of HOSTS) await harness.print(host, textOf(host))
  rest(harness)
}

const only = (host: string, text: string, others: string) => (other: string) => (other === host ? text : others)

describe('receivers differ when', () => {
  it.each([
    ['one is in an editor and the others in htop', only('m2', VIM, HTOP)],
    ['one is in an editor and the others at a prompt', only('m2', VIM, '')],
    ['one inserts text and the others do not', only('m2', `${VIM}\r-- INSERT --\x1b[K`, VIM)],
    ['one waits for a password', only('m2', 'sudo ls\r\n[sudo] password for root: ', 'sudo ls\r\nprompt# ')],
    ['one asks something', only('m2', 'rm x\r\nrm: remove x? ', 'rm x\r\nprompt# ')],
    ['one still runs its command', only('m2', 'make\r\ncc main.c\r\n', 'make\r\ncc main.c\r\nprompt# ')],
    [
      'one is in another directory in a terminal multiplexer',
      (host: string) =>
        `${FULL}$ ls\r\na b\r\nroot@${host}:${host === 'm2' ? '/etc' : '~'}# \x1b7\x1b[39;1H[0] bash\x1b8`,
    ],
    ['one is in another directory', only('m2', '\r\nroot@m2:/etc# ', '\r\nprompt# ')],
    ['one is another user', only('m2', '\r\nadmin@m2:~$ ', '\r\nprompt# ')],
    ['one has a command that was not run', only('m2', 'rm -rf /srv', '')],
  ])('%s', async (_, textOf) => {
    const harness = await atPrompts()
    expect(header(harness)).not.toContain('differ')
    await print(harness, (host) => textOf(host).replace('prompt# ', prompt(host)))
    expect(header(harness)).toContain(' 1 of 6 differs: m2 ')
  })

  it('a shell has ended, and then keys go to one host less', async () => {
    const harness = await atPrompts()
    harness.fleet.events.emit({ type: 'shell', host: 'm2', state: { kind: 'ended', end: { kind: 'exit', code: 0 } } })
    rest(harness)
    expect(header(harness)).toMatch(/ 5\/6 up .* TYPING INTO 5 of 6: m\[1,3-6\] .* shell ended: m2 /)
    expect(footer(harness)).toContain(' Ctrl-] R reconnect ')
    expect(footer(harness)).not.toContain('Ctrl-] f')
    const lost = { kind: 'lost', attempt: 2, reason: 'reset', sinceMs: 0 } as const
    harness.fleet.events.emit({ type: 'session', host: 'm4', state: lost })
    rest(harness)
    expect(header(harness)).toContain(' not up: m[2,4] ')
    harness.type(`${LEADER}f`)
    expect(harness.console.state.focus).toBe('m2')
    expect(header(harness)).toContain(' TYPING INTO NO HOST: m[2,4] are not up ')
  })
})

describe('a receiver that echoes nothing', () => {
  const answer = async (harness: ConsoleHarness, ...silent: readonly string[]) => {
    for (const host of HOSTS) if (!silent.includes(host)) await harness.print(host, `touch x\r\n${prompt(host)}`)
  }

  it('differs after a while if the others do, until it answers', async () => {
    const harness = await atPrompts()
    harness.type('touch x\r')
    await answer(harness, 'm2')
    harness.clock.advance(2000)
    expect(header(harness)).not.toContain('differ')
    // Another key does not begin the time again.
    harness.type('\r')
    for (const host of HOSTS) if (host !== 'm2') await harness.print(host, `\r\n${prompt(host)}`)
    harness.clock.advance(2000)
    expect(header(harness)).toContain(' 1 of 6 differs: m2 ')
    await harness.print('m2', `touch x\r\n${prompt('m2')}\r\n${prompt('m2')}`)
    rest(harness)
    expect(header(harness)).not.toContain('differ')
  })

  it('does not differ if most echo nothing, or if it got keys that need no answer', async () => {
    const harness = await atPrompts()
    harness.type('secret')
    await answer(harness, 'm2', 'm3', 'm4', 'm5')
    harness.clock.advance(5000)
    expect(header(harness)).not.toContain('differ')
    const other = await atPrompts()
    other.type('\x1b[A\x7f')
    await answer(other, 'm2')
    other.clock.advance(5000)
    expect(header(other)).not.toContain('differ')
  })
})

it('a host that was never up does not differ: the header says how many are up', async () => {
  const harness = createConsoleHarness({ hosts: HOSTS, size: { columns: 120, rows: 40 } })
  const { events } = harness.fleet
  events.emit({ type: 'shell', host: 'm2', state: { kind: 'none' } })
  const failure = { kind: 'host-key', phase: 'host-key', reason: 'its new key was not accepted' } as const
  events.emit({ type: 'session', host: 'm2', state: { kind: 'failed', failure, sinceMs: 0 } })
  for (const host of HOSTS) if (host !== 'm2') await harness.print(host, prompt(host))
  rest(harness)
  expect(header(harness)).toContain(' 5/6 up ')
  expect(header(harness)).not.toContain('differ')
})

it('a host that is away differs all the time, also during each new attempt to reach it', async () => {
  const harness = await atPrompts()
  const { events } = harness.fleet
  events.emit({ type: 'session', host: 'm2', state: { kind: 'lost', attempt: 2, reason: 'reset', sinceMs: 0 } })
  rest(harness)
  expect(header(harness)).toContain(' not connected: m2 ')
  events.emit({
    type: 'session',
    host: 'm2',
    state: { kind: 'connecting', attempt: 2, phase: 'tcp', sinceMs: 0 },
  })
  rest(harness)
  expect(header(harness)).toContain(' not connected: m2 ')
})

/** htop's screen on a pane of this width: the meters take what the numbers leave, and a table that does not fit is cut. */
const htopWith = (columns: number): string => {
  const meter = '|'.repeat(columns - 30)
  const table = 'PID USER PRI NI VIRT RES SHR S CPU% MEM% TIME+ Command'.slice(0, columns)
  const rows = [`0[${meter}] Tasks: 181, 188 thr`, `1[${meter}] Load average: 7.4`, `Mem[${meter}] Uptime: 20:35:47`]
  return `${FULL}\x1b[?1000h${[...rows, 'Swp[0K/0K]', '[Main] [I/O]', table].join('\r\n')}`
}

describe('receivers do not differ when', () => {
  it.each([
    [
      'one shows more above its prompt in a terminal multiplexer',
      (host: string) =>
        `${FULL}$ ${host === 'm2' ? 'ls /etc\r\nadduser alternatives apt bash cron dpkg fonts grub hosts issue kernel' : 'uptime'}\r\nroot@${host}:~# `,
    ],
    ['the pane of one is larger, as in the zoom', only('m2', htopWith(118), htopWith(38))],
    ['they print other numbers', (host: string) => `uptime\r\n up ${host.slice(1)} days\r\n${prompt(host)}`],
    ['the same program shows other numbers', (host: string) => `${HTOP}\r\n ${host.slice(1)}00 root 20 0 sleep`],
    ['a macro types other words', (host: string) => `echo ${host} 10.9.0.${host.slice(1)}`],
    ['all of them run something', (host: string) => `make\r\n${'x'.repeat(Number(host.slice(1)))}`],
    ['one prints no line break at its end', (host: string) => `${host === 'm2' ? 'text' : ''}${prompt(host)}`],
    ['all of them are in another directory', (host: string) => `\r\nroot@${host}:/srv/data# `],
  ])('%s', async (_, textOf) => {
    const harness = await atPrompts()
    await print(harness, textOf)
    expect(header(harness)).not.toContain('differ')
  })

  it('their prompts have been different from the start, also in another directory', async () => {
    const names = ['alpha', 'beta', 'gamma', 'delta', 'pi', 'omega']
    const own = (host: string) => names[Number(host.slice(1)) - 1] ?? ''
    const harness = await atPrompts(undefined, (host) => `${own(host)}:~$ `)
    await print(harness, (host) => `cd /srv\r\n${own(host)}:/srv$ `)
    expect(header(harness)).not.toContain('differ')
  })

  describe('one has a prompt that ends in a directory', () => {
    const STYLES = ['➜  DIR ', '(base) ➜  DIR git:(main) ✗ ', 'm2 in DIR ']
    const at = (style: string, directory: string) => (host: string) =>
      `\x1b[?2004h${host === 'm2' ? style.replace('DIR', directory) : `root@${host}:${directory}# `}`
    const typed = async (harness: ConsoleHarness, line: string) => {
      harness.type(line)
      await print(harness, () => line.replace('\r', '\r\n\x1b[?2004l'))
    }

    it.each(STYLES)('at rest, after Enter, and in another directory: %s', async (style) => {
      const harness = await atPrompts(undefined, at(style, '~'))
      expect(header(harness)).not.toContain('differ')
      for (const [line, directory] of [
        ['\r', '~'],
        ['cd /srv\r', '/srv'],
        ['\r', '/srv'],
        ['cd\r', '~'],
      ] as const) {
        await typed(harness, line)
        await print(harness, at(style, directory))
        expect(header(harness)).not.toContain('differ')
      }
      await typed(harness, 'ls')
      expect(header(harness)).not.toContain('differ')
    })

    it.each(
      STYLES.slice(0, 2),
    )('but does if it stays where it was, or has a line that was not run: %s', async (style) => {
      const harness = await atPrompts(undefined, at(style, '~'))
      await typed(harness, 'cd /srv\r')
      await print(harness, (host) => at(style, host === 'm2' ? '~' : '/srv')(host))
      expect(header(harness)).toContain(' 1 of 6 differs: m2 ')
      await typed(harness, 'cd\r')
      await print(harness, at(style, '~'))
      expect(header(harness)).not.toContain('differ')
      await print(harness, (host) => (host === 'm2' ? 'rm -rf /srv' : ''))
      harness.type('x')
      await print(harness, () => 'x')
      expect(header(harness)).toContain(' 1 of 6 differs: m2 ')
    })
  })

  it('one was typed into before it was compared with the others', async () => {
    const harness = createConsoleHarness({ hosts: HOSTS })
    for (const host of HOSTS) await harness.print(host, prompt(host))
    await harness.print('m2', `read -s -p "Password: " x\r\nPassword: `)
    rest(harness)
    expect(header(harness)).toContain(' 1 of 6 differs: m2 ')
    await harness.print('m2', prompt('m2'))
    rest(harness)
    expect(header(harness)).not.toContain('differ')
    await print(harness, (host) => `\r\n${prompt(host)}`)
    expect(header(harness)).not.toContain('differ')
  })

  it('what is typed comes back at different times', async () => {
    const harness = await atPrompts()
    for (let key = 0; key < 40; key++) {
      for (const host of HOSTS.slice(0, key % 2 === 0 ? 6 : 3)) await harness.print(host, 'x')
      harness.clock.advance(100)
      expect(header(harness)).not.toContain('differ')
    }
  })
})

describe('among hosts with prompts of different kinds', () => {
  const name = (directory: string): string => directory.split('/').at(-1) || '/'
  /** bash with `\\W`, one with two rows, zsh with git, fish, and two plain ones. */
  const PROMPTS: Record<string, (directory: string, status?: string) => string> = {
    m1: (directory) => `➜  ${name(directory)} `,
    m2: (directory) => `\r\nroot@m2 ${directory}\r\n$ `,
    m3: (directory) => `➜  ${name(directory)} ${directory === '~/proj' ? 'git:(main) ✗ ' : ''}`,
    m4: (directory, status = '') => `root@m4 ${directory}${status}# `,
  }
  const at =
    (directory: string, status?: string) =>
    (host: string): string =>
      `\x1b[?2004h${PROMPTS[host]?.(directory, status) ?? `root@${host}:${directory}# `}`
  const mixed = async () => await atPrompts(undefined, at('~'))
  /** Types a line into all, which echo it, and prints what follows. */
  const run = async (harness: ConsoleHarness, line: string, textOf: (host: string) => string) => {
    harness.type(line)
    await print(harness, () => line)
    harness.type('\r')
    await print(harness, (host) => `\r\n\x1b[?2004l\r${textOf(host)}`)
  }
  const inFirst = (text: string, other: string) => (host: string) => (host === 'm1' ? text : at(other)(host))

  it('none differs at rest, in any directory, after a failure, or while a line is typed', async () => {
    const harness = await mixed()
    for (const directory of ['~/proj', '/tmp', '/', '~']) {
      await run(harness, `cd ${directory}`, at(directory))
      expect(header(harness)).not.toContain('differ')
      await run(harness, 'false', at(directory, ' [1]'))
      expect(header(harness)).not.toContain('differ')
      harness.type('echo root b')
      await print(harness, () => 'echo root b')
      expect(header(harness)).not.toContain('differ')
      harness.type('\x03')
      await print(harness, (host) => `^C\r\n${at(directory)(host)}`)
      expect(header(harness)).not.toContain('differ')
    }
  })

  it.each(['~', '~/proj', '/tmp'])('none differs where all ask the same: in %s', async (directory) => {
    const harness = await mixed()
    await run(harness, `cd ${directory}`, at(directory))
    await run(harness, 'sudo id', () => '[sudo] password for root: ')
    expect(header(harness)).not.toContain('differ')
  })

  it.each([
    '~',
    '~/proj',
    '/tmp',
  ])('the one that asks for a password, or is in an editor, does: in %s', async (directory) => {
    const harness = await mixed()
    await run(harness, `cd ${directory}`, at(directory))
    await run(harness, 'test -e x || sudo id', inFirst('[sudo] password for root: ', directory))
    expect(header(harness)).toContain(' 1 of 6 differs: m1 ')
    harness.type('abc')
    await print(harness, (host) => (host === 'm1' ? '' : 'abc'))
    expect(header(harness)).toContain(' 1 of 6 differs: m1 ')
    harness.type('\x03')
    await print(harness, (host) => `^C\r\n${at(directory)(host)}`)
    expect(header(harness)).not.toContain('differ')
    await run(harness, 'test -e x || vim', inFirst(VIM, directory))
    expect(header(harness)).toContain(' 1 of 6 differs: m1 ')
  })

  it.each([
    ['m1', '/usr', '/opt'],
    ['m3', '~', '/opt'],
    ['m4', '/usr', '/opt'],
    ['m4', '/srv', '~'],
    ['m5', '~/proj', '/usr/share'],
  ])('the one that is elsewhere does: %s in %s, the others in %s', async (host, own, directory) => {
    const harness = await mixed()
    await run(harness, `cd ${own}`, at(own))
    await run(harness, `cd ${directory}`, (each) => at(each === host ? own : directory)(each))
    expect(header(harness)).toContain(` 1 of 6 differs: ${host} `)
  })

  it.each([
    ['less', 'q', ''],
    ['python3', '\x04', '\x1b[?2004h>>> '],
    ['bash --norc', '\x04', '\x1b[?2004hbash-5.2# '],
    ['cat', '\x1a', ''],
  ])('none differs after a program that ends without Enter: %s', async (line, key, shown) => {
    const harness = await mixed()
    await run(harness, 'cd ~/proj', at('~/proj'))
    await run(harness, line, () => `text\r\n${shown || ':'}`)
    harness.type(key)
    await print(harness, (host) => `\r\x1b[K\x1b[?2004l${at('~/proj')(host)}`)
    expect(header(harness)).not.toContain('differ')
    harness.type('ls')
    await print(harness, () => 'ls')
    expect(header(harness)).not.toContain('differ')
  })

  it('none differs after another shell is started on all', async () => {
    const harness = await mixed()
    await run(harness, 'cd ~/proj', at('~/proj'))
    const started: Record<string, string> = { m1: '➜  proj ', m2: '(base) $ ' }
    await run(harness, 'bash', (host) => `\x1b[?2004h${started[host] ?? `${host}:~/proj# `}`)
    expect(header(harness)).not.toContain('differ')
  })

  it('none differs by the exit status in its prompt', async () => {
    const own = (status: string) => (host: string) =>
      host === 'm1' ? `\x1b[?2004h(base) ➜  ~ ${status}` : at('~')(host)
    const harness = await atPrompts(undefined, own(''))
    harness.type('abc')
    await print(harness, () => 'abc')
    harness.type('\x03')
    await print(harness, (host) => `^C\r\n${own('[130] ')(host)}`)
    expect(header(harness)).not.toContain('differ')
    harness.type('ls')
    await print(harness, () => 'ls')
    expect(header(harness)).not.toContain('differ')
  })

  it.each([
    ['a clock', (time: string) => `[${time}] root@m1 ~ $ `],
    ['a date and a clock', (time: string) => `2026-11-28 ${time} m1:~$ `],
    ['a short clock', (time: string) => `${time.slice(0, 5)} root ~ # `],
    ['AM or PM', (time: string) => `${time} ${time < '12' ? 'AM' : 'PM'} m1 ~ % `],
    ['a status and a clock', (time: string, status: string) => `root@m1 ~ [${status}] ${time} $ `],
    ['a status in brackets', (_: string, status: string) => `root@m1 ~ [${status}] $ `],
    ['a bare status behind a line', (_: string, status: string) => `┌─[root@m1] ~\r\n└─${status}# `],
    ['a number of the line', (time: string) => `m1 ${time.slice(-2)} ~ $ `],
  ])('none differs by %s in its prompt', async (_, promptOf) => {
    const own = (time: string, status: string) => (host: string) => {
      const others: Record<string, string> = {
        m1: promptOf(time, status),
        m2: `\r\nroot@m2:~\r\n${status} > `,
        m3: `┌─[root@m3] ~\r\n└─${status}# `,
      }
      return `\x1b[?2004h${others[host] ?? `${host}:~$ `}`
    }
    const harness = await atPrompts(undefined, own('11:59:58', '0'))
    expect(header(harness)).not.toContain('differ')
    for (const [time, status] of [
      ['11:59:59', '0'],
      ['12:03:10', '1'],
      ['13:17:55', '12'],
      ['14:59:01', '0'],
    ] as const) {
      await run(harness, 'sh -c "exit 12"', own(time, status))
      expect(header(harness)).not.toContain('differ')
      harness.type('ls')
      await print(harness, () => 'ls')
      expect(header(harness)).not.toContain('differ')
      harness.type('\x03')
      await print(harness, (host) => `^C\r\n${own(time, '130')(host)}`)
      expect(header(harness)).not.toContain('differ')
    }
  })

  it('none differs while a text of several lines is in the line editors', async () => {
    const harness = await mixed()
    for (const host of HOSTS) if (host === 'm3') await harness.print(host, '\x1b[?1h')
    harness.type('\x1b[200~echo p1\necho p2\n\x1b[201~')
    harness.type('\x13')
    await print(harness, () => 'echo p1\r\necho p2')
    expect(header(harness)).not.toContain('differ')
  })

  it('the one that is another user does, or in another program', async () => {
    const harness = await mixed()
    await run(harness, 'su ann', (host) => `\x1b[?2004h${host === 'm1' ? 'ann@m1:/root$ ' : at('~')(host)}`)
    expect(header(harness)).toContain(' 1 of 6 differs: m1 ')
    await run(harness, 'python3', (host) => `\x1b[?2004h${host === 'm1' ? 'ann@m1:/root$ ' : '>>> '}`)
    expect(header(harness)).toContain(' 1 of 6 differs: m1 ')
  })
})

describe('the hosts that differ', () => {
  it('are selected with one key, and the same key goes back', async () => {
    const harness = await atPrompts()
    await harness.print('m2', VIM)
    await harness.print('m5', VIM)
    rest(harness)
    expect(header(harness)).toContain(' 2 of 6 differ: m[2,5] ')
    harness.type(`${LEADER}f`)
    expect(harness.receivers()).toBe('m2,m5')
    expect(header(harness)).not.toContain('differ:')
    harness.type(`${LEADER}f`)
    expect(harness.receivers()).toBe(HOSTS.join())
    expect(header(harness)).toContain(' 2 of 6 differ: m[2,5] ')
    await print(harness, only('m2', '\x1b[?1049l', ''))
    await print(harness, only('m5', '\x1b[?1049l', ''))
    await print(harness, (host) => `\r\n${prompt(host)}`)
    expect(harness.console.state.diverged).toEqual([])
  })

  it('have no tie if no screen can be compared, and those in trouble are no part of a tie', async () => {
    const { console } = await atPrompts()
    const [m1, m2, m3, m4, m5] = HOSTS as [string, string, string, string, string]
    const lost = { kind: 'lost', reason: 'reset', sinceMs: 0 } as const
    const hosts = console.state.hosts.map((known) => (known.host === m1 ? { ...known, session: lost as never } : known))
    const state = { ...console.state, hosts }
    expect(differentHosts(state, () => [])).toEqual({ names: [m1], tiedWith: [] })
    expect(
      differentHosts(state, () => [
        [m2, m3],
        [m4, m5],
      ]),
    ).toEqual({ names: [m1, m4, m5], tiedWith: [m2, m3] })
  })

  it('are those outside the first of two equally large groups, and the notice says so', async () => {
    const harness = await atPrompts()
    const said = () => harness.console.state.notice?.text
    for (const host of HOSTS.slice(3)) await harness.print(host, VIM)
    rest(harness)
    harness.type(`${LEADER}f`)
    expect(harness.receivers()).toBe('m4,m5,m6')
    expect(said()).toBe('no majority: only m[4-6], not m[1-3]; Ctrl-] f goes back')
    harness.type(`${LEADER}f`)
    await harness.print('m4', '\x1b[?1049l')
    rest(harness)
    harness.type(`${LEADER}f`)
    expect(said()).toBe('only m[5-6]; Ctrl-] f goes back')
  })

  it('are offered in the footer at 80 columns, and so is the way back', async () => {
    const harness = await atPrompts({ columns: 80, rows: 24 })
    await harness.print('m2', VIM)
    await harness.print('m5', VIM)
    rest(harness)
    expect(footer(harness)).toContain(' Ctrl-] f only m[2,5]  Ctrl-] q quit ')
    harness.type(`${LEADER}f`)
    // `s` would select one of the two.
    expect(footer(harness)).toContain(' Ctrl-] f back to 6 hosts ')
    harness.type(`${LEADER}f`)
    await harness.print('m5', '\x1b[?1049l')
    rest(harness)
    expect(footer(harness)).toContain(' Ctrl-] f only m2 ')
    harness.type(`${LEADER}f`)
    expect(footer(harness)).toContain(' Ctrl-] s back to 6 hosts ')
  })

  it('are not computed while nothing is printed', async () => {
    const harness = await atPrompts()
    const { screen } = harness.console.views
    let reads = 0
    harness.console.views.screen = (host) => {
      reads++
      return screen.call(harness.console.views, host)
    }
    harness.clock.advance(60_000)
    expect(reads).toBe(0)
  })

  it('leave the receivers alone when there are none', async () => {
    const harness = await atPrompts()
    harness.type(`${LEADER}f`)
    expect(harness.receivers()).toBe(HOSTS.join())
    expect(harness.console.state.notice?.text).toBe('no host differs')
  })

  it('are looked for among the receivers, so that a host that was left out gets no keys', async () => {
    const harness = await atPrompts()
    harness.type(`${LEADER}/m[1-3]\r`)
    for (const host of ['m5', 'm6']) await harness.print(host, 'something else')
    rest(harness)
    harness.type(`${LEADER}f`)
    expect([harness.receivers(), harness.console.state.notice?.text]).toEqual(['m1,m2,m3', 'no receiver differs'])
    await harness.print('m5', ' again')
    harness.type(`${LEADER}n${LEADER}f`)
    expect(harness.receivers()).toBe('m5,m6')
  })

  it('leave room for the name of the tab', async () => {
    const harness = await atPrompts({ columns: 80, rows: 24 })
    await harness.print('m2', VIM)
    rest(harness)
    expect(header(harness)).toMatch(/1 of 6 differs: m2 +1 Shells/)
    harness.fleet.events.emit({ type: 'shell', host: 'm6', state: { kind: 'ended', end: { kind: 'exit', code: 0 } } })
    rest(harness)
    expect(header(harness)).toMatch(/INTO 5 of 6: m\[1-5\] +2 of 6 differ: m\[2,6\] +1 Shells/)
    harness.type(`${LEADER}d`)
    rest(harness)
    expect(header(harness)).toMatch(/INTO 5 of 6: m\[1-5\] +2 of 6 differ: m\[2,6\].* 1 Shells/)
  })

  it('leave room for the number of the page, too', async () => {
    const hosts = ['m1', 'm2', 'm3', 'm4', 'm5', 'm6', 'm7', 'm8']
    const harness = createConsoleHarness({ hosts, size: { columns: 80, rows: 24 } })
    for (const host of hosts) await harness.print(host, prompt(host))
    for (const host of ['m7', 'm8'])
      harness.fleet.events.emit({ type: 'shell', host, state: { kind: 'ended', end: { kind: 'exit', code: 0 } } })
    rest(harness)
    expect(header(harness)).toMatch(/6\/8 up {2}TYPING INTO 6 of 8: m\[1-6\].* ≠ m\[7-8\] +1\/2 +1 Shells $/)
    expect(header(harness).length).toBeLessThanOrEqual(80)
  })

  it.each([80, 60, 40, 20])('are named after the receivers at %i columns, as far as there is room', async (columns) => {
    const harness = await atPrompts({ columns, rows: 24 })
    await harness.print('m2', VIM)
    rest(harness)
    expect(header(harness).length).toBeLessThanOrEqual(columns)
    expect(header(harness)).toMatch(columns === 80 ? /INTO ALL 6: m\[1-6\] +1 of 6 differs: m2 / : /INTO ALL 6.* ≠ /)
  })
})

describe('screens that f compares', () => {
  it('leave no marks, since they are not compared again', async () => {
    const harness = await atPrompts()
    await harness.print('m2', 'older output\r\n')
    await harness.print('m2', prompt('m2'))
    rest(harness)
    harness.type(`${LEADER}f`)
    expect(harness.receivers()).toBe('m2')
    harness.type(`${LEADER}f`)
    expect([...harness.console.state.hosts.values()].filter(({ isDifferent }) => isDifferent)).toEqual([])
  })
})

describe('screens of which no two are equal', () => {
  it('are all marked, and the header says so', async () => {
    const harness = await atPrompts()
    await print(harness, (host) => `${'word '.repeat(Number(host.slice(1)))}`)
    harness.type(`${LEADER}d`)
    harness.clock.advance(600)
    expect(header(harness)).toContain(' all screens differ ')
    const marked = HOSTS.filter((host) => harness.console.state.hosts.get(host)?.isDifferent)
    expect(marked).toEqual(HOSTS)
    for (const host of HOSTS) expect(harness.console.comparison.highlights(host, themes.dark)).not.toEqual([])
  })

  it.each(['d', '='])('leave the other tabs in the header at 80 columns (%s)', async (key) => {
    const tabs = / +1 Shells +2 +3 +4 +5 +6 *$/
    const equal = await atPrompts({ columns: 80, rows: 24 })
    equal.type(LEADER + key)
    equal.clock.advance(600)
    expect(header(equal)).toMatch(new RegExp(` equal${tabs.source}`))
    const harness = await atPrompts({ columns: 80, rows: 24 })
    await print(harness, (host) => `${'word '.repeat(Number(host.slice(1)))}\r\n${prompt(host)}`)
    harness.type(LEADER + key)
    harness.clock.advance(600)
    expect(header(harness)).toMatch(new RegExp(` ≠ all${tabs.source}`))
    expect(header(harness).length).toBeLessThanOrEqual(80)
  })

  it('show that they are folded when some are equal', async () => {
    const harness = await atPrompts()
    harness.type(`${LEADER}=`)
    harness.clock.advance(600)
    expect(header(harness)).toContain(' folded: screens equal ')
    const { state, arrangement } = harness.console
    const [placed] = arrangement.placed
    const { title } = paneView({
      state,
      theme: themes.dark,
      hosts: placed?.hosts ?? [],
      rect: { column: 0, row: 0, width: 60, height: 10 },
      screen: undefined,
      highlights: [],
    })
    expect(title.map(({ text }) => text).join('')).toContain('m[1-6] (6 folded)')
  })

  it('are selected together while they are folded, and named so', async () => {
    const harness = await atPrompts({ columns: 160, rows: 40 })
    harness.type(`${LEADER}=`)
    const badges = () => {
      const { state, arrangement } = harness.console
      const hosts = arrangement.placed[0]?.hosts ?? []
      const rect = { column: 0, row: 0, width: 60, height: 10 }
      return paneView({ state, theme: themes.dark, hosts, rect, screen: undefined, highlights: [] })
        .badges.map(({ text }) => text)
        .join('')
    }
    // All receive already: there is nothing to select.
    expect(footer(harness)).not.toContain('Ctrl-] s')
    harness.type(`${LEADER}s`)
    expect([harness.receivers(), badges()]).toEqual([HOSTS.join(), ''])
    await harness.print('m6', `odd\r\n${prompt('m6')}`)
    rest(harness)
    harness.type(`${LEADER}a`)
    expect(footer(harness)).toContain(' Ctrl-] s only m[1-5] ')
    harness.type(`${LEADER}s`)
    expect([harness.receivers(), badges()]).toEqual(['m1,m2,m3,m4,m5', ' Ctrl-] s back '])
    expect(footer(harness)).toContain(' Ctrl-] s back to 6 hosts ')
    harness.type(`${LEADER}x`)
    const { mode } = harness.console.state
    const lines = mode.kind === 'dialog' ? mode.dialog.lines.map(({ text }) => text).join(' ') : ''
    expect(lines.replaceAll(/\s+/g, ' ')).toContain('This hangs up their shells and ends what runs in them.')
    harness.type('n')
    harness.type(`${LEADER}s`)
    expect([harness.receivers(), badges()]).toEqual([HOSTS.join(), ''])
  })
})
