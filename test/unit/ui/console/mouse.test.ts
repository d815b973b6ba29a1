import { describe, expect, it } from 'vitest'
import { textWidth } from '../../../../src/base/text-width.ts'
import { createCellGrid } from '../../../../src/terminal/cells.ts'
import { barPartAt, dialogSpot } from '../../../../src/ui/components/layout-dialog.ts'
import { themes } from '../../../../src/ui/compositor/scene.ts'
import { QUIET_MS } from '../../../../src/ui/console/dialogs.ts'
import { footerBars, headerBars } from '../../../../src/ui/console/header.ts'
import { buildScene } from '../../../../src/ui/console/pane-view.ts'
import { hostKeyDialog } from '../../../../src/ui/dialogs/credential-dialog.ts'
import { KEY_GRID_MS, keyGrid } from '../../../../src/ui/keys/key-grid.ts'
import { CLIPBOARD_BYTES, clipboardSequence } from '../../../../src/ui/tty/clipboard.ts'
import { keyBytes, mouseBytes } from '../../../support/key-names.ts'
import { type ConsoleHarness, createConsoleHarness } from './console-harness.ts'

const LEADER = keyBytes('Ctrl-]')

const press = (harness: ConsoleHarness, column: number, row: number): void =>
  harness.type(mouseBytes('press', column, row) + mouseBytes('release', column, row))

/** The first column of a bar at which a click does that. */
function columnOf(
  harness: ConsoleHarness,
  bar: 'header' | 'footer',
  what: { action?: string; press?: string },
): number {
  const { state, arrangement } = harness.console
  const bars = bar === 'header' ? headerBars(state, themes.dark, arrangement) : footerBars(state, themes.dark)
  const columns = Array.from({ length: state.columns }, (_, column) => column)
  const found = columns.find((column) => {
    const part = barPartAt(bars, state.columns, column)
    return part !== undefined && part.action === what.action && part.press === what.press
  })
  if (found === undefined) throw new Error(`nothing in the ${bar} does ${JSON.stringify(what)}`)
  return found
}

const copied = ({ sequences }: ConsoleHarness): string[] =>
  sequences.map((sequence) => Buffer.from(/^\x1b\]52;c;(.*)\x07$/.exec(sequence)?.[1] ?? '', 'base64').toString())

