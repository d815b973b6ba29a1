/** `npm run bench -- compositor`: what a whole frame costs when all of 16 panes changed, without a terminal behind it. */

import { createCellGrid } from '../../src/terminal/cells.ts'
import { createScreen } from '../../src/terminal/headless-screen.ts'
import { Compositor } from '../../src/ui/compositor/compositor.ts'
import type { PaneView, Scene } from '../../src/ui/compositor/scene.ts'
import { createGrid, slotRect } from '../../src/ui/console/panes.ts'
import { formatNumber, formatTable, median, percentile, type Row } from './support/statistics.ts'

const COLUMNS = 240
const ROWS = 67
const PANES = 16
const FRAMES = 2000
/** The trial of the design: 0.16–0.22 ms. */
const GOAL_MS = 0.3

const word = (random: () => number) => Math.floor(random() * 36 ** 5).toString(36)

const CONTENTS: Readonly<Record<string, (random: () => number) => string>> = {
  logs: (random) =>
    `2026-11-21 10:00:${Math.floor(random() * 60)} info ${word(random)} ${word(random)} ${word(random)} served\r\n`,
  'coloured logs': (random) =>
    `\x1b[2m10:00:${Math.floor(random() * 60)}\x1b[0m \x1b[3${Math.floor(random() * 8)}m${word(random)}\x1b[0m ${word(random)} \x1b[1m${word(random)}\x1b[0m\r\n`,
}

export function benchCompositor(): string {
  return formatTable(Object.entries(CONTENTS).map(([name, line]) => benchContent(name, line)))
}

function benchContent(name: string, line: (random: () => number) => string): Row {
  let seed = 1
  const random = () => {
    seed = (Math.imul(seed, 1_103_515_245) + 12_345) & 0x7fffffff
    return seed / 0x80000000
  }
  let nowMs = 0
  let due: (() => void) | undefined
  let bytes = 0
  using compositor = new Compositor({
    writer: {
      write: (frame) => {
        bytes += frame.length
        return true
      },
      isDraining: false,
      onDrain: () => ({ [Symbol.dispose]: () => {} }),
    },
    clock: {
      now: () => nowMs,
      after: (_, callback) => {
        due = callback
        return { [Symbol.dispose]: () => {} }
      },
    },
    colourDepth: 'truecolor',
    isUtf8: true,
  })
  const grid = createGrid({ column: 0, row: 1, width: COLUMNS, height: ROWS - 2 }, PANES, { columns: 40, rows: 8 })
  const style = { foreground: 0, background: 0, attributes: 0 }
  const panes = Array.from({ length: PANES }, (_, slot): PaneView => {
    const rect = slotRect(grid, slot)
    const screen = createScreen({
      columns: rect.width - 2,
      rows: rect.height - 2,
      historyLines: 0,
      handlers: { onReply: () => {} },
    })
    return {
      host: `m${slot}`,
      rect,
      screen,
      frameStyle: style,
      lines: 'light',
      title: [{ text: `m${slot}`, style }],
      badges: [],
      isDimmed: false,
      notice: [],
      highlights: [],
    } as PaneView
  })
  const scene: Scene = {
    columns: COLUMNS,
    rows: ROWS,
    chrome: createCellGrid(COLUMNS, ROWS),
    panes,
    overlays: [],
    cursor: undefined,
  } as Scene
  compositor.setScene(scene)
  const times: number[] = []
  for (let frame = 0; frame < FRAMES; frame++) {
    for (const { screen } of panes) screen?.parse(Buffer.from(Array.from({ length: 20 }, () => line(random)).join('')))
    for (const { host } of panes) compositor.invalidate(host)
    nowMs += 1000
    const draw = due
    due = undefined
    const start = performance.now()
    draw?.()
    times.push(performance.now() - start)
  }
  for (const { screen } of panes) screen?.[Symbol.dispose]()
  const measured = times.slice(FRAMES / 10)
  return {
    what: `whole frame, ${PANES} panes of ${name} changed: ms p50 / p99 (${Math.round(bytes / FRAMES / 1000)} KB a frame)`,
    ours: `${formatNumber(median(measured))} / ${formatNumber(percentile(measured, 0.99))}`,
    peer: '',
    goal: `p50 ≤ ${GOAL_MS}`,
    isReached: median(measured) <= GOAL_MS,
  }
}
