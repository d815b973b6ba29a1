/** A host whose shell opens after others were typed into gets no part of a line as a command. */
import { describe, expect, it } from 'vitest'
import { themes } from '../../../../src/ui/compositor/scene.ts'
import { footerBars, headerBars } from '../../../../src/ui/console/header.ts'
import { createConsoleHarness } from './console-harness.ts'

const LEADER = '\x1d'
const prompt = (host: string, directory = '~') => `root@${host}:${directory}# `

async function atPrompts(hosts: readonly string[] = ['m1', 'm2', 'm3', 'm4']) {
  const harness = createConsoleHarness({ hosts: [...hosts], size: { columns: 120, rows: 40 } })
  const { console, fleet, print, clock } = harness
  const rest = () => void clock.advance(800)
  const others = hosts.filter((host) => host !== 'm2')
  const printAll = async (names: readonly string[], textOf: (host: string) => string) => {
    for (const host of names) await print(host, textOf(host))
    rest()
  }
  await printAll(hosts, prompt)
  /** The connections of m2, or of these, are lost. */
  const lose = (names: readonly string[] = ['m2']) => {
    for (const host of names) {
      fleet.away.set(host, 'it is not connected')
      fleet.events.emit({ type: 'shell', host, state: { kind: 'ended', end: { kind: 'lost', reason: 'reset' } } })
      fleet.events.emit({
        type: 'session',
        host,
        state: { kind: 'lost', reason: 'reset', sinceMs: clock.now() } as never,
      })
    }
  }
  const text = (bars: typeof headerBars | typeof footerBars) => {
    const { left } =
      bars === footerBars
        ? footerBars(console.state, themes.none)
        : headerBars(console.state, themes.none, console.arrangement)
    return left.map((part) => part.text).join('')
  }
  return {
    ...harness,
    rest,
    others,
    printAll,
    header: () => text(headerBars),
    footer: () => text(footerBars),
    /** What m2 got since the last call. */
    toM2() {
      const bytes = fleet.received.get('m2') ?? ''
      fleet.received.delete('m2')
      return bytes
    },
    lose,
    /** They have new shells. */
    async comeBack(names: readonly string[] = ['m2']) {
      lose(names.filter((host) => console.state.hosts.get(host)?.session.kind === 'ready'))
      for (const host of names) {
        fleet.away.delete(host)
        fleet.up(host)
        await print(host, `\r\n${prompt(host)}`)
        fleet.received.delete(host)
      }
    },
  }
}

it('gets nothing of a reviewed text that named only the others, and no rest of its last line', async () => {
  const { console, type, lose, comeBack, rest, toM2, got, header, printAll, others } = await atPrompts()
  lose()
  type('\x1b[200~cd /srv\necho one\x1b[201~')
  expect(console.state.mode).toMatchObject({ dialog: { title: 'Paste 2 lines into 3 hosts: m[1,3-4]' } })
  await comeBack()
  rest()
  expect(header()).not.toContain('no keys yet')
  type('\x13')
  expect([got('m1'), toM2()]).toEqual(['cd /srv\recho one', ''])
  expect(console.state.notice?.text).toBe('sent to 3 of 4, not to m2: it became a receiver after the dialog opened')
  type('; rm *\r')
  expect(toM2()).toBe('')
  await printAll(others, (host) => `cd /srv\r\n${prompt(host, '/srv')}echo one; rm *\r\n${prompt(host, '/srv')}`)
  expect(header()).toContain('no keys yet: m2')
  type('\x1da')
  type('x')
  expect(toM2()).toBe('x')
})

it('is named if it lost its connection before it answered the last line', async () => {
  const { console, type, rest, lose, printAll } = await atPrompts()
  type('touch /x\r')
  await printAll(['m1', 'm4'], (host) => `touch /x\r\n${prompt(host)}`)
  rest()
  lose(['m2', 'm3'])
  expect(console.state.notice?.text).toBe(
    'm[2-3]: connection lost before the last line was answered; it may not have run',
  )
  const text = 'the last line was not answered before the connection was lost; it may not have run'
  expect(console.state.log.filter((line) => line.text === text).map(({ host }) => host)).toEqual(['m2', 'm3'])
  lose(['m4'])
  expect(console.state.log.filter((line) => line.text === text)).toHaveLength(2)
})

it.each([
  [200, ' TYPING INTO 3 of 4: m[1,3-4]  new shell, no keys yet: m2  1 of 3 differs: m4 '],
  [120, 'new shell, no keys yet: m2  1 of 3 differs: m4 '],
  [80, ' TYPING INTO 3 of 4: m[1,3-4]  no keys yet: m2  ≠ m4 '],
  [60, ' ≠ '],
])('is named beside a receiver that differs, on %i columns', async (columns, words) => {
  const { console, type, comeBack, header, footer } = await atPrompts()
  type('cd /srv\r')
  await comeBack()
  expect(footer()).toMatch(/Ctrl-\] a also m2 (?!.*Ctrl-\] f)/)
  console.change(() => ({ columns, diverged: ['m2', 'm4'] }))
  expect(header()).toContain(words)
  if (columns > 100) expect(footer()).toContain(' Ctrl-] f hosts that differ ')
})