describe('a click', () => {
  it('on a tab shows it, at 80 columns too, where the tab keeps its name', () => {
    const harness = createConsoleHarness({ size: { columns: 80, rows: 24 }, hosts: ['m1', 'm2'] })
    press(harness, columnOf(harness, 'header', { action: 'tab-packing' }), 0)
    expect(harness.console.state.tab).toBe('packing')
    const header = headerBars(harness.console.state, themes.dark, harness.console.arrangement)
    expect(header.right.map(({ text }) => text).join('')).toContain('4 Packing')
    press(harness, columnOf(harness, 'header', { action: 'tab-shells' }), 0)
    expect(harness.console.state.tab).toBe('shells')
  })

  it('on a key of the footer presses it after the leader, and types nothing into hosts', () => {
    const harness = createConsoleHarness()
    press(harness, columnOf(harness, 'footer', { press: 'Ctrl-] ?' }), 39)
    expect(harness.console.state.mode).toMatchObject({ kind: 'dialog', dialog: { id: 'help' } })
    harness.type('q')
    press(harness, columnOf(harness, 'footer', { press: 'Ctrl-]' }), 39)
    expect(harness.console.state.mode.kind).toBe('leader')
    press(harness, columnOf(harness, 'footer', { press: 'n' }), 39)
    expect(harness.receivers()).toBe('')
    for (let column = 0; column < 120; column++) press(harness, column, 39)
    expect(harness.got('m1') + harness.got('m2')).toBe('')
  })

  it('does not answer a question that appeared under the pointer a moment ago', () => {
    const harness = createConsoleHarness()
    const answers: ReadonlySet<string>[] = []
    const key = { host: 'm1', lookupName: 'm1', algorithm: 'ssh-ed25519', fingerprint: 'SHA256:x' }
    harness.console.dialogs.openWhenQuiet(hostKeyDialog([key as never], (accepted) => answers.push(accepted)))
    const { mode } = harness.console.state
    if (mode.kind !== 'dialog') throw new Error('no question')
    const places = Array.from({ length: 120 * 40 }, (_, at) => ({ column: at % 120, row: Math.floor(at / 120) }))
    const yes = places.find((place) => {
      const spot = dialogSpot(mode.dialog, harness.console.state, place)
      return spot !== undefined && 'press' in spot && spot.press === 'y'
    })
    if (yes === undefined) throw new Error('no button')
    press(harness, yes.column, yes.row)
    expect(answers).toEqual([])
    harness.clock.advance(QUIET_MS)
    press(harness, yes.column, yes.row)
    expect(answers).toEqual([new Set(['m1'])])
  })

  it('twice on a title types into that host alone, and twice again into all that were selected', () => {
    const harness = createConsoleHarness()
    harness.type(`${LEADER}a`)
    const { rect } = harness.console.arrangement.placed[1] ?? {}
    if (rect === undefined) throw new Error('no pane')
    const double = () => {
      for (const _ of [1, 2]) press(harness, rect.column + 4, rect.row)
    }
    double()
    expect(harness.receivers()).toBe('m2')
    harness.clock.advance(1000)
    double()
    expect(harness.receivers()).toBe('m1,m2,m3,m4')
    // Where the way back appears under the pointer, too.
    const end = rect.column + rect.width - 5
    for (const expected of ['m2', 'm1,m2,m3,m4', 'm2']) {
      harness.clock.advance(1000)
      for (const _ of [1, 2]) press(harness, end, rect.row)
      expect(harness.receivers()).toBe(expected)
    }
  })

  it('on the frame of a host that is typed into alone goes back, and so does the footer', () => {
    const harness = createConsoleHarness({ size: { columns: 80, rows: 24 } })
    harness.type(`${LEADER}s`)
    expect(harness.receivers()).toBe('m1')
    const { rect } = harness.console.arrangement.placed[0] ?? {}
    if (rect === undefined) throw new Error('no pane')
    press(harness, rect.column + rect.width - 5, rect.row)
    expect(harness.receivers()).toBe('m1,m2,m3,m4')
    press(harness, columnOf(harness, 'footer', { press: 'Ctrl-] s' }), 23)
    expect(harness.receivers()).toBe('m1')
    // Of another host the key is for that one, and the way back stays.
    const badges = () =>
      buildScene(harness.console, createCellGrid(80, 24), harness.console.state, (error) => {
        throw error
      }).panes.map((pane) => pane.badges.map(({ text }) => text).join(''))
    expect(badges()[0]).toBe(' alone · Ctrl-] s back ')
    harness.type(`${LEADER}l`)
    harness.type('\x1b')
    expect(badges()[0]).toBe(' alone ')
    harness.type(`${LEADER}s`)
    expect(harness.receivers()).toBe('m2')
    press(harness, columnOf(harness, 'footer', { press: 'Ctrl-] s' }), 23)
    expect(harness.receivers()).toBe('m1,m2,m3,m4')
  })
})

