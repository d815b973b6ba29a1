/** Real floods through real pseudo-terminals: keys, other hosts and the prompt come through. */
import { afterEach, describe, expect, it } from 'vitest'
import type { Pty } from '../../../src/base/pty.ts'
import { Feeder } from '../../../src/terminal/feeder.ts'
import { createScreen, type Screen } from '../../../src/terminal/headless-screen.ts'
import { spawnLocalPty } from '../../../src/terminal/local-pty.ts'

const environment = {
  PATH: process.env.PATH ?? '/usr/bin:/bin',
  LC_ALL: 'C.UTF-8',
  PS1: 'ready> ',
  HOME: '/nonexistent',
}
const owned: Disposable[] = []

afterEach(() => {
  for (const each of owned.splice(0)) each[Symbol.dispose]()
})

type Host = { pty: Pty; screen: Screen; queued: number; peakQueued: number }

function openHosts(count: number) {
  const hosts = new Map<string, Host>()
  const waiting: { isMet(): boolean; resolve(): void }[] = []
  const feeder = new Feeder({
    onPause: (host) => hosts.get(host)?.pty.pause(),
    onResume: (host) => hosts.get(host)?.pty.resume(),
    onParsed: (host, bytes) => {
      const own = hosts.get(host)
      if (own) own.queued -= bytes
      for (const each of waiting.splice(0)) each.isMet() ? each.resolve() : waiting.push(each)
    },
  })
  owned.push(feeder)
  for (let number = 1; number <= count; number++) {
    const name = `m${number}`
    const screen = createScreen({ columns: 60, rows: 10, historyLines: 1000, handlers: { onReply() {} } })
    const pty = spawnLocalPty(
      { file: '/bin/sh', args: ['-i'], columns: 60, rows: 10, term: 'xterm-256color', environment },
      {
        onData(bytes) {
          feeder.push(name, bytes)
          host.queued += bytes.length
          host.peakQueued = Math.max(host.peakQueued, host.queued)
        },
        onExit() {},
      },
    )
    const host = { pty, screen, queued: 0, peakQueued: 0 }
    owned.push({ [Symbol.dispose]: () => pty.close() })
    hosts.set(name, host)
    feeder.add(name, screen)
  }
  const until = (isMet: () => boolean) =>
    new Promise<void>((resolve) => (isMet() ? resolve() : waiting.push({ isMet, resolve })))
  const lastLine = (name: string) =>
    hosts
      .get(name)
      ?.screen.visibleText()
      .findLast((line) => line !== '') ?? ''
  return { feeder, hosts, until, lastLine }
}

describe('floods', () => {
  it('do not hold up the echo of another host', async () => {
    const { hosts, until, lastLine } = openHosts(5)
    const names = [...hosts.keys()]
    await until(() => names.every((name) => lastLine(name).startsWith('ready>')))
    for (const name of names.slice(1)) hosts.get(name)?.pty.write(Buffer.from('yes\r'))
    await until(() => names.slice(1).every((name) => (hosts.get(name)?.screen.historyLines ?? 0) > 500))
    for (let key = 0; key < 20; key++) {
      const typed = String.fromCharCode(97 + key)
      hosts.get('m1')?.pty.write(Buffer.from(typed))
      await until(() => lastLine('m1').endsWith(typed))
    }
    // The queues stay short, so no echo stands behind more than this.
    expect(Math.max(...[...hosts.values()].map(({ peakQueued }) => peakQueued))).toBeLessThan(256 * 1024)
  })

  it('end with the prompt at once when they are interrupted', async () => {
    const { feeder, hosts, until, lastLine } = openHosts(4)
    const names = [...hosts.keys()]
    await until(() => names.every((name) => lastLine(name).startsWith('ready>')))
    for (const { pty } of hosts.values()) pty.write(Buffer.from('yes flood\r'))
    await until(() => [...hosts.values()].every(({ screen }) => screen.historyLines > 900))
    for (const [name, { pty }] of hosts) {
      pty.write(Buffer.from('\x03'))
      feeder.dropBacklog(name)
    }
    await until(() => names.every((name) => lastLine(name) === 'ready>'))
    for (const { pty } of hosts.values()) pty.write(Buffer.from('echo still $((40+2))\r'))
    await until(() => names.every((name) => hosts.get(name)?.screen.visibleText().includes('still 42')))
  })
})