it('is not named for what is typed without echo after an answer', async () => {
  const { console, type, rest, lose, printAll } = await atPrompts()
  type('read -s -p "PW? " x\r')
  rest()
  await printAll(['m1', 'm2', 'm3', 'm4'], () => 'read -s -p "PW? " x\r\nPW? ')
  rest()
  type('zz')
  lose(['m2'])
  expect(console.state.notice?.text ?? '').not.toContain('answered')
})

it('keeps a reviewed text that no host has answered', async () => {
  const { console, type, rest, lose, printAll } = await atPrompts()
  type(`${LEADER}/m[2-3]\r`)
  type('\x1b[200~cd /srv\ntouch x\n\x1b[201~')
  type('\x13')
  rest()
  await printAll(['m1', 'm4'], (host) => `\r\n${prompt(host)}`)
  lose(['m2'])
  lose(['m3'])
  expect(console.state.notice?.text).toBe(
    'Ctrl-] p opens the text again; m[2-3]: connection lost before the last 2 lines were answered; they may not have run',
  )
  type(`${LEADER}p`)
  const dialog = console.state.mode.kind === 'dialog' ? console.state.mode.dialog : undefined
  expect(dialog?.lines.slice(0, 2).map(({ text }) => text)).toEqual(['1 │ cd /srv', '2 │ touch x'])
})

it('keeps no text that another host has answered, which would get it twice', async () => {
  const { console, type, rest, lose, printAll } = await atPrompts()
  type('\x1b[200~cd /srv\ntouch x\n\x1b[201~')
  type('\x13')
  rest()
  await printAll(['m1', 'm4'], (host) => `cd /srv\r\n${prompt(host, '/srv')}touch x\r\n${prompt(host, '/srv')}`)
  lose(['m2'])
  expect(console.state.notice?.text).toMatch(/^m2: connection lost before the last 2 lines were answered/)
  expect(console.drafts).toEqual([])
})

it('is named with the number of lines that it has not answered', async () => {
  const { console, type, rest, lose, printAll } = await atPrompts()
  type('answered\r')
  rest()
  await printAll(['m1', 'm2', 'm3', 'm4'], (host) => `answered\r\n${prompt(host)}`)
  for (const line of ['touch /x', 'touch /y']) {
    rest()
    type(`${line}\r`)
    await printAll(['m1', 'm4'], (host) => `${line}\r\n${prompt(host)}`)
  }
  lose(['m2', 'm3'])
  expect(console.state.notice?.text).toBe(
    'm[2-3]: connection lost before the last 2 lines were answered; they may not have run',
  )
})

it('gets keys again when the user says so, after the others have run a line that it lost a part of', async () => {
  const { type, comeBack, rest, toM2, header, footer, printAll, others, console } = await atPrompts()
  type('echo never ')
  await printAll(others, () => 'echo never ')
  await comeBack()
  rest()
  expect(header()).toContain(' TYPING INTO 3 of 4: m[1,3-4] ')
  expect(header()).toContain('no keys yet: m2')
  expect(footer()).toContain('Ctrl-] a also m2')
  type('touch /x\r')
  expect(toM2()).toBe('')
  expect(console.state.log.map((line) => line.text).join('\n')).toContain('sent to 3 of 4, not to m2: its shell is new')
  await printAll(others, (host) => `touch /x\r\nnever touch /x\r\n${prompt(host)}`)
  expect(header()).toContain(' TYPING INTO 3 of 4: m[1,3-4] ')
  type(`${LEADER}als\r`)
  expect(header()).toContain(' TYPING INTO ALL 4: ')
  expect(toM2()).toBe('ls\r')
})

it('does not get by itself what only the others have: a variable, a nested shell', async () => {
  const { type, comeBack, rest, toM2, header, printAll, others } = await atPrompts()
  type('export D=/srv/old\r')
  await printAll([...others, 'm2'], (host) => `export D=/srv/old\r\n${prompt(host)}`)
  await comeBack()
  rest()
  expect(header()).toContain('new shell, no keys yet: m2')
  type('rm -rf $D/x\r')
  await printAll(others, (host) => `rm -rf $D/x\r\n${prompt(host)}`)
  rest()
  expect(toM2()).toBe('')
  expect(header()).toContain('new shell, no keys yet: m2')
})

