import { expect, test } from 'vitest'
import { putSpans } from '../../../../src/ui/compositor/canvas.ts'
import { stageOf, style } from './stage.ts'

test('draws simultaneous echoes of 64 panes in one write', () => {
  const { compositor, terminal, type, runSoon, shown } = stageOf(64, 240, 67)
  const { writes } = terminal
  for (let host = 0; host < 64; host++) {
    type(host, '§')
    compositor.invalidateNow([`m${host}`])
  }
  runSoon()
  expect(shown().split('§')).toHaveLength(65)
  expect(terminal.writes).toBe(writes + 1)
})

test('draws an echo that comes during the pause after the last one as soon as that is over', () => {
  const { compositor, terminal, type, turn, runSoon, shown } = stageOf(2)
  type(0, 'a')
  compositor.invalidateNow(['m0'])
  runSoon()
  const { writes } = terminal
  type(1, 'b')
  compositor.invalidateNow(['m1'])
  turn()
  expect(terminal.writes).toBe(writes)
  type(0, 'c')
  compositor.invalidateNow(['m0'])
  runSoon()
  expect(shown()).toMatch(/ac.*b/)
  expect(terminal.writes).toBe(writes + 1)
})

test('draws the echoes of a key in one frame, once the last one is there', () => {
  const { compositor, terminal, type, runSoon, shown } = stageOf(3)
  const { writes } = terminal
  compositor.awaitEchoes(['m0', 'm1', 'm2'])
  for (const host of [0, 1]) {
    type(host, '§')
    compositor.invalidateNow([`m${host}`])
    runSoon()
  }
  expect(terminal.writes).toBe(writes)
  type(2, '§')
  compositor.invalidateNow(['m2'])
  runSoon()
  expect(shown().split('§')).toHaveLength(4)
  expect(terminal.writes).toBe(writes + 1)
})

test('waits only a few milliseconds for a host that does not echo, and only once per key', () => {
  const { clock, compositor, type, runSoon, shown } = stageOf(2)
  compositor.awaitEchoes(['m0', 'm1'])
  type(0, 'first')
  compositor.invalidateNow(['m0'])
  clock.advance(3)
  runSoon()
  expect(shown()).not.toContain('first')
  clock.advance(1)
  runSoon()
  expect(shown()).toContain('first')
  type(0, ' second')
  compositor.invalidateNow(['m0'])
  runSoon()
  expect(shown()).toContain('first second')
})

test('does not wait for the echoes of hosts that print other output', () => {
  const { compositor, type, runSoon, shown } = stageOf(3)
  compositor.invalidate('m1')
  compositor.awaitEchoes(['m0', 'm1', 'm2'])
  type(0, '§')
  compositor.invalidateNow(['m0'])
  runSoon()
  expect(shown()).not.toContain('§')
  type(2, 'log')
  compositor.invalidate('m2')
  runSoon()
  expect(shown()).toContain('§')
})

test('draws an echo with a frame that comes first', () => {
  const { compositor, type, frame, shown } = stageOf(2)
  type(0, 'echo')
  compositor.invalidateNow(['m0'])
  type(1, 'log')
  compositor.invalidate('m1')
  frame()
  expect(shown()).toMatch(/echo.*log/)
  expect(compositor.isIdle).toBe(true)
})

test('draws an echo before a new scene that waits for its frame', () => {
  const { compositor, scene, type, runSoon, shown } = stageOf(2)
  putSpans(scene.chrome, 0, 0, 80, [{ text: 'changed', style }])
  compositor.setScene({ ...scene })
  type(0, 'echo')
  compositor.invalidateNow(['m0'])
  runSoon()
  expect(shown()).toContain('echo')
  expect(shown()).not.toContain('changed')
  expect(compositor.isIdle).toBe(false)
})

test('no longer draws a host that the new scene does not have', () => {
  const { compositor, scene, type, runSoon, shown } = stageOf(2)
  compositor.setScene({ ...scene, panes: scene.panes.slice(1) })
  type(0, 'gone')
  compositor.invalidateNow(['m0'])
  runSoon()
  expect(shown()).not.toContain('gone')
})

test('does not delay regular frames by echoes', () => {
  const { compositor, clock, type, runSoon, shown } = stageOf(2)
  type(1, 'log')
  compositor.invalidate('m1')
  for (let count = 0; count < 6; count++) {
    clock.advance(6)
    type(0, 'x')
    compositor.invalidateNow(['m0'])
    runSoon()
  }
  expect(shown()).toMatch(/xxxxxx.*log/)
})

test('delays an echo while the terminal is busy, and draws it when that has drained', () => {
  const { compositor, clock, terminal, type, runSoon, shown } = stageOf(1)
  terminal.isDraining = true
  type(0, 'held')
  compositor.invalidateNow(['m0'])
  runSoon()
  expect(shown()).not.toContain('held')
  expect(compositor.isIdle).toBe(false)
  terminal.drain()
  clock.advance(40)
  expect(shown()).toContain('held')
})

test('sends a slow terminal half as many frames, until it has kept up for some time', () => {
  const { compositor, clock, terminal, type } = stageOf(1)
  const framesIn = (ms: number): number => {
    const { writes } = terminal
    for (let passed = 0; passed < ms; passed += 5) {
      type(0, 'x')
      compositor.invalidate('m0')
      clock.advance(5)
    }
    return terminal.writes - writes
  }
  const usual = framesIn(600)
  expect(usual).toBeGreaterThanOrEqual(16)
  terminal.isDraining = true
  clock.advance(100)
  terminal.drain()
  expect(framesIn(600)).toBeLessThanOrEqual(Math.ceil(usual / 2) + 1)
  framesIn(3000)
  expect(framesIn(600)).toBeGreaterThanOrEqual(usual - 1)
})
