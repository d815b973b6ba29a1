/** Panes that close some time after their shells have ended. */
import { expect, it } from 'vitest'
import type { ShellState } from '../../../../src/ssh/create-fleet.ts'
import { themes } from '../../../../src/ui/compositor/scene.ts'
import { footerBars } from '../../../../src/ui/console/header.ts'
import type { WorkPort } from '../../../../src/ui/work-views/work-port.ts'
import { createConsoleHarness, idleWork } from './console-harness.ts'

const LEADER = '\x1d'

const EXIT_0: ShellState = { kind: 'ended', end: { kind: 'exit', code: 0 } }

function harness(auto_close: number) {
  const harness = createConsoleHarness({ preferences: { auto_close } })
  const shell = (state: ShellState, ...hosts: string[]) => {
    for (const host of hosts) harness.fleet.events.emit({ type: 'shell', host, state })
  }
  const open = () => [...harness.console.state.hosts.keys()].join(' ')
  const log = () => harness.console.state.log.map(({ host, text }) => `${host} ${text}`)
  return { ...harness, shell, open, log }
}

it('closes panes after the time of auto_close, and says so', () => {
  const { shell, clock, open, log, console } = harness(5)
  shell(EXIT_0, 'm1')
  clock.advance(3000)
  shell(EXIT_0, 'm3')
  clock.advance(2500)
  expect(open()).toBe('m2 m3 m4')
  expect(console.state.notice?.text).toBe('closed m1: its shell has ended')
  clock.advance(3000)
  expect(open()).toBe('m2 m4')
  expect(log()).toContain('m3 closed 5 s after its shell ended (exit 0) (auto_close)')
})

it('closes shells that end together with one message, and leaves the console open', () => {
  const { shell, clock, open, console, quits } = harness(5)
  shell(EXIT_0, 'm1', 'm2', 'm3', 'm4')
  clock.advance(6000)
  expect([open(), console.state.notice?.text, quits()]).toEqual(['', 'closed m[1-4]: their shells have ended', 0])
})

it('waits for a run on the host of the pane', () => {
  const ends: (() => void)[] = []
  const work: WorkPort = {
    ...idleWork,
    startCommand(_host, _command, { onEnd }) {
      ends.push(() => onEnd({ kind: 'exit', code: 0 }))
      return { stop() {}, abandon() {}, pause() {}, resume() {} }
    },
  }
  const { console, clock, fleet, type } = createConsoleHarness({ preferences: { auto_close: 5 }, work })
  type(`${LEADER}!on m1: sleep 30\r\t`)
  for (const host of ['m1', 'm2']) fleet.events.emit({ type: 'shell', host, state: EXIT_0 })
  clock.advance(20_000)
  expect([...console.state.hosts.keys()]).toEqual(['m1', 'm3', 'm4'])
  for (const end of ends) end()
  clock.advance(1000)
  expect([...console.state.hosts.keys()]).toEqual(['m3', 'm4'])
})

it('closes nothing without the preference, and nothing that was lost', () => {
  const never = harness(0)
  never.shell(EXIT_0, 'm1')
  never.clock.advance(100_000)
  expect(never.open()).toBe('m1 m2 m3 m4')
  const lost = harness(5)
  lost.shell({ kind: 'ended', end: { kind: 'lost', reason: 'reset' } }, 'm1')
  lost.clock.advance(100_000)
  expect(lost.open()).toBe('m1 m2 m3 m4')
})

it('keeps the pane of a shell that failed by itself, and closes one that failed after a key', () => {
  const { shell, clock, open, type } = harness(5)
  const failed: ShellState = { kind: 'ended', end: { kind: 'exit', code: 1 } }
  shell(failed, 'm1')
  clock.advance(6000)
  expect(open()).toBe('m1 m2 m3 m4')
  type('x')
  shell(failed, 'm2')
  clock.advance(6000)
  expect(open()).toBe('m1 m3 m4')
})

it('gives the keys to no other host when the only receiver closes, and goes back to the others on request', () => {
  const { shell, clock, type, receivers, console } = harness(5)
  type(`${LEADER}s`)
  shell(EXIT_0, 'm1')
  clock.advance(6000)
  expect(receivers()).toBe('')
  const { left } = footerBars(console.state, themes.none)
  expect(left.map(({ text }) => text).join('')).toContain('Ctrl-] s back to 3 hosts')
  type(`${LEADER}s`)
  expect(receivers()).toBe('m2,m3,m4')
})

it('keeps the pane when the user opens a new shell in time', () => {
  const { shell, clock, open } = harness(5)
  shell(EXIT_0, 'm1', 'm2')
  clock.advance(3000)
  shell({ kind: 'opening' }, 'm1')
  clock.advance(6000)
  expect(open()).toBe('m1 m3 m4')
})