it('does not become the receiver because the others are lost, or none was selected for a while', async () => {
  const { type, comeBack, lose, rest, toM2, header, printAll, others, fleet } = await atPrompts()
  type('cd /srv\r')
  await printAll([...others, 'm2'], (host) => `cd /srv\r\n${prompt(host, '/srv')}`)
  await comeBack()
  rest()
  lose(others)
  expect(header()).toContain(' TYPING INTO NO HOST  new shell, no keys yet: m2 ')
  type('rm -rf *\r')
  expect([...fleet.received.keys()]).not.toContain('m2')
  await comeBack(['m1'])
  rest()
  expect(header()).toContain('no keys yet: m[1-2]')
  type(`${LEADER}n`)
  rest()
  type(`${LEADER}i`)
  expect(header()).toContain('no keys yet: m[1-2]')
  type(`${LEADER}a`)
  expect(header()).not.toContain('no keys yet')
  toM2()
  type('x')
  expect(toM2()).toBe('x')
})

it.each([
  ['another group', `${LEADER}/m1,m3\r`, `${LEADER}/m1,m2\r`],
  ['none', `${LEADER}n`, `${LEADER}a`],
  ['the others', `${LEADER}/m1,m3,m4\r`, `${LEADER}i${LEADER}a${LEADER}a`],
])('that opened while %s was selected gets no keys when it is selected again', async (_, away, back) => {
  const { type, comeBack, rest, toM2, header, printAll, others } = await atPrompts()
  type('export D=/srv/old\r')
  await printAll([...others, 'm2'], (host) => `export D=/srv/old\r\n${prompt(host)}`)
  type(away)
  await comeBack()
  rest()
  type(back)
  rest()
  expect(header()).toContain('new shell, no keys yet: m2')
  type('rm -rf $D/x\r')
  expect(toM2()).toBe('')
  type(`${LEADER}als\r`)
  expect(toM2()).toBe('ls\r')
})

it('that was alone with others that were lost, too, gets no keys beside older shells', async () => {
  const { type, comeBack, rest, toM2, header, printAll, others, fleet } = await atPrompts()
  type('export D=/srv/old\r')
  await printAll([...others, 'm2'], (host) => `export D=/srv/old\r\n${prompt(host)}`)
  type(`${LEADER}/m[2-3]\r`)
  await comeBack(['m2', 'm3'])
  rest()
  expect(header()).toContain(' TYPING INTO NO HOST  new shell, no keys yet: m[2-3] ')
  type(`${LEADER}a`)
  expect(header()).toContain(' TYPING INTO 2: m[2-3] ')
  type('ls\r')
  expect(toM2()).toBe('ls\r')
  await printAll(['m2', 'm3'], (host) => `ls\r\n${prompt(host)}`)
  type(`${LEADER}/m[1-4]\r`)
  expect(header()).toContain(' TYPING INTO 2 of 4: m[1,4]  new shell, no keys yet: m[2-3] ')
  fleet.received.clear()
  type('rm -rf $D/x\r')
  expect([...fleet.received.keys()]).toEqual(['m1', 'm4'])
  type(`${LEADER}a`)
  expect(header()).toContain(' TYPING INTO ALL 4: ')
  // Let in, it is one of them.
  type(`${LEADER}/m1\r${LEADER}/m[1-4]\r`)
  expect(header()).toContain(' TYPING INTO ALL 4: ')
})

it('is named as ended, not as new, while it has none', async () => {
  const { type, fleet, header, rest, printAll, others } = await atPrompts()
  type('ls\r')
  await printAll([...others, 'm2'], (host) => `ls\r\n${prompt(host)}`)
  type(`${LEADER}/m2\r`)
  type('exit 0\r')
  fleet.events.emit({ type: 'shell', host: 'm2', state: { kind: 'ended', end: { kind: 'exit', code: 0 } } })
  type(`${LEADER}a`)
  rest()
  expect(header()).toContain(' TYPING INTO 3 of 4: m[1,3-4]  shell ended: m2 ')
})

it('gets keys again by itself where the others have run nothing', async () => {
  const { type, comeBack, rest, header, printAll, others } = await atPrompts()
  type('ech')
  await printAll(others, () => 'ech')
  await comeBack()
  rest()
  expect(header()).toContain('new shell, no keys yet: m2')
  type('\x15')
  await printAll(others, () => '\r\x1b[K')
  await printAll(others, prompt)
  expect(header()).toContain(' TYPING INTO ALL 4: ')
})

it('that is not new, but missed what a macro inserted, is called that', async () => {
  const { console, header } = await atPrompts()
  const skipped = [{ host: 'm2', reason: 'own.sh failed (exit 3)' }]
  console.sendEach([{ hosts: ['m1', 'm3', 'm4'], bytes: Buffer.from('echo x') }], skipped)
  expect(header()).toContain(' missed input, no keys yet: m2')
  console.sendToReceivers(Buffer.from('y'))
  expect(console.state.notice?.text).toBe('sent to 3 of 4, not to m2: it missed what the others got')
})

it('is said to differ as soon as it is let in beside a program of the others', async () => {
  const { type, comeBack, rest, header, printAll, others } = await atPrompts()
  type('vim x\r')
  await printAll(others, () => '\x1b[?1049h\x1b[2Jsome text')
  await comeBack()
  rest()
  expect(header()).not.toContain('differs')
  type(`${LEADER}a`)
  rest()
  expect(header()).toContain('1 of 4 differs: m2')
})

