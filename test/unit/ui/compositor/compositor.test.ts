import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { createCellGrid, rgbColour, UNDERLINE, WORDS_PER_CELL } from '../../../../src/terminal/cells.ts'
import { putSpans } from '../../../../src/ui/compositor/canvas.ts'
import { Compositor } from '../../../../src/ui/compositor/compositor.ts'
import type { Scene } from '../../../../src/ui/compositor/scene.ts'
import { createGrid, slotRect } from '../../../../src/ui/console/panes.ts'
import { randomRuns } from '../../../support/random-runs.ts'
import { ManualClock } from '../../ssh/manual-clock.ts'
import { drawnAfresh, pane, screenOf, stageOf, start, style, Terminal } from './stage.ts'

const sizes = [
  [80, 24],
  [120, 40],
  [240, 67],
] as const

const output = fc.oneof(
  fc.string({ unit: 'grapheme', maxLength: 30 }),
  fc.constantFrom(
    '\r\n',
    '\x1b[H',
    '\x1b[2J',
    '\x1b[31;1m',
    '\x1b[0m',
    '漢字テスト',
    '👩‍👩‍👧 e\u0301',
    '\x1b[38;2;1;2;3;48;5;200m',
    '\x1b[5;10Hx',
    '\x1b[K',
    '\x1b[7m',
    '\x1b[?25l',
    '\t',
    'yes\r\n'.repeat(20),
  ),
)

describe('the terminal shows what was composed', () => {
  test.each(sizes)('after random output and scenes at %i×%i', (columns, rows) => {
    fc.assert(
      fc.property(
        fc.array(
          fc.record({
            host: fc.nat(5),
            text: output,
            isUrgent: fc.boolean(),
            isTurnFirst: fc.boolean(),
            isNewScene: fc.boolean(),
            overlay: fc.boolean(),
            isDimmed: fc.boolean(),
          }),
          { minLength: 1, maxLength: 12 },
        ),
        (steps) => {
          const { compositor, terminal, frame, runSoon } = start(columns, rows)
          const grid = createGrid({ column: 0, row: 1, width: columns, height: rows - 2 }, 6, { columns: 20, rows: 6 })
          const screens = Array.from({ length: 6 }, (_, slot) => {
            const rect = slotRect(grid, slot)
            return screenOf(rect.width - 2, rect.height - 2)
          })
          const chrome = createCellGrid(columns, rows)
          chrome.words.fill(0)
          for (let row = 0; row < rows; row++) putSpans(chrome, 0, row, columns, [{ text: ' '.repeat(columns), style }])
          putSpans(chrome, 0, 0, columns, [
            { text: 'header 漢 ok', style: { ...style, attributes: UNDERLINE, background: rgbColour(0x203040) } },
          ])
          const make = (overlay: boolean, isDimmed: boolean): Scene => ({
            columns,
            rows,
            chrome,
            panes: screens.map((screen, slot) =>
              pane(`m${slot}`, screen, slotRect(grid, slot), {
                isDimmed,
                notice: isDimmed ? [[{ text: 'gone 漢', style }]] : [],
              }),
            ),
            overlays: overlay ? [{ column: 7, row: 3, width: 31, height: 9 }] : [],
            cursor: { pane: 'm0' },
          })
          let scene = make(false, false)
          compositor.setScene(scene)
          frame()
          for (const step of steps) {
            screens[step.host]?.parse(Buffer.from(step.text))
            if (step.isUrgent) compositor.invalidateNow([`m${step.host}`])
            else compositor.invalidate(`m${step.host}`)
            if (step.isNewScene) {
              scene = make(step.overlay, step.isDimmed)
              compositor.setScene(scene)
            }
            if (step.isTurnFirst) runSoon()
            frame()
            runSoon()
            expect(Buffer.from(terminal.grid().words.buffer).equals(Buffer.from(drawnAfresh(scene).words.buffer))).toBe(
              true,
            )
          }
        },
      ),
      { numRuns: randomRuns(8) },
    )
  })
})

test('draws an echo before the next frame', () => {
  const { compositor, terminal, screen, runSoon } = stageOf(1)
  screen.parse(Buffer.from('x'))
  compositor.invalidateNow(['m0'])
  runSoon()
  expect(terminal.screen.visibleText()[2]).toContain('x')
})

test('writes nothing if nothing changed', () => {
  const { compositor, terminal, frame } = stageOf(1)
  const { bytes } = terminal
  compositor.invalidate('m0')
  frame()
  expect(terminal.bytes).toBe(bytes)
  expect(compositor.isIdle).toBe(true)
})

