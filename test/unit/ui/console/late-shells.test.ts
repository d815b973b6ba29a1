/** A host whose shell opens after others were typed into gets no part of a line as a command. */
import { expect, it } from 'vitest'
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
    /** The connection is lost and comes back with a new shell. */
    async comeBack() {
      const { events } = fleet
      events.emit({ type: 'shell', host: 'm2', state: { kind: 'ended', end: { kind: 'lost', reason: 'reset' } } })
      events.emit({
        type: 'session',
        host: 'm2',
        state: { kind: 'lost', reason: 'reset', sinceMs: clock.now() } as never,
      })
      fleet.up('m2')
      await print('m2', `\r\n${prompt('m2')}`)
      fleet.received.delete('m2')
    },
  }
}

it('gets keys again with the next line, after the line that it lost a part of', async () => {
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
  expect(header()).toContain(' TYPING INTO ALL 4: ')
  type('ls\r')
  expect(toM2()).toBe('ls\r')
})

it('gets nothing of a line for a program that runs on the others, until they are back at the prompt', async () => {
  const { type, comeBack, rest, toM2, printAll, others } = await atPrompts()
  type('cat\r')
  await printAll(others, () => 'cat\r\n')
  await comeBack()
  rest()
  type('rm -rf x\r')
  await printAll(others, () => 'rm -rf x\r\nrm -rf x\r\n')
  type('\x03')
  await printAll(others, (host) => `^C\r\n${prompt(host)}`)
  expect(toM2()).toBe('')
  type('ls\r')
  expect(toM2()).toBe('ls\r')
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

it('is the only host: it gets no rest of a line, and everything after a pause', async () => {
  const { type, comeBack, toM2, clock, console } = await atPrompts(['m2'])
  type('echo never ')
  await comeBack()
  type('rm x')
  expect(toM2()).toBe('')
  expect(console.state.notice?.text).toBe('not sent to m2: its shell is new and has not seen the beginning of the line')
  clock.advance(1100)
  type('ls\r')
  expect(toM2()).toBe('ls\r')
})

it('stays out after it was selected alone, or receivers were inverted twice, in the middle of a line', async () => {
  const { type, comeBack, rest, toM2, header, printAll, others, console } = await atPrompts()
  type('echo never ')
  await printAll(others, () => 'echo never ')
  await comeBack()
  rest()
  console.change(() => ({ focus: 'm2' }))
  type(`${LEADER}s`)
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
  expect(header()).toContain(' TYPING INTO ALL 4: ')
})

it('waits no longer because of keys that put nothing into a line', async () => {
  const { type, comeBack, rest, header, printAll, others } = await atPrompts()
  type('\x7f\x1b[D')
  await printAll(others, () => '\x07')
  await comeBack()
  rest()
  expect(header()).toContain(' TYPING INTO ALL 4: ')
})
