import { execFileSync } from 'node:child_process'
import { mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { ChangedFiles } from '../../../../src/ui/console/changed-files.ts'
import { takeDeclared } from '../../../../src/ui/console/declared.ts'
import { defaultPreferences } from '../../../../src/ui/preferences.ts'
import { type ConsoleHarness, createConsoleHarness, endpointOf, idleWork } from './console-harness.ts'

describe('a file that has changed', () => {
  let directory: string
  let path: string
  let harness: ConsoleHarness
  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), 'muster-changed-'))
    path = join(directory, 'hosts.yaml')
    writeFileSync(path, 'one')
    harness = createConsoleHarness()
  })
  afterEach(() => rmSync(directory, { recursive: true, force: true }))

  it('is read once, when it has stayed the same for a moment, also if it was replaced', async () => {
    const reads: string[] = []
    using files = new ChangedFiles(harness.console, [{ path, read: async () => void reads.push('read') }])
    await files.check()
    expect(reads).toEqual([])
    writeFileSync(join(directory, 'new'), 'two')
    renameSync(join(directory, 'new'), path)
    await files.check()
    writeFileSync(path, 'three')
    await files.check()
    expect(reads).toEqual([])
    await files.check()
    await files.check()
    expect(reads).toEqual(['read'])
  })

  it('is reported with all its mistakes while it is invalid, and when it no longer exists', async () => {
    const read = async () => {
      throw new Error(`${path}:1:1: first\n${path}:2:1: second`)
    }
    using files = new ChangedFiles(harness.console, [{ path, read }])
    rmSync(path)
    await files.check()
    await files.check()
    expect(harness.console.state.notice).toMatchObject({ tone: 'error' })
    expect(harness.console.state.notice?.text).toBe(
      'cannot reload hosts.yaml, line 1 (and 1 more in the Log tab): first',
    )
    expect(harness.console.state.log.slice(-2).map(({ text }) => text)).toEqual([
      `cannot reload ${path}:1:1: first`,
      `cannot reload ${path}:2:1: second`,
    ])
  })

  it('is said to be valid again, also if nothing else is new', async () => {
    const broken = new Error(`${path}:1:1: first`)
    let read = async (): Promise<string | undefined> => Promise.reject(broken)
    using files = new ChangedFiles(harness.console, [{ path, read: () => read() }])
    const change = async (text: string) => {
      writeFileSync(path, text)
      await files.check()
      await files.check()
      return harness.console.state.notice?.text
    }
    expect(await change('two')).toBe('cannot reload hosts.yaml, line 1: first')
    read = async () => undefined
    expect(await change('three')).toBe('hosts.yaml is valid again, and in use')
    harness.clock.advance(10_000)
    expect(await change('four')).toBeUndefined()
    read = () => Promise.reject(broken)
    await change('five')
    read = async () => undefined
    rmSync(path)
    await files.check()
    await files.check()
    expect(harness.console.state.notice?.text).toBe('hosts.yaml is gone: the defaults are in use')
  })

  it('is not watched if it is a pipe', async () => {
    const pipe = join(directory, 'pipe')
    execFileSync('mkfifo', [pipe])
    using files = new ChangedFiles(harness.console, [{ path: pipe, read: () => Promise.reject(new Error('read')) }])
    rmSync(pipe)
    await files.check()
    await files.check()
    expect(harness.console.state.notice).toBeUndefined()
  })

  it('is not opened when it has become a pipe', async () => {
    using files = new ChangedFiles(harness.console, [{ path, read: () => Promise.reject(new Error('read')) }])
    rmSync(path)
    execFileSync('mkfifo', [path])
    await files.check()
    await files.check()
    expect(harness.console.state.notice?.text).toBe('cannot reload hosts.yaml: it is not a regular file')
  })
})

