/** Quitting asks once, with what would end; with nothing running it does not ask. */
import { setImmediate } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { type ConsoleHarness, createConsoleHarness, endpointOf } from './console-harness.ts'

const LEADER = '\x1d'
const HOSTS = ['m1', 'm2', 'm3']
type Answers = Readonly<Record<string, readonly string[] | undefined>>

/** Hosts at prompts; those without an answer are silent until `release` is called. */
async function open(answers: Answers) {
  const late = new Map<string, (programs: readonly string[] | undefined) => void>()
  const signals: AbortSignal[] = []
  const harness = createConsoleHarness({
    hosts: HOSTS,
    shellPrograms: (host, signal) => {
      signals.push(signal)
      const answer = answers[host]
      if (answer !== undefined) return Promise.resolve(answer)
      return new Promise((resolve) => late.set(host, resolve))
    },
  })
  for (const host of HOSTS) await harness.print(host, `root@${host}:~# `)
  return { ...harness, late, signals }
}

const view = ({ console }: ConsoleHarness) => console.dialogs.current?.view({ columns: 80, rows: 24 })
const text = (harness: ConsoleHarness): string =>
  [view(harness)?.title, ...(view(harness)?.lines ?? []).map((line) => `${line.text} · ${line.right ?? ''}`)].join('\n')

describe('quitting', () => {
  it('does not ask when nothing runs in the shells', async () => {
    const harness = await open({ m1: [], m2: [], m3: [] })
    harness.type(`${LEADER}q`)
    await setImmediate()
    expect(harness.quits()).toBe(1)
    expect(harness.console.dialogs.current).toBeUndefined()
  })

  it('asks once, with what runs where', async () => {
    const harness = await open({ m1: ['sleep 500'], m2: ['sleep 500', 'make -j &'], m3: [] })
    harness.type(`${LEADER}q`)
    await setImmediate()
    expect(text(harness)).toBe('Quit and end what runs on m[1-2]?\nsleep 500 · m[1-2]\nmake -j & · m2')
    harness.type('x\r')
    expect(harness.quits()).toBe(0)
    harness.type('\x1b')
    expect([harness.console.dialogs.current, harness.console.state.mode.kind]).toEqual([undefined, 'typing'])
    harness.type(`${LEADER}q`)
    await setImmediate()
    harness.type('y')
    expect(harness.quits()).toBe(1)
    expect(HOSTS.map(harness.got)).toEqual(['', '', ''])
  })

  it('names a text that was not sent, also where nothing runs', async () => {
    const harness = await open({ m1: [], m2: [], m3: [] })
    harness.type('\x1b[200~make\nmake install\x1b[201~\x1b')
    harness.type(`${LEADER}q`)
    await setImmediate()
    expect(text(harness)).toBe('Quit and lose a text that was not sent?\na text that was not sent: make · ')
    harness.type('\x1b')
    harness.type(`${LEADER}p`)
    expect(view(harness)?.lines[1]?.text).toBe('2 │ make install▏')
    harness.type('\x1b')
    harness.type(`${LEADER}q`)
    await setImmediate()
    harness.type('y')
    expect(harness.quits()).toBe(1)
  })

  it('counts a silent host as idle only if it shows its prompt', async () => {
    const harness = await open({ m1: [], m2: [] })
    harness.type(`${LEADER}q`)
    await setImmediate()
    expect(text(harness)).toBe('Quit?\nchecking what runs … · m3')
    harness.clock.advance(3000)
    expect(harness.quits()).toBe(1)
    expect(harness.signals.every(({ aborted }) => aborted)).toBe(true)
  })

  it('finds jobs behind the prompt of a host that takes a while to answer', async () => {
    const harness = await open({ m1: [], m2: [] })
    harness.type(`${LEADER}q`)
    await setImmediate()
    harness.clock.advance(2000)
    harness.late.get('m3')?.(['vim x &'])
    await setImmediate()
    expect(text(harness)).toBe('Quit and end what runs on m3?\nvim x & · m3')
    expect(harness.quits()).toBe(0)
  })

  it('names the hosts that did not answer, and adds late answers', async () => {
    const harness = await open({ m1: [], m2: [] })
    await harness.print('m3', 'make\r\ncc main.c\r\n')
    harness.type(`${LEADER}q`)
    await setImmediate()
    harness.clock.advance(3000)
    expect(harness.quits()).toBe(0)
    expect(text(harness)).toBe('Quit?\nchecking what runs … · m3')
    harness.late.get('m3')?.(['make'])
    await setImmediate()
    expect(text(harness)).toBe('Quit and end what runs on m3?\nmake · m3')
  })

  it('says that a host runs an unknown program only if it could not be asked', async () => {
    const harness = await open({ m1: [], m2: [] })
    await harness.print('m3', '\r\n@@ ')
    harness.type(`${LEADER}q`)
    harness.clock.advance(3000)
    expect(text(harness)).toBe('Quit?\nchecking what runs … · m3')
    expect(view(harness)?.keys?.[0]).toEqual(['y', 'quit'])
    harness.late.get('m3')?.(undefined)
    await setImmediate()
    expect(text(harness)).toBe('Quit and end what runs on m3?\nan unknown program · m3')
    expect(view(harness)?.keys?.[0]).toEqual(['y', 'end and quit'])
  })

  it('does not quit by itself once it has asked', async () => {
    const harness = await open({ m1: [], m2: [] })
    await harness.print('m3', 'make\r\ncc main.c\r\n')
    harness.type(`${LEADER}q`)
    await setImmediate()
    harness.clock.advance(3000)
    harness.late.get('m3')?.([])
    await setImmediate()
    expect([harness.quits(), text(harness)]).toEqual([0, 'Quit?\nNothing runs in the shells. · '])
  })

  it('shows a long list as far as there is room', async () => {
    const many = Array.from({ length: 40 }, (_, at) => `program ${at}`)
    const harness = await open({ m1: many, m2: [], m3: [] })
    harness.type(`${LEADER}q`)
    await setImmediate()
    const lines = view(harness)?.lines ?? []
    expect(lines.length).toBeLessThanOrEqual(17)
    expect(lines.at(-1)?.text).toBe('… and 25 more')
  })
})