describe('dragging', () => {
  const lines = (from: number, to: number) =>
    Array.from({ length: to - from + 1 }, (_, at) => `line ${from + at}`).join('\r\n')

  it('copies a line that the pane has wrapped as one, and wide characters whole', async () => {
    const harness = createConsoleHarness({ hosts: ['m1'], size: { columns: 22, rows: 10 } })
    await harness.print('m1', '0123456789012345678901234\r\n漢字 x')
    harness.type(mouseBytes('press', 1, 2) + mouseBytes('drag', 5, 4) + mouseBytes('release', 5, 4))
    expect(copied(harness)).toEqual(['0123456789012345678901234\n漢字'])
    expect(harness.console.state.notice?.text).toBe('copied 2 lines from m1')
  })

  it('over empty rows keeps what is in the clipboard', async () => {
    const harness = createConsoleHarness({ hosts: ['m1'], size: { columns: 22, rows: 10 } })
    await harness.print('m1', 'end')
    harness.type(mouseBytes('press', 1, 4) + mouseBytes('drag', 5, 6) + mouseBytes('release', 5, 6))
    expect(copied(harness)).toEqual([])
    expect(harness.console.state.notice?.text).toBe('nothing to copy from m1: no text is marked')
  })

  it('so does scroll mode, of all that is in view', async () => {
    const harness = createConsoleHarness({ hosts: ['m1'], size: { columns: 22, rows: 10 } })
    await harness.print('m1', '0123456789012345678901234\r\nend')
    harness.type(`${LEADER}[`)
    harness.type('y')
    expect(copied(harness)).toEqual(['0123456789012345678901234\nend'])
  })

  it('follows its lines while output scrolls, also out of the history', async () => {
    const harness = createConsoleHarness({
      hosts: ['m1'],
      size: { columns: 40, rows: 10 },
      preferences: { history: 8 },
    })
    await harness.print('m1', `\r\n${lines(1, 5)}`)
    harness.type(mouseBytes('press', 1, 3) + mouseBytes('drag', 6, 4))
    await harness.print('m1', `\r\n${lines(6, 10)}`)
    harness.type(mouseBytes('release', 6, 4))
    expect(copied(harness)).toEqual(['line 1\nline 2'])
    await harness.print('m1', `\r\n${lines(11, 60)}`)
    expect(harness.console.selection.text()).toBeUndefined()
  })

  it('selects a word with two clicks and a line with three', async () => {
    const harness = createConsoleHarness({ hosts: ['m1'], size: { columns: 60, rows: 10 } })
    await harness.print('m1', 'see (/var/log/auth.log) now')
    for (const _ of [1, 2, 3]) press(harness, 10, 2)
    expect(copied(harness)).toEqual(['/var/log/auth.log', 'see (/var/log/auth.log) now'])
  })

  it('selects the whole of a word that the pane has wrapped, from any of its rows', async () => {
    const harness = createConsoleHarness({ hosts: ['m1'], size: { columns: 22, rows: 10 } })
    const path = '/usr/lib/python3/dist-packages/requests/models.py'
    await harness.print('m1', `see\r\nFile "${path}", line 3`)
    for (const [column, row] of [
      [12, 3],
      [2, 4],
      [2, 5],
    ] as const) {
      for (const _ of [1, 2]) press(harness, column, row)
      harness.clock.advance(1000)
    }
    expect(copied(harness)).toEqual([path, path, path])
  })

  it('selects the whole of a line that the pane has wrapped', async () => {
    const harness = createConsoleHarness({ hosts: ['m1'], size: { columns: 22, rows: 10 } })
    await harness.print('m1', 'first\r\n0123456789012345678901234\r\nlast')
    for (const _ of [1, 2, 3]) press(harness, 2, 4)
    expect(copied(harness).at(-1)).toBe('0123456789012345678901234')
    harness.type(`${LEADER}[`)
    harness.type('vky')
    expect(copied(harness).at(-1)).toBe('0123456789012345678901234\nlast')
  })

  it.each([60, 16])('keeps whole lines marked when the pane becomes %i columns wide', async (columns) => {
    const harness = createConsoleHarness({ hosts: ['m1'], size: { columns: 22, rows: 14 } })
    await harness.print('m1', 'first\r\n0123456789012345678901234\r\nnext\r\nlast')
    harness.type(`${LEADER}[`)
    harness.type('vkk')
    harness.console.resize(columns, 14)
    harness.type('y')
    expect(copied(harness)).toEqual(['0123456789012345678901234\nnext\nlast'])
  })

  it('copies nothing else when the marked text is gone', async () => {
    const harness = createConsoleHarness({ hosts: ['m1'], size: { columns: 22, rows: 14 } })
    await harness.print('m1', 'first\r\nlast')
    harness.type(`${LEADER}[`)
    harness.type(mouseBytes('press', 1, 2) + mouseBytes('drag', 4, 2) + mouseBytes('release', 4, 2))
    const before = copied(harness).length
    harness.console.resize(60, 14)
    harness.type('y')
    expect(copied(harness)).toHaveLength(before)
    expect(harness.console.state.notice?.text).toBe('nothing copied: the marked text is gone; mark it again')
  })

  it('belongs to a program that uses the mouse, until the user scrolls back', async () => {
    const harness = createConsoleHarness({ hosts: ['m1'], size: { columns: 60, rows: 10 } })
    await harness.print('m1', '\x1b[?1002;1006htext')
    const drag = mouseBytes('press', 1, 2) + mouseBytes('drag', 4, 2) + mouseBytes('release', 4, 2)
    harness.type(drag)
    expect(copied(harness)).toEqual([])
    expect(harness.got('m1')).not.toBe('')
    harness.type(`${LEADER}[`)
    harness.type(drag)
    expect(copied(harness)).toEqual(['text'])
  })
})