it('gets nothing of a line for a program that runs on the others, or ran', async () => {
  const { type, comeBack, rest, toM2, printAll, others } = await atPrompts()
  type('cat\r')
  await printAll(others, () => 'cat\r\n')
  await comeBack()
  rest()
  type('rm -rf x\r')
  await printAll(others, () => 'rm -rf x\r\nrm -rf x\r\n')
  type('\x03')
  await printAll(others, (host) => `^C\r\n${prompt(host)}`)
  type('ls\r')
  expect(toM2()).toBe('')
})

it('waits while the others are in another directory, until the user selects all', async () => {
  const { type, comeBack, rest, toM2, header, printAll, others } = await atPrompts()
  type('cd /srv\r')
  await printAll(others, (host) => `cd /srv\r\n${prompt(host, '/srv')}`)
  await comeBack()
  rest()
  type('rm -rf *\r')
  await printAll(others, (host) => `rm -rf *\r\n${prompt(host, '/srv')}`)
  expect(toM2()).toBe('')
  type(`${LEADER}a`)
  expect(header()).toContain(' TYPING INTO ALL 4: ')
  type('ls\r')
  expect(toM2()).toBe('ls\r')
})

describe('where prompts show no directory', () => {
  const bare = async () => {
    const stand = await atPrompts()
    for (const host of ['m1', 'm2', 'm3', 'm4']) await stand.print(host, '\x1b[2J\x1b[H@@ ')
    stand.rest()
    const back = async () => {
      await stand.comeBack()
      await stand.print('m2', '\x1b[2J\x1b[H@@ ')
      stand.rest()
    }
    return { ...stand, back }
  }

  it('stays out once the others have run a line, until the user selects all', async () => {
    const { type, back, toM2, header, footer, printAll, others, rest } = await bare()
    type('cd /srv\r')
    await printAll([...others, 'm2'], () => 'cd /srv\r\n@@ ')
    await back()
    type('rm -rf *\r')
    await printAll(others, () => 'rm -rf *\r\n@@ ')
    rest()
    expect(toM2()).toBe('')
    expect(header()).toContain('no keys yet: m2')
    expect(footer()).toContain('Ctrl-] a also m2')
    type(`${LEADER}a`)
    expect(header()).toContain(' TYPING INTO ALL 4: ')
  })

  it('gets keys again where only Enter was typed, and nothing is half typed', async () => {
    const { type, back, header, printAll, others } = await bare()
    type('\r')
    await printAll([...others, 'm2'], () => '\r\n@@ ')
    await back()
    expect(header()).toContain(' TYPING INTO ALL 4: ')
  })
})

it('`a` lets a late one of some receivers in, and selects all only when it is pressed again', async () => {
  const { type, comeBack, header, footer, toM2, fleet } = await atPrompts()
  type(`${LEADER}/`)
  type('m1,m2\r')
  expect(header()).toContain(' TYPING INTO 2: m[1-2] ')
  type('echo x')
  await comeBack()
  expect(header()).toContain(' TYPING INTO 1 of 2: m1 ')
  expect(footer()).toContain('Ctrl-] a also m2')
  type(`${LEADER}a`)
  expect(header()).toContain(' TYPING INTO 2: m[1-2] ')
  fleet.received.clear()
  type('y')
  expect([...fleet.received.keys()]).toEqual(['m1', 'm2'])
  expect(toM2()).toBe('y')
  type(`${LEADER}a`)
  expect(header()).toContain(' TYPING INTO ALL 4: ')
})

it('is not counted among those that get keys after `f` or `s` goes back', async () => {
  const { type, comeBack, rest, header, footer, printAll, others, console } = await atPrompts()
  type('cd /srv\r')
  await printAll(others, (host) => `cd /srv\r\n${prompt(host, '/srv')}`)
  await comeBack()
  rest()
  type(`${LEADER}s`)
  expect(header()).toContain(' TYPING INTO m1 alone ')
  expect(footer()).toContain('Ctrl-] s back to 3 hosts')
  type(`${LEADER}s${LEADER}f${LEADER}f`)
  expect(console.state.notice?.text).toBe('receivers: m[1,3-4]; no keys yet: m2')
})

it('gets keys when it is selected alone, and others that nobody typed into wait for nothing', async () => {
  const { type, comeBack, rest, toM2, fleet, header } = await atPrompts()
  await comeBack()
  expect(header()).toContain(' TYPING INTO ALL 4: ')
  type('echo ')
  expect(toM2()).toBe('echo ')
  await comeBack()
  rest()
  type(`x${LEADER}n${LEADER}s`)
  fleet.received.clear()
  type('y')
  expect([...fleet.received.keys()]).toHaveLength(1)
})