describe('closing a host', () => {
  it('is undone by adding hosts with Enter alone, in its old place', () => {
    const harness = createConsoleHarness({ hosts: HOSTS })
    harness.type(`${LEADER}l${LEADER}x`)
    harness.type('y')
    expect([...harness.console.state.hosts.keys()]).toEqual(['m1', 'm3'])
    expect(harness.console.state.notice?.text).toBe('closed m2; Ctrl-] + opens it again')
    harness.type(`${LEADER}+`)
    expect(text(harness)).toContain('Enter alone opens m2 again.')
    harness.type('\r')
    expect([...harness.console.state.hosts.keys()]).toEqual(HOSTS)
    expect([harness.receivers(), harness.console.state.focus]).toEqual(['m1,m3,m2', 'm2'])
    harness.type(`${LEADER}+`)
    expect(text(harness)).not.toContain('Enter alone')
  })

  it('is undone by Enter alone also while hosts.yaml has a new host', () => {
    const harness = createConsoleHarness({ hosts: HOSTS })
    harness.console.offered = ['m8']
    harness.type(`${LEADER}+`)
    expect([view(harness)?.input?.placeholder, text(harness)]).toEqual([
      'm8',
      expect.stringContaining('Enter alone opens m8.'),
    ])
    harness.type('m9')
    expect(view(harness)?.input?.text).toBe('m9')
    harness.type('\x1b')
    harness.type(`${LEADER}x`)
    harness.type('y')
    harness.type(`${LEADER}+`)
    expect([view(harness)?.input?.text, text(harness)]).toEqual([
      '',
      expect.stringMatching(/Enter alone opens m1 again\..*Newly declared: m8/s),
    ])
    harness.type('\r')
    expect([...harness.console.state.hosts.keys()]).toEqual(HOSTS)
  })

  it('names what runs in the shell, as quitting does', async () => {
    const harness = await open({ m1: ['make -j &', 'sleep 500'] })
    harness.type(`${LEADER}x`)
    expect(text(harness)).toContain('checking what runs … · m1')
    await setImmediate()
    expect(text(harness)).toMatch(/^Close m1\?\nThis hangs up .*\nmake -j & · m1\nsleep 500 · m1$/)
    harness.type(`\x1b${LEADER}l${LEADER}x`)
    expect(text(harness)).toContain('checking what runs … · m2')
    harness.clock.advance(3000)
    // Its screen shows a prompt.
    expect(view(harness)?.lines).toHaveLength(1)
    await harness.print('m2', '\r\nbuilding')
    expect(text(harness)).toContain('checking what runs … · m2')
    harness.late.get('m2')?.(['make'])
    await setImmediate()
    expect(text(harness)).toContain('make · m2')
    harness.type('y')
    expect(harness.signals.every(({ aborted }) => aborted)).toBe(true)
    expect([...harness.console.state.hosts.keys()]).toEqual(['m1', 'm3'])
  })

  it('does not speak of a shell where there is none', () => {
    const harness = createConsoleHarness({ hosts: HOSTS })
    harness.type(`${LEADER}x`)
    expect(text(harness)).toContain('This hangs up its shell')
    harness.type('\x1b')
    harness.fleet.events.emit({ type: 'shell', host: 'm1', state: { kind: 'none' } })
    harness.type(`${LEADER}x`)
    expect(text(harness)).not.toContain('hangs up')
  })

  it('is undone in the same way if it was not yet known how to reach the host', () => {
    const harness = createConsoleHarness({ hosts: HOSTS, isResolving: true })
    const { console, fleet } = harness
    harness.type(`${LEADER}x`)
    harness.type('y')
    console.connectFirst(HOSTS.map((host, index) => endpointOf(host, index + 1)))
    expect(fleet.hosts).toEqual(['m2', 'm3'])
    harness.type(`${LEADER}+`)
    expect(text(harness)).toContain('Enter alone opens m1 again.')
    harness.type('\r')
    expect([...console.state.hosts.keys()]).toEqual(HOSTS)
    expect(fleet.sizes.get('m1')).toEqual(console.views.size('m1'))
  })
})