describe('hosts.yaml read again', () => {
  it('names open hosts of which it says something else now', () => {
    const { console } = createConsoleHarness({ hosts: ['m1', 'm2'] })
    const named = (address: string) => ({
      hosts: ['m1', 'm2'],
      groups: new Map(),
      sections: [],
      entries: new Map([
        ['m1', { address: '10.0.0.1' }],
        ['m2', { address }],
      ]),
    })
    expect(takeDeclared(console, 'a.yaml', named('10.0.0.2'), named('10.0.0.2'))).toBeUndefined()
    expect(takeDeclared(console, 'a.yaml', named('10.0.0.2'), named('10.0.0.3'))).toBe(
      'a.yaml: m2 changed: connect again with Ctrl-] x, then Ctrl-] + and the name',
    )
    // Its connection was made with this.
    expect(takeDeclared(console, 'a.yaml', named('10.0.0.3'), named('10.0.0.2'))).toBeUndefined()
    expect(takeDeclared(console, 'a.yaml', named('10.0.0.2'), named('10.0.0.3'))).toContain('m2 changed')
  })

  it('decides how a changed host is reached when it is closed and added again', async () => {
    const resolved: string[] = []
    const { console, fleet, type } = createConsoleHarness({
      hosts: ['m1', 'm2'],
      prompts: {
        resolveNewHosts: async (text) => {
          resolved.push(text)
          return [endpointOf('m2', 77)]
        },
      },
    })
    const named = (address: string) => ({
      hosts: ['m1', 'm2'],
      groups: new Map(),
      sections: [],
      entries: new Map([
        ['m1', {}],
        ['m2', { address }],
      ]),
    })
    const addresses = () => ['m1', 'm2'].map((host) => fleet.endpoint(host)?.address)
    takeDeclared(console, 'a.yaml', named('10.9.0.2'), named('10.9.0.77'))
    console.removeHosts(['m1', 'm2'])
    type('\x1d+\r')
    await setImmediate()
    expect([resolved, addresses()]).toEqual([['m2'], ['10.9.0.1', '10.9.0.77']])
    // It is now connected as declared.
    console.removeHosts(['m2'])
    type('\x1d+\r')
    await setImmediate()
    expect([resolved.length, addresses()]).toEqual([1, ['10.9.0.1', '10.9.0.77']])
    // Also if it has changed since it was closed.
    console.removeHosts(['m2'])
    takeDeclared(console, 'a.yaml', named('10.9.0.77'), named('10.9.0.78'))
    type('\x1d+m2\r')
    await setImmediate()
    expect(resolved).toEqual(['m2', 'm2'])
  })

  it('reopens a host that it no longer has as it was connected', () => {
    const { console, fleet, type } = createConsoleHarness({
      hosts: ['m1', 'm2'],
      prompts: { declaredHosts: () => ['m1'] },
    })
    const entries = new Map([['m2', {}]])
    const both = { hosts: ['m1', 'm2'], groups: new Map(), sections: [], entries }
    takeDeclared(console, 'a.yaml', both, { ...both, hosts: ['m1'], entries: new Map() })
    console.removeHosts(['m2'])
    type('\x1d+\r')
    expect(fleet.endpoint('m2')?.address).toBe('10.9.0.2')
  })

  describe('while a dialog names the hosts of a group', () => {
    const groupsOf = (host: string) => new Map([['web', [host]]])
    const declaredWith = (host: string) => ({ hosts: ['m1', 'm2'], groups: groupsOf(host), sections: [] })
    const open = () => {
      const ran: string[] = []
      const harness = createConsoleHarness({
        hosts: ['m1', 'm2'],
        groups: groupsOf('m2'),
        work: {
          ...idleWork,
          startCommand: (host) => {
            ran.push(host)
            return { stop() {}, abandon() {}, pause() {}, resume() {} }
          },
        },
      })
      const dialog = () => {
        const { mode } = harness.console.state
        return mode.kind === 'dialog' ? mode.dialog : undefined
      }
      const change = () => takeDeclared(harness.console, 'a.yaml', declaredWith('m2'), declaredWith('m1'))
      return { ...harness, ran, dialog, change }
    }

    it.each([
      ['of a run', '\x1d!', 'on @web: hostname'],
      ['of commands', '\x1d:', 'run on @web: hostname'],
    ])('shows the new ones in the dialog %s, and asks again before anything starts', (_, keys, line) => {
      const { type, dialog, change, ran } = open()
      type(keys)
      type(line)
      expect(dialog()?.lines[0]?.text).toBe('1 of 2: m2')
      change()
      expect(dialog()?.lines[0]?.text).toBe('1 of 2: m1')
      type('\r')
      expect(ran).toEqual([])
      expect(dialog()?.input?.error).toBe('the hosts have changed: now 1 of 2: m1; Enter again does it')
      type('\r')
      expect([ran, dialog()]).toEqual([['m1'], undefined])
    })

    it('selects those that the list of groups shows', () => {
      const { type, dialog, change, receivers } = open()
      type('\x1dg')
      type('web')
      expect(dialog()?.lines[0]).toMatchObject({ text: expect.stringContaining('@web') })
      change()
      type('\r')
      expect(receivers()).toBe('m2')
    })
  })

  it('names a host that comes back, and offers none that is gone', () => {
    const { console, type } = createConsoleHarness({ hosts: ['m1', 'm2'] })
    const declared = (...hosts: readonly string[]) => ({
      hosts,
      groups: new Map(),
      sections: [],
      entries: new Map(hosts.map((host) => [host, {}])),
    })
    const [first, renamed] = [declared('m1', 'm2'), declared('m8', 'm2')]
    expect(takeDeclared(console, 'a.yaml', first, renamed)).toBe(
      'a.yaml: m8 is new: Ctrl-] + connects; m1 was removed, and stays open',
    )
    expect(takeDeclared(console, 'a.yaml', renamed, declared('m1', 'm2', 'm9'))).toBe(
      'a.yaml: m9 is new: Ctrl-] + connects; m8 was removed; m1 is declared again',
    )
    type('\x1d+')
    expect(console.state.mode).toMatchObject({ dialog: { input: { placeholder: 'm9' } } })
  })

  it('opens a host under its new name only after the old one is closed: what is typed would run twice', () => {
    const { console } = createConsoleHarness({ hosts: ['m1', 'm2'], prompts: { declaredHosts: () => ['m1', 'm9'] } })
    const declared = (second: string, address: string) => ({
      ...{ hosts: ['m1', second], groups: new Map(), sections: [] },
      entries: new Map([[second, { name: second, address, hops: [] }]]),
    })
    const [first, renamed] = [declared('m2', '10.9.0.2'), declared('m9', '10.9.0.2')]
    expect(takeDeclared(console, 'a.yaml', first, renamed)).toBe(
      'a.yaml: m2 is called m9 now: connect again with Ctrl-] x, then Ctrl-] + and the new name',
    )
    console.addHosts([endpointOf('m9', 2)])
    expect(console.state.notice?.text).toBe('m9 is the same login as m2, which is open: close that first (Ctrl-] x)')
    console.removeHosts(['m2'])
    console.addHosts([endpointOf('m9', 2)])
    expect([...console.state.hosts.keys()]).toEqual(['m1', 'm9'])
    // Names that move on.
    const moved = createConsoleHarness({ hosts: ['m1', 'm2'], prompts: { declaredHosts: () => ['m2', 'm8'] } }).console
    const entryOf = (name: string, number: number) => [name, { name, address: `10.9.0.${number}`, hops: [] }] as const
    const all = (...entries: readonly (readonly [string, object])[]) => ({
      ...{ hosts: entries.map(([name]) => name), groups: new Map(), sections: [], entries: new Map(entries) },
    })
    takeDeclared(moved, 'a.yaml', all(entryOf('m1', 1), entryOf('m2', 2)), all(entryOf('m8', 2), entryOf('m2', 1)))
    moved.addHosts([endpointOf('m8', 2)])
    expect(moved.state.notice?.text).toBe('m8 is the same login as m2, which is open: close that first (Ctrl-] x)')
    moved.removeHosts(['m2'])
    moved.addHosts([endpointOf('m2', 1)])
    expect(moved.state.notice?.text).toBe('m2 is the same login as m1, which is open: close that first (Ctrl-] x)')
    // Another machine.
    const { console: other } = createConsoleHarness({ hosts: ['m1', 'm2'] })
    expect(takeDeclared(other, 'a.yaml', first, declared('m9', '10.9.0.3'))).toBe(
      'a.yaml: m9 is new: Ctrl-] + connects; m2 was removed, and stays open',
    )
  })

  it('offers new hosts, takes its groups, and closes nothing', () => {
    const { console, type } = createConsoleHarness({ hosts: ['m1', 'm2'] })
    const groups = new Map([['fast', ['m1']]])
    const news = takeDeclared(
      console,
      'a.yaml',
      { hosts: ['m1', 'm2', 'm7'], groups: new Map(), sections: [] },
      { hosts: ['m1', 'm7', 'm8', 'm9'], groups, sections: [] },
    )
    expect(news).toBe('a.yaml: m[8-9] are new: Ctrl-] + connects; m2 was removed, and stays open; groups changed')
    expect([...console.state.hosts.keys()]).toEqual(['m1', 'm2'])
    expect(console.state.groups).toEqual(groups)
    type('\x1d+')
    expect(console.state.mode).toMatchObject({
      kind: 'dialog',
      dialog: { id: 'add-host', input: { placeholder: 'm[8-9]' } },
    })
    const same = { hosts: ['m1'], groups, sections: [new Map([['trust', { hosts: ['m1'] }]])] }
    expect(takeDeclared(console, 'a.yaml', same, structuredClone(same))).toBeUndefined()
    expect(takeDeclared(console, 'a.yaml', { ...same, sections: [new Map()] }, same)).toBe(
      'a.yaml: areas changed: r on the tab Bring-up checks them',
    )
    expect(takeDeclared(console, 'a.yaml', { ...same, cluster: 'a' }, { ...same, cluster: 'b' })).toBe(
      'a.yaml: the name of the cluster changed to b: a new console uses it',
    )
  })
})

describe('preferences.yaml read again', () => {
  it('changes keys, leader and panes at once', () => {
    const { console, type } = createConsoleHarness()
    const next = { ...defaultPreferences, leader: 'Ctrl-a', keys: { zoom: ['F11'] }, clipboard: false, keep: true }
    expect(console.takePreferences(next)).toBe('preferences.yaml: leader, clipboard, keep, keys changed')
    type('\x01\x1b[23~')
    expect(console.state.isZoomed).toBe(true)
    expect(console.state.leaderLabel).toBe('Ctrl-a')
    expect(console.takePreferences(next)).toBeUndefined()
    const warnings = ['line 1: keys.zoom: q was the key of quit, which has none now']
    expect(console.takePreferences({ ...next, keys: { zoom: ['q'] }, warnings })).toBe(
      `preferences.yaml: keys changed; ${warnings[0]}`,
    )
    type('\x01,')
    expect(JSON.stringify(console.state.mode)).not.toContain('warnings')
  })
})