describe('when all receivers have lost the beginning of a line', () => {
  const names = ['m1', 'm2', 'm3', 'm4']

  it('none gets the rest of it, however long the user waits, and the next line goes to all', async () => {
    const { type, comeBack, lose, fleet, clock, header, footer, console } = await atPrompts()
    type('echo do not ')
    lose(names)
    await comeBack(names)
    clock.advance(60_000)
    expect(header()).toContain(' TYPING INTO NO HOST until Enter  new shell, no keys yet: m[1-4] ')
    expect(footer()).toContain('Ctrl-] a type into m[1-4]')
    type('host')
    type('name\r')
    expect([...fleet.received]).toEqual([])
    expect(console.state.notice?.text).toBe('not sent to m[1-4]: a line, or its beginning, reached no shell')
    expect(header()).toContain(' TYPING INTO ALL 4: m[1-4] ')
    type('ls\r')
    expect([...fleet.received.values()]).toEqual(['ls\r', 'ls\r', 'ls\r', 'ls\r'])
  })

  it.each([
    ['Ctrl-C', '\x03'],
    ['Ctrl-U', '\x15'],
  ])('%s ends it, too', async (_name, key) => {
    const { type, comeBack, toM2 } = await atPrompts(['m2'])
    type('echo do not ')
    await comeBack()
    type(`rm x${key}`)
    expect(toM2()).toBe('')
    type('ls\r')
    expect(toM2()).toBe('ls\r')
  })

  it.each([
    ['Ctrl-C', '\x03'],
    ['Ctrl-U', '\x15'],
    ['Enter', '\r'],
  ])('%s ends it, too, where the next line arrives together with it', async (_name, key) => {
    const { type, comeBack, toM2, header } = await atPrompts(['m2'])
    type('echo do not ')
    await comeBack()
    type(`rm x${key}echo fast\r`)
    expect(toM2()).toBe('echo fast\r')
    expect(header()).toContain('TYPING INTO m2')
  })

  it('Ctrl-D, which may only delete a character of it, does not end it', async () => {
    const { type, comeBack, toM2 } = await atPrompts(['m2'])
    type('echo do not ')
    await comeBack()
    type('\x04')
    type('hostname\r')
    expect(toM2()).toBe('')
  })

  it('`a` lets them in at once', async () => {
    const { type, comeBack, fleet, header } = await atPrompts()
    type('echo do not ')
    await comeBack(names)
    type(`${LEADER}a`)
    expect(header()).toContain(' TYPING INTO ALL 4: ')
    type('x')
    expect([...fleet.received.values()]).toEqual(['x', 'x', 'x', 'x'])
  })

  it('also those wait that come back before the last one is lost', async () => {
    const { type, comeBack, lose, fleet } = await atPrompts()
    type('echo do not ')
    await comeBack(['m1', 'm2'])
    lose(['m3', 'm4'])
    type('host')
    await comeBack(['m3'])
    type('name\r')
    expect([...fleet.received.keys()]).toEqual(['m4'])
  })

  it('keys that were typed while no host was connected are part of it', async () => {
    const { type, comeBack, lose, fleet } = await atPrompts(['m2'])
    lose()
    type('echo do not ')
    await comeBack()
    type('hostname\r')
    expect(fleet.received.get('m2')).toBeUndefined()
    type('ls\r')
    expect(fleet.received.get('m2')).toBe('ls\r')
  })

  it.each([
    ['nothing was shown', 'cd old\r', undefined],
    ['everything was shown', 'cd old\r', (host: string) => `cd old\r\n${prompt(host, '/old')}`],
    ['more was to be typed: a full-screen program', 'vim x\r', () => '\x1b[?1049h\x1b[2Jsome text'],
    ['more was to be typed: a password', 'sudo -v\r', () => '\r\n[sudo] password for root: '],
    ['more was to be typed: lines of a file', 'cat > x\r', () => '\r\n'],
    ['more was to be typed: Python', 'python3\r', () => '\r\n>>> '],
    ['more was to be typed: a command that runs', 'sleep 100\r', () => '\r\n'],
    ['the next one was half typed', 'cd old\recho do not ', (host: string) => `cd old\r\n${prompt(host)}echo do not `],
  ])('none gets keys after a line of which %s, until the user selects all', async (_name, line, shown) => {
    const { type, comeBack, fleet, header, footer, clock, console, printAll } = await atPrompts()
    clock.advance(1000)
    type(line)
    if (shown !== undefined) await printAll(names, shown)
    await comeBack(names)
    clock.advance(60_000)
    expect(header()).toContain(' TYPING INTO NO HOST  new shell, no keys yet: m[1-4] ')
    expect(footer()).toContain('Ctrl-] a type into m[1-4]')
    type('rm -rf *\r')
    expect(console.state.notice?.text).toBe('not sent to m[1-4]: its shell is new and lacks what ran in the last one')
    type('x\x03y\r')
    expect([...fleet.received]).toEqual([])
    type(`${LEADER}a`)
    expect(console.state.notice).toBeUndefined()
    type('ls\r')
    expect([...fleet.received.values()]).toEqual(['ls\r', 'ls\r', 'ls\r', 'ls\r'])
    expect(header()).toContain(' TYPING INTO ALL 4: m[1-4] ')
  })

  it('however long after each other they were lost', async () => {
    const { type, comeBack, rest, header, printAll } = await atPrompts()
    type('cd /srv\r')
    await printAll(names, (host) => `cd /srv\r\n${prompt(host, '/srv')}`)
    for (const host of names) {
      await comeBack([host])
      rest()
    }
    expect(header()).toContain(' TYPING INTO NO HOST  new shell, no keys yet: m[1-4] ')
    type(`${LEADER}a`)
    expect(header()).toContain(' TYPING INTO ALL 4: m[1-4] ')
  })

  it.each([
    ['another host was selected', `${LEADER}/m4\r`, ['m1', 'm2', 'm3'], `${LEADER}/m[1-3]\r`, 'm[1-3]'],
    ['none was selected', `${LEADER}n`, names, `${LEADER}/m*\r`, 'm[1-4]'],
  ])('also those that came back while %s', async (_name, away, lost, back, held) => {
    const { type, comeBack, rest, header, printAll, fleet } = await atPrompts()
    type('cd /srv\r')
    await printAll(names, (host) => `cd /srv\r\n${prompt(host, '/srv')}`)
    type(away)
    await comeBack(lost)
    rest()
    type(back)
    expect(header()).toContain(` TYPING INTO NO HOST  new shell, no keys yet: ${held} `)
    fleet.received.clear()
    type('pwd\r')
    expect([...fleet.received]).toEqual([])
    type(`${LEADER}a`)
    expect(header()).not.toContain('no keys yet')
  })

  it('those that were no receivers when one was let in stay out', async () => {
    const { type, comeBack, rest, header, printAll } = await atPrompts()
    type('cd /srv\r')
    await printAll(names, (host) => `cd /srv\r\n${prompt(host, '/srv')}`)
    type(`${LEADER}s`)
    await comeBack(names)
    rest()
    type(`${LEADER}a`)
    expect(header()).toContain(' TYPING INTO m1 alone ')
    type(`${LEADER}s`)
    rest()
    expect(header()).toContain(' TYPING INTO 1 of 4: m1  new shell, no keys yet: m[2-4] ')
    type(`${LEADER}a`)
    expect(header()).toContain(' TYPING INTO ALL 4: ')
  })

  it('one that was let in alone is not let in beside older shells', async () => {
    const { type, comeBack, rest, header, printAll, console, toM2 } = await atPrompts()
    type('cd /srv\r')
    await printAll(names, (host) => `cd /srv\r\n${prompt(host, '/srv')}`)
    console.change(() => ({ focus: 'm2' }))
    type(`${LEADER}s`)
    await comeBack()
    rest()
    expect(header()).toContain(' TYPING INTO NO HOST  new shell, no keys yet: m2 ')
    type(`${LEADER}als\r`)
    expect(toM2()).toBe('ls\r')
    expect(header()).toContain(' TYPING INTO m2 alone ')
    type(`${LEADER}s`)
    rest()
    expect(header()).toContain(' TYPING INTO 3 of 4: m[1,3-4]  new shell, no keys yet: m2 ')
  })

  it('stays out when all are selected again, who have run lines', async () => {
    const { type, comeBack, header, console, printAll, rest, print } = await atPrompts()
    type('ls\r')
    await printAll(names, (host) => `ls\r\n${prompt(host)}`)
    console.change(() => ({ focus: 'm2' }))
    type(`${LEADER}s`)
    type('echo do not ')
    await comeBack()
    type('hostname\r')
    type('ls\r')
    await print('m2', `ls\r\n${prompt('m2')}`)
    rest()
    type(`${LEADER}s`)
    rest()
    expect(header()).toContain(' TYPING INTO 3 of 4: ')
  })

  it('one whose shell the user ended and renewed alone gets keys, but not beside older shells', async () => {
    const { type, fleet, print, printAll, header, console, rest } = await atPrompts()
    type('cd /srv\r')
    await printAll(names, (host) => `cd /srv\r\n${prompt(host, '/srv')}`)
    console.change(() => ({ focus: 'm2' }))
    type(`${LEADER}sexit\r`)
    fleet.events.emit({ type: 'shell', host: 'm2', state: { kind: 'ended', end: { kind: 'exit', code: 0 } } })
    type(`${LEADER}r`)
    fleet.up('m2')
    await print('m2', `\r\n${prompt('m2')}`)
    rest()
    expect(header()).toContain(' TYPING INTO m2 alone ')
    type(`${LEADER}s`)
    rest()
    expect(header()).toContain(' TYPING INTO 3 of 4: m[1,3-4]  new shell, no keys yet: m2 ')
  })

  it('one that was let in alone is not let in beside one that was opened alone before', async () => {
    const { type, comeBack, rest, header, printAll, console } = await atPrompts(['m1', 'm2'])
    type(`${LEADER}/m1\r`)
    type('cd /srv\r')
    await printAll(['m1'], (host) => `cd /srv\r\n${prompt(host, '/srv')}`)
    await comeBack(['m1'])
    rest()
    type(`${LEADER}acd /srv\r`)
    await printAll(['m1'], (host) => `cd /srv\r\n${prompt(host, '/srv')}`)
    await comeBack(['m2'])
    console.change(() => ({ focus: 'm2' }))
    type(`${LEADER}/m2\r`)
    type('ls\r')
    await printAll(['m2'], (host) => `ls\r\n${prompt(host)}`)
    await comeBack(['m2'])
    rest()
    type(`${LEADER}als\r`)
    await printAll(['m2'], (host) => `ls\r\n${prompt(host)}`)
    expect(header()).toContain(' TYPING INTO m2 ')
    type(`${LEADER}/m[1-2]\r`)
    rest()
    expect(header()).toContain(' TYPING INTO 1 of 2: m1  new shell, no keys yet: m2 ')
  })

  it('a shell that ended by itself holds nothing back', async () => {
    const { type, fleet, print } = await atPrompts(['m2'])
    type('exec true\r')
    await print('m2', 'exec true\r\n')
    fleet.events.emit({ type: 'shell', host: 'm2', state: { kind: 'ended', end: { kind: 'exit', code: 0 } } })
    type(`${LEADER}r`)
    fleet.up('m2')
    await print('m2', `\r\n${prompt('m2')}`)
    type('ls\r')
    expect(fleet.received.get('m2')).toMatch(/ls\r$/)
  })

  it('a host that was selected alone waits for the end of it, and then gets keys alone', async () => {
    const { type, comeBack, toM2, header, console, fleet } = await atPrompts()
    type(`${LEADER}n${LEADER}/m1,m3,m4\r`)
    type('ls\r')
    console.change(() => ({ focus: 'm2' }))
    type(`${LEADER}a${LEADER}s`)
    fleet.received.clear()
    type('echo do not ')
    await comeBack()
    expect(header()).toContain('no keys yet: m2')
    type('hostname\r')
    expect(toM2()).toBe('')
    expect(header()).toContain(' TYPING INTO m2 alone ')
    type('ls\r')
    expect(toM2()).toBe('ls\r')
    type(`${LEADER}s`)
    expect(header()).toContain(' TYPING INTO 3 of 4: m[1,3-4] ')
  })
})