describe('the clipboard', () => {
  it('gets no control characters, and nothing that is too long', () => {
    expect(clipboardSequence('a\x1b[201~b\r\nc\x9b')?.toString()).toBe(
      `\x1b]52;c;${Buffer.from('a[201~b\nc').toString('base64')}\x07`,
    )
    expect(clipboardSequence('x'.repeat(CLIPBOARD_BYTES))).toBeDefined()
    expect(clipboardSequence('x'.repeat(CLIPBOARD_BYTES + 1))).toBeUndefined()
  })
})

describe('the wheel', () => {
  it('scrolls a help to read, and moves in a list of a dialog, but not in a line of input', () => {
    const harness = createConsoleHarness({ size: { columns: 80, rows: 24 } })
    const titleNow = () => {
      const { mode } = harness.console.state
      return mode.kind === 'dialog' ? mode.dialog.title : ''
    }
    harness.type(`${LEADER}?`)
    const before = titleNow()
    harness.type(mouseBytes('wheel-down', 10, 10))
    expect(titleNow()).not.toBe(before)
    harness.type(mouseBytes('wheel-up', 10, 10))
    expect(titleNow()).toBe(before)
    harness.type('q')
    harness.type(`${LEADER}:`)
    const selected = () => {
      const { mode } = harness.console.state
      return mode.kind === 'dialog' ? mode.dialog.lines.findIndex(({ isSelected }) => isSelected) : -1
    }
    const first = selected()
    harness.type(mouseBytes('wheel-down', 10, 10))
    expect(selected()).toBe(first + 3)
  })
})

describe('the grid of commands', () => {
  it('takes clicks on its commands', () => {
    const harness = createConsoleHarness({ size: { columns: 120, rows: 40 } })
    harness.type(LEADER)
    harness.clock.advance(KEY_GRID_MS)
    const grid = keyGrid(harness.console.state)
    const row = grid?.rows.findIndex((cells) => cells.some(({ action }) => action === 'receive-none')) ?? -1
    const cells = grid?.rows[row] ?? []
    const at = cells.findIndex(({ action }) => action === 'receive-none')
    const before = cells.slice(0, at).reduce((sum, { key, text }) => sum + textWidth(key + text), 0)
    press(harness, (grid?.rect.column ?? 0) + 2 + before, (grid?.rect.row ?? 0) + 1 + row)
    expect(harness.receivers()).toBe('')
    expect(harness.console.state.mode.kind).toBe('typing')
  })
})
