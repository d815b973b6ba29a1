/** All commands in groups, in columns: shown while the leader waits for a key. Pure. */
import { counted } from '../../base/counted.ts'
import { clip, padEnd, textWidth } from '../../base/text-width.ts'
import type { Rect } from '../compositor/scene.ts'
import type { ConsoleState } from '../state/console-state.ts'
import { ACTION_SECTIONS, type ActionId, actionSpecs, disabledReasonOf, type Keymap, keysOf } from './registry.ts'

/** This long after the leader, if no key came. */
export const KEY_GRID_MS = 400

export type GridCell = {
  /** Both padded to their columns; `key` is empty above a group and below the last one. */
  readonly key: string
  readonly text: string
  readonly tone: 'title' | 'plain' | 'disabled'
  /** What a click does. */
  readonly action?: ActionId
}

export type KeyGrid = { readonly rows: readonly (readonly GridCell[])[]; readonly rect: Rect }

const GLYPHS: Readonly<Record<string, string>> = {
  ...{ Left: '←', Right: '→', Up: '↑', Down: '↓', PageUp: 'PgUp', PageDown: 'PgDn' },
}
const shortKey = (key: string): string =>
  GLYPHS[key] ?? key.replace('Ctrl-', 'C-').replace('Alt-', 'M-').replace('Shift-', 'S-')
/** The user gave it to another action. A click does it all the same, and so does the palette. */
const NO_KEY = '–'
const KEY_WIDTH = 5
/** Of a key and what it does. */
const LEAST_CELL = 25

/** The title of a group and a key. */
const LEAST_ROWS = 2

/** Over the panes, above the footer; undefined: the leader does not wait, or not long enough, or no key fits. */
export function keyGrid(state: ConsoleState): KeyGrid | undefined {
  const { mode, columns, rows } = state
  if (mode.kind !== 'leader' || mode.showsKeys !== true) return undefined
  const room = columns - 3
  const across = Math.max(1, Math.min(ACTION_SECTIONS.length, Math.floor(room / LEAST_CELL)))
  const most = Math.max(1, rows - 4)
  const width = Math.floor(room / across)
  const groups = gridGroups(state)
  const all = columnsOf(groups, across, most)
  const isWhole = keysIn(all) === keysIn(groups)
  const shown = isWhole ? all : columnsOf(groups, across, most - 1)
  const height = Math.max(0, ...shown.map((column) => column.length))
  if (height < LEAST_ROWS) return undefined
  const cells = Array.from({ length: height }, (_, row) =>
    shown.map((column): GridCell => fitted(column[row] ?? NOTHING, width)),
  )
  if (!isWhole) cells.push([fitted(moreCell(keysIn(groups) - keysIn(shown), state.keymap), width * across)])
  return {
    rows: cells,
    rect: { column: 0, row: rows - cells.length - 3, width: columns, height: cells.length + 2 },
  }
}

type Columns = readonly (readonly GridCell[])[]

/** As low as they can be, with as much as fits into this height. */
function columnsOf(groups: Columns, across: number, most: number): Columns {
  const heights = Array.from({ length: Math.max(0, most) }, (_, index) => index + 1)
  const fits = [true, false].flatMap((isWhole) => heights.map((height) => flow(groups, height, isWhole)))
  return (fits.find((one) => one.length <= across) ?? flow(groups, most, false)).slice(0, across)
}

const keysIn = (columns: Columns): number => columns.flat().filter(({ key }) => key !== '').length

/** Below the others, if not all fit. */
function moreCell(count: number, keymap: Keymap): GridCell {
  const [key = ''] = keysOf(keymap, 'help')
  return { key: shortKey(key), text: counted(count, 'more key'), tone: 'plain', action: 'help' }
}

const NOTHING: GridCell = { key: '', text: '', tone: 'plain' }

function fitted(cell: GridCell, width: number): GridCell {
  const { key, text } = cell
  if (key === '') return { ...cell, text: padEnd(clip(text, width - 1), width) }
  const keyWidth = Math.max(KEY_WIDTH, textWidth(key))
  const shown = clip(` ${text}`, width - keyWidth - 1)
  return { ...cell, key: padEnd(key, keyWidth), text: padEnd(shown, width - keyWidth) }
}

function gridGroups(state: ConsoleState): Columns {
  return ACTION_SECTIONS.map((title) => {
    const cells = actionSpecs
      .filter(({ section }) => section === title)
      .map(({ id, title: text }): GridCell => {
        const [key = NO_KEY] = keysOf(state.keymap, id)
        const tone = disabledReasonOf(id, state) === undefined ? 'plain' : 'disabled'
        return { key: shortKey(key), text, tone, action: id }
      })
    return [{ key: '', text: title, tone: 'title' }, ...joinArrows(cells)]
  })
}

/** The four arrows are one line. */
function joinArrows(cells: readonly GridCell[]): readonly GridCell[] {
  const arrows = cells.filter(({ key }) => '←↓↑→'.includes(key))
  const [first] = arrows
  if (arrows.length !== 4 || first === undefined) return cells
  const joined: GridCell = { key: '←↓↑→', text: 'move', tone: first.tone }
  return cells.flatMap((cell) => (cell === first ? [joined] : arrows.includes(cell) ? [] : [cell]))
}

/** Groups below each other with a blank line between them, in columns of this height, whole or with a title that is not the last line of a column. */
function flow(groups: Columns, height: number, isWhole: boolean): Columns {
  const columns: GridCell[][] = []
  const add = (cell: GridCell, need: number) => {
    const last = columns.at(-1)
    if (last !== undefined && last.length + need <= height) last.push(cell)
    else columns.push([cell])
  }
  for (const group of groups) {
    const last = columns.at(-1)
    if (last !== undefined && last.length > 0 && last.length < height) last.push(NOTHING)
    for (const cell of group) add(cell, cell.tone !== 'title' ? 1 : isWhole ? group.length : 2)
  }
  return columns
}