it('stays out after it was selected alone, or receivers were inverted twice, in the middle of a line', async () => {
  const { type, comeBack, rest, toM2, header, printAll, others, console } = await atPrompts()
  type('echo never ')
  await printAll(others, () => 'echo never ')
  await comeBack()
  rest()
  console.change(() => ({ focus: 'm2' }))
  type(`${LEADER}s`)
  expect(header()).toContain(' TYPING INTO NO HOST  new shell, no keys yet: m2 ')
  type(`${LEADER}a`)
  expect(header()).toContain(' TYPING INTO m2 alone ')
  type('uptime\r')
  expect(toM2()).toBe('uptime\r')
  await printAll(['m2'], () => `uptime\r\nup\r\n${prompt('m2')}`)
  type(`${LEADER}s`)
  expect(header()).toContain(' TYPING INTO 3 of 4: m[1,3-4] ')
  type(`${LEADER}i${LEADER}i`)
  type('touch /x\r')
  expect(toM2()).toBe('')
  await printAll(others, (host) => `touch /x\r\nnever touch /x\r\n${prompt(host)}`)
  expect(header()).toContain(' TYPING INTO 3 of 4: ')
  type(`${LEADER}a`)
  expect(header()).toContain(' TYPING INTO ALL 4: ')
})

it('is not let in by Enter before the others have answered it', async () => {
  const { type, comeBack, rest, toM2, header, printAll, others } = await atPrompts()
  type('x')
  await printAll(others, () => 'x')
  await comeBack()
  type('\x7f')
  await printAll(others, () => '\b\x1b[K')
  // Their screens show an empty prompt still.
  type('cat > file\r')
  rest()
  expect(header()).toContain(' TYPING INTO 3 of 4: ')
  type('rm -rf x\r')
  await printAll(others, () => 'cat > file\r\nrm -rf x\r\n')
  expect(toM2()).toBe('')
  type('\x04')
  await printAll(others, prompt)
  expect(header()).toContain(' TYPING INTO 3 of 4: ')
})

