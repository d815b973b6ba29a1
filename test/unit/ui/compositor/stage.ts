/** A compositor on an emulated terminal, with time and the event loop in the test's hands. */
import { BOLD, type CellGrid, createCellGrid } from '../../../../src/terminal/cells.ts'
import { createScreen, type Screen } from '../../../../src/terminal/headless-screen.ts'
import { putSpans } from '../../../../src/ui/compositor/canvas.ts'
import { Compositor } from '../../../../src/ui/compositor/compositor.ts'
import type { PaneView, Scene, Style } from '../../../../src/ui/compositor/scene.ts'
import { createGrid, slotRect } from '../../../../src/ui/console/panes.ts'
import { ManualClock } from '../../ssh/manual-clock.ts'

export const style: Style = { foreground: 0, background: 0, attributes: 0 }
export const screenOf = (columns: number, rows: number): Screen =>
  createScreen({ columns, rows, historyLines: 50, handlers: { onReply: () => undefined } })

export class Terminal {
  readonly screen: Screen
  bytes = 0
  isDraining = false
  last = ''
  writes = 0
  #onDrain: () => void = () => undefined
  constructor(columns: number, rows: number) {
    this.screen = screenOf(columns, rows)
  }
  write(bytes: Uint8Array): boolean {
    this.bytes += bytes.length
    this.writes++
    this.last = Buffer.from(bytes).toString('utf8')
    this.screen.parse(bytes)
    return !this.isDraining
  }
  onDrain(callback: () => void): Disposable {
    this.#onDrain = callback
    return { [Symbol.dispose]: () => undefined }
  }
  drain(): void {
    this.isDraining = false
    this.#onDrain()
  }
  grid(): CellGrid {
    const grid = createCellGrid(this.screen.columns, this.screen.rows)
    this.screen.copyInto(grid, 0, 0, grid.columns, grid.rows)
    return grid
  }
}

export function start(columns: number, rows: number) {
  const clock = new ManualClock()
  const terminal = new Terminal(columns, rows)
  const soon: (() => void)[] = []
  let preciseMs = 0
  const compositor = new Compositor({
    writer: terminal,
    clock,
    colourDepth: 'truecolor',
    isUtf8: true,
    soon: (callback) => void soon.push(callback),
    preciseNow: () => preciseMs++,
  })
  /** One turn of the event loop. */
  const turn = () => {
    for (const callback of soon.splice(0)) callback()
  }
  const runSoon = () => {
    while (soon.length > 0) turn()
  }
  return { clock, terminal, compositor, turn, runSoon, frame: () => clock.advance(40) }
}

export const pane = (host: string, screen: Screen, rect: PaneView['rect'], more: Partial<PaneView> = {}): PaneView => ({
  host,
  rect,
  screen,
  lines: 'light',
  frameStyle: style,
  title: [{ text: ` ${host} `, style: { ...style, attributes: BOLD } }],
  badges: [],
  notice: [],
  isDimmed: false,
  highlights: [],
  ...more,
})

/** The same scene drawn by a compositor that has just started: what the terminal ought to show. */
export function drawnAfresh(scene: Scene): CellGrid {
  const { compositor, terminal, frame } = start(scene.columns, scene.rows)
  compositor.setScene(scene)
  frame()
  return terminal.grid()
}

/** Hosts m0, m1 … in a grid below a header line, drawn once. */
export function stageOf(hosts: number, columns = 80, rows = 24) {
  const parts = start(columns, rows)
  const grid = createGrid({ column: 0, row: 1, width: columns, height: rows - 2 }, hosts, { columns: 12, rows: 4 })
  const screens = Array.from({ length: hosts }, (_, slot) => {
    const rect = slotRect(grid, slot)
    return screenOf(rect.width - 2, rect.height - 2)
  })
  const chrome = createCellGrid(columns, rows)
  putSpans(chrome, 0, 0, columns, [{ text: 'header', style }])
  const scene: Scene = {
    columns,
    rows,
    chrome,
    panes: screens.map((screen, slot) => pane(`m${slot}`, screen, slotRect(grid, slot))),
    overlays: [],
    cursor: { pane: 'm0' },
  }
  parts.compositor.setScene(scene)
  parts.frame()
  const type = (host: number, text: string): void => screens[host]?.parse(Buffer.from(text))
  const shown = (): string => parts.terminal.screen.visibleText().join('\n')
  return { ...parts, screens, screen: screens[0] as Screen, scene, type, shown }
}