test('writes a few bytes for one changed cell, not a whole screen', () => {
  const { compositor, terminal, screen, frame } = stageOf(1)
  const { bytes } = terminal
  screen.parse(Buffer.from('\x1b[5;5Hx'))
  compositor.invalidate('m0')
  frame()
  expect(terminal.bytes - bytes).toBeLessThan(100)
})

test('writes every frame as a synchronized update', () => {
  const { terminal } = stageOf(1)
  expect(terminal.last).toMatch(/^\u001b\[\?2026h[\s\S]*\u001b\[\?2026l$/)
})

test('erases the screen and writes it again on a redraw: a terminal may keep more than it shows', () => {
  const { compositor, terminal, screen, frame } = stageOf(1)
  terminal.screen.parse(Buffer.from('\x1b[2J\x1b[Hgarbage'))
  compositor.redraw()
  frame()
  const erased = terminal.last?.match(/\x1b\[\d+;1H(?:\x1b\[0m)?\x1b\[\d+X/g)
  expect(erased).toHaveLength(terminal.screen.visibleText().length)
  expect(terminal.screen.visibleText().join('\n')).not.toContain('garbage')
  screen.parse(Buffer.from('x'))
  compositor.invalidate('m0')
  frame()
  expect(terminal.last).not.toContain('X')
})

test('skips frames while the terminal does not drain, and then draws the last state', () => {
  const { compositor, terminal, screen, frame } = stageOf(1)
  terminal.isDraining = true
  const { bytes } = terminal
  screen.parse(Buffer.from('held'))
  compositor.invalidate('m0')
  frame()
  expect(terminal.bytes).toBe(bytes)
  terminal.isDraining = false
  compositor.invalidate('m0')
  frame()
  expect(terminal.screen.visibleText()[2]).toContain('held')
})

test('prints hostile cells as blanks', () => {
  const { compositor, terminal, scene, frame } = stageOf(1)
  const { words } = scene.chrome
  const hostile = [0x1b, 0x07, 0x9b, 0x90, 0x200e, 0xd800, 0x202e, 0x1fffff]
  hostile.forEach((code, index) => {
    words[index * WORDS_PER_CELL] = (1 << 24) | code
  })
  words[20 * WORDS_PER_CELL] = (0x8000_0000 | (1 << 24) | 0x1ffff0) >>> 0
  compositor.setScene(scene)
  frame()
  const sequences = terminal.last.replace(/\u001b\[[\d;?]*[A-Za-z]|\u001b\[\d q/g, '')
  expect(sequences).not.toMatch(/[\u0000-\u001f\u007f-\u009f\u200e\u202e]/)
})

test('draws frames although the clock is set back by an hour', () => {
  const { screen, clock, compositor, frame, shown } = stageOf(1)
  clock.set(-3_600_000)
  screen.parse(Buffer.from('still drawn'))
  compositor.invalidate('m0')
  frame()
  expect(shown()).toContain('still drawn')
})

test('reduces colours for terminals with sixteen colours or none', () => {
  for (const [colourDepth, wanted] of [
    ['16', /\u001b\[91mred/],
    ['none', /\u001b\[0m(?!.*m).*red/],
    ['256', /\u001b\[38;5;\d+mred/],
  ] as const) {
    const clock = new ManualClock()
    const terminal = new Terminal(80, 24)
    const compositor = new Compositor({ writer: terminal, clock, colourDepth, isUtf8: true })
    const chrome = createCellGrid(80, 24)
    putSpans(chrome, 0, 0, 80, [{ text: 'red', style: { ...style, foreground: rgbColour(0xff1010) } }])
    compositor.setScene({ columns: 80, rows: 24, chrome, panes: [], overlays: [], cursor: undefined })
    clock.advance(40)
    expect(terminal.last).toMatch(wanted)
  }
})

test('leaves no half of a wide character that a new pane covers in part', () => {
  const { compositor, terminal, frame } = start(20, 6)
  const chrome = createCellGrid(20, 6)
  // Across the left and the right edge of the pane, on its upper, middle and lower rows.
  for (const row of [1, 2, 4]) {
    putSpans(chrome, 2, row, 2, [{ text: '漢', style }])
    putSpans(chrome, 12, row, 2, [{ text: '字', style }])
  }
  const rect = { column: 3, row: 1, width: 10, height: 4 }
  const panes = [pane('m1', screenOf(8, 2), rect)]
  compositor.setScene({ columns: 20, rows: 6, chrome, panes, overlays: [], cursor: undefined })
  frame()
  expect(terminal.screen.visibleText()).toEqual([
    '',
    '   ┌─ m1 ───┐',
    '   │        │',
    '   │        │',
    '   └────────┘',
    '',
  ])
})
