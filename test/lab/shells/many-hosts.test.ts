import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { type ConsoleDriver, openConsole } from '../../support/console-driver.ts'
import { requirement } from '../../support/requirements.ts'
import { type Lab, startLab } from '../cluster/lab.ts'

const canRun = requirement('root', 'namespaces', 'sshd', 'ip', 'nsenter')
const COUNT = 64

describe.skipIf(!canRun)('64 hosts', () => {
  let lab: Lab
  let console: ConsoleDriver
  const shown = (): string[] => console.state?.panes.map(({ host }) => host) ?? []

  beforeAll(async () => {
    lab = await startLab({ count: COUNT })
  })

  afterAll(async () => {
    await lab?.stop()
  })

  beforeEach(async () => {
    console = await openConsole({ in: lab, args: ['--hosts', lab.hostsFile], size: [240, 67] })
    await console.expectAllOpen({ timeoutMs: 120_000 })
    await console.expectPrompts()
  })

  afterEach(async () => {
    await console?.close()
  })

  it('all receive what is typed, also those on other pages', async () => {
    await console.expectHeader(/64\/64 up .*TYPING INTO ALL 64: m\[1-64\]/)
    await console.type('hostname\r')
    const seen = new Set<string>()
    for (let page = 0; page < (console.state?.pages ?? 0); page += 1) {
      const hosts = shown()
      await console.expectOnAll(hosts, (host) => new RegExp(`^${host}$`, 'm'))
      for (const host of hosts) seen.add(host)
      await console.leader('PageDown')
      await console.key('Escape')
    }
    expect([...seen].sort()).toEqual([...lab.names].sort())
  })

  it('can be zoomed into, toggled and folded', async () => {
    await console.leader('z')
    await console.until(({ panes }) => panes.length === 1, 'one pane')
    await console.leader('z')
    await console.until(({ panes }) => panes.length > 1, 'many panes')

    await console.receivers('m[10-64]')
    await console.expectHeader(/TYPING INTO 55: m\[10-64\]/)
    await console.leader('i')
    await console.expectReceivers(...lab.names.slice(0, 9))
    await console.leader('a')

    await console.type("PS1='> '; clear\r")
    await console.leader('=')
    await console.until(({ panes }) => panes.length === 1 && panes[0]?.hosts?.length === COUNT, 'one pane of 64 hosts')
    await console.receivers('m33')
    await console.type('echo different\r')
    await console.until(({ panes }) => panes.length === 2, 'two panes')
    await console.expectOn('m33', /^different$/m)
  })

  it('are quiet after Ctrl-C while all of them run yes', async () => {
    await console.type("PS1='> '\r")
    console.send('yes flood\r')
    await console.expectOnAll(shown(), () => /^flood\nflood\nflood$/m, { whileBusy: true })
    const since = performance.now()
    console.send('\x03')
    await console.expectOnAll(shown(), () => /^> *$/m)
    // For docs/benchmarks.md: how long it took is told, not judged.
    process.stderr.write(`64 hosts were quiet after ${Math.round(performance.now() - since)} ms\n`)
    await console.leader('PageDown')
    await console.expectOnAll(shown(), () => /^> *$/m)
  })

  it('stay responsive while one of them is killed', async () => {
    await lab.host('m40').killSshd()
    try {
      await console.expectHeader(/63\/64 up/)
      await console.type('echo here-$(hostname)\r')
      const alive = shown().filter((host) => host !== 'm40')
      await console.expectOnAll(alive, (host) => new RegExp(`^here-${host}$`, 'm'))
    } finally {
      await lab.host('m40').startSshd()
    }
    await console.expectAllOpen({ timeoutMs: 120_000 })
  })
})