it('waits no longer because of keys that put nothing into a line', async () => {
  const { type, comeBack, rest, header, printAll, others } = await atPrompts()
  type('\x7f\x1b[D')
  await printAll(others, () => '\x07')
  await comeBack()
  rest()
  expect(header()).toContain(' TYPING INTO ALL 4: ')
})

describe('that lost what its last shell had', () => {
  const names = ['m1', 'm2', 'm3', 'm4']
  const lost = async () => {
    const stand = await atPrompts()
    stand.type('cd /srv\r')
    await stand.printAll(names, (host) => `cd /srv\r\n${prompt(host, '/srv')}`)
    await stand.comeBack()
    stand.rest()
    stand.toM2()
    return stand
  }

  it.each([
    ['is selected alone', `${LEADER}/m2\r`],
    ['is selected alone, after others', `${LEADER}/m1\rls\r${LEADER}/m2\r`],
    ['is left when the others are closed', `${LEADER}/m[1-2]\r${LEADER}x`],
  ])('gets no keys when it %s, before the user lets it in', async (_, keys) => {
    const { type, header, footer, toM2, rest } = await lost()
    for (const key of keys.split(/(?=\x1d)/)) type(key)
    type('y')
    rest()
    expect(header()).toContain(' TYPING INTO NO HOST  new shell, no keys yet: m2 ')
    expect(footer()).toContain('Ctrl-] a type into m2')
    type('rm -rf *\r')
    expect(toM2()).toBe('')
    type(`${LEADER}a`)
    type('ls\r')
    expect(toM2()).toBe('ls\r')
  })

  it('also where another line was given up before its Enter', async () => {
    const { type, printAll, comeBack, header, rest } = await atPrompts()
    type(`${LEADER}/m2\r`)
    type('cd /tmp')
    type(`${LEADER}/m1\r`)
    type('\x15')
    type(`${LEADER}/m2\r`)
    type('\r')
    await printAll(['m2'], (host) => `cd /tmp\r\n${prompt(host, '/tmp')}`)
    await comeBack()
    rest()
    expect(header()).toContain(' TYPING INTO NO HOST  new shell, no keys yet: m2 ')
  })

  it('also where only the beginning of a line was typed, and others were selected when it was lost', async () => {
    const { type, comeBack, header, rest } = await atPrompts()
    type(`${LEADER}/m2\r`)
    type('echo ')
    type(`${LEADER}/m1\r`)
    type('date\r')
    await comeBack()
    rest()
    type(`${LEADER}/m2\r`)
    expect(header()).toContain(' TYPING INTO NO HOST  new shell, no keys yet: m2 ')
  })

  it('also where its shell was ended just before the connection, as when the host restarts', async () => {
    const { type, fleet, print, printAll, header, rest } = await atPrompts(['m2'])
    type('cd /srv\r')
    await printAll(['m2'], (host) => `cd /srv\r\n${prompt(host, '/srv')}`)
    fleet.events.emit({ type: 'shell', host: 'm2', state: { kind: 'ended', end: { kind: 'exit', code: 129 } } })
    fleet.up('m2')
    await print('m2', `\r\n${prompt('m2')}`)
    rest()
    expect(header()).toContain(' TYPING INTO NO HOST  new shell, no keys yet: m2 ')
  })

  it.each(['compose', 'paste'])('loses no text that is to be sent to it alone: %s', async (how) => {
    const { type, console, toM2 } = await lost()
    type(`${LEADER}/m2\r`)
    type(how === 'paste' ? '\x1b[200~one\ntwo\x1b[201~' : `${LEADER}p`)
    if (how === 'compose') for (const key of ['one', '\r', 'two']) type(key)
    const dialog = () => (console.state.mode.kind === 'dialog' ? console.state.mode.dialog : undefined)
    expect(dialog()).toMatchObject({
      title: how === 'paste' ? 'Paste 2 lines into 0 hosts' : 'Compose for 0 hosts',
      lines: expect.arrayContaining([{ text: 'not to m2: no keys yet', tone: 'warning' }]),
      keys: expect.arrayContaining([['Ctrl-s', 'send to 0']]),
    })
    type('\x13')
    expect(toM2()).toBe('')
    expect(console.state.notice?.text).toMatch(/^Ctrl-\] p opens the text again; not sent to m2: its shell is new/)
    type(`${LEADER}a${LEADER}p`)
    type('\x13')
    expect(toM2()).toBe('one\rtwo')
  })

  it('gets no text that was written while there was no shell', async () => {
    const { type, console, lose, rest, fleet } = await atPrompts()
    lose(names)
    type(`${LEADER}p`)
    for (const key of ['one', '\r', 'two']) type(key)
    for (const host of names) {
      fleet.away.delete(host)
      fleet.renewShell(host)
    }
    rest()
    type('\x13')
    expect([...fleet.received]).toEqual([])
    expect(console.state.notice?.text).toBe('Ctrl-] p opens the text again; not sent to m[1-4]: its shell is new')
  })

  it('also where Ctrl-U left the end of the only line', async () => {
    const { type, printAll, comeBack, rest, header, toM2 } = await atPrompts(['m2'])
    for (const key of ['s', 'u', 'do cd /tmp', '\x01', '\x1bf', '\x15', '\r']) type(key)
    await printAll(['m2'], (host) => `cd /tmp\r\n${prompt(host, '/tmp')}`)
    await comeBack()
    rest()
    expect(header()).toContain('new shell, no keys yet: m2')
    toM2()
    type('rm -rf *\r')
    expect(toM2()).toBe('')
  })
})
