/** How commands are found: the grid after the leader, the palette and the help. */
import { describe, expect, it } from 'vitest'
import { KEY_GRID_MS, keyGrid } from '../../../../src/ui/keys/key-grid.ts'
import { actionSpecs } from '../../../../src/ui/keys/registry.ts'
import { PAGE_TABS } from '../../../../src/ui/state/console-state.ts'
import { pageKeys } from '../../../../src/ui/tabs/page-keys.ts'
import { createConsoleHarness } from './console-harness.ts'

const LEADER = '\x1d'
const dialogOf = ({ console }: ReturnType<typeof createConsoleHarness>) => {
  const { mode } = console.state
  return mode.kind === 'dialog' ? mode.dialog : undefined
}
const linesOf = (harness: ReturnType<typeof createConsoleHarness>) =>
  dialogOf(harness)?.lines.map(({ text }) => text) ?? []
const selected = (harness: ReturnType<typeof createConsoleHarness>) =>
  dialogOf(harness)?.lines.find(({ isSelected }) => isSelected)

function openGrid(columns: number, rows: number) {
  const harness = createConsoleHarness({ size: { columns, rows } })
  harness.type(LEADER)
  harness.clock.advance(KEY_GRID_MS)
  return harness
}

describe('the grid of commands', () => {
  it.each([
    [80, 24],
    [120, 40],
    [240, 67],
  ])('names all commands by group on %i×%i, 400 ms after the leader and not before', (columns, rows) => {
    const harness = createConsoleHarness({ size: { columns, rows } })
    const { console, clock } = harness
    const grid = () => keyGrid(console.state)
    harness.type(LEADER)
    clock.advance(KEY_GRID_MS - 1)
    expect(grid()).toBeUndefined()
    clock.advance(1)
    const shown = grid()
    const text = shown?.rows.map((row) => row.map((cell) => cell.key + cell.text).join('')).join('\n') ?? ''
    for (const { title, id } of actionSpecs) if (!/^focus-(left|right|up|down)/.test(id)) expect(text).toContain(title)
    expect(text).toMatch(/Receivers.*\n/)
    expect(text).toContain('←↓↑→')
    expect(text).not.toContain('…')
    expect(shown?.rect.row).toBeGreaterThan(0)
    expect((shown?.rect.row ?? 0) + (shown?.rect.height ?? 0)).toBe(rows - 1)
    for (const row of shown?.rows ?? [])
      expect(row.map(({ key, text }) => key + text).join('').length).toBeLessThanOrEqual(columns - 3)
    harness.type('n')
    expect([grid(), harness.receivers()]).toEqual([undefined, ''])
  })

  it.each([
    [80, 20],
    [60, 24],
    [40, 12],
    [24, 8],
  ])('says on %i×%i how many keys do not fit, and where they are', (columns, rows) => {
    const { console } = openGrid(columns, rows)
    const shown = keyGrid(console.state)
    const whole = keyGrid({ ...console.state, columns: 240, rows: 67 })
    const keysIn = (grid = shown) => grid?.rows.flat().filter(({ key }) => key.trim() !== '').length ?? 0
    const hidden = keysIn(whole) - (keysIn() - 1)
    expect(shown?.rows.at(-1)).toMatchObject([{ action: 'help', key: expect.stringMatching(/^\? +$/) }])
    expect(shown?.rows.at(-1)?.[0]?.text.trim()).toBe(`${hidden} more keys`)
    expect(shown?.rect.row).toBeGreaterThan(0)
    expect((shown?.rect.row ?? 0) + (shown?.rect.height ?? 0)).toBe(rows - 1)
  })

  it.each([
    [20, 5],
    [80, 6],
    [10, 3],
  ])('is not shown on %i×%i, where no key fits', (columns, rows) => {
    const { console } = openGrid(columns, rows)
    expect(keyGrid(console.state)).toBeUndefined()
  })

  it('delays no key, and does not appear after the command', () => {
    const harness = createConsoleHarness()
    harness.type(`${LEADER}n`)
    expect(harness.receivers()).toBe('')
    harness.clock.advance(10 * KEY_GRID_MS)
    expect(harness.console.state.mode).toEqual({ kind: 'typing' })
    harness.type(`${LEADER}${LEADER}`)
    harness.type(LEADER)
    harness.clock.advance(KEY_GRID_MS - 1)
    expect(harness.console.state.mode).not.toHaveProperty('showsKeys')
  })

  it('shows a command that has no key, too', () => {
    const harness = createConsoleHarness({ preferences: { keys: { zoom: ['q'] } } })
    harness.type(LEADER)
    harness.clock.advance(KEY_GRID_MS)
    const cells = keyGrid(harness.console.state)?.rows.flat() ?? []
    expect(cells.find(({ action }) => action === 'quit')).toMatchObject({ key: '–    ', tone: 'plain' })
  })

  it('shows commands that cannot be done now apart from the others', () => {
    const harness = createConsoleHarness()
    harness.type(LEADER)
    harness.clock.advance(KEY_GRID_MS)
    const cells = keyGrid(harness.console.state)?.rows.flat() ?? []
    const toneOf = (title: string) => cells.find(({ text }) => text.trim() === title)?.tone
    expect([toneOf('reconnect all'), toneOf('zoom'), toneOf('Hosts')]).toEqual(['disabled', 'plain', 'title'])
  })
})

describe('the palette', () => {
  it.each([
    ['exit', 'quit'],
    ['broadcast', 'select all hosts'],
    ['fullscreen', 'zoom'],
    ['settings', 'settings'],
    ['preferences', 'settings'],
    ['copy', 'copy files'],
    ['scp', 'copy files'],
    ['shortcuts', 'help'],
    ['host set', 'select a host set'],
    ['k8s', 'Jobs'],
    ['study', 'Jobs'],
    ['trial', 'Jobs'],
    ['stack', 'Jobs'],
    // The letters in their order.
    ['rcnal', 'reconnect all · no host is lost'],
  ])('finds by “%s”: %s', (typed, title) => {
    const harness = createConsoleHarness()
    harness.type(`${LEADER}:${typed}`)
    expect(selected(harness)?.text).toBe(title)
  })

  it.each([
    ['iperf', /^bandwidth/],
    ['csv', undefined],
  ])('on the tab Network finds by “%s” what does it, and nothing by letters in a sentence', (typed, title) => {
    const harness = createConsoleHarness()
    harness.type(`${LEADER}3:${typed}`)
    if (title === undefined) expect(linesOf(harness).join()).not.toContain('select the host')
    else expect(selected(harness)?.text).toMatch(title)
  })

  it('shows the keys of a command, why it is disabled, how many more there are, and that nothing matches', () => {
    const harness = createConsoleHarness({ size: { columns: 80, rows: 24 } })
    harness.type(`${LEADER}:`)
    expect(linesOf(harness).at(-1)).toMatch(/^↓ \d+ more$/)
    harness.type('\x1b[6~\x1b[6~')
    expect(linesOf(harness).at(-1)).toMatch(/^↑ \d+ more {3}↓ \d+ more$/)
    harness.type('reconnect all')
    expect(selected(harness)).toMatchObject({ text: 'reconnect all · no host is lost', right: 'Ctrl-] R' })
    harness.type('\x15xyzzy')
    expect(linesOf(harness)).toEqual(['nothing matches “xyzzy”'])
  })

  it('takes what is typed after / where there is no table to filter, so that none of it shows the shells', () => {
    const harness = createConsoleHarness()
    harness.type(`${LEADER}4/m1`)
    expect(dialogOf(harness)).toMatchObject({ title: 'Nothing to search here', input: { text: 'm1' } })
    harness.type('\r')
    expect([harness.console.state.tab, dialogOf(harness), harness.got('m1')]).toEqual(['packing', undefined, ''])
  })

  it.each([
    ['mesh', 'network', /^bandwidth {2}in Network: /],
    ['latency', 'network', /^bandwidth {2}in Network: /],
    ['undo', 'bring-up', /^take down {2}in Bring-up: /],
    ['reload', 'bring-up', /^refresh {2}in Bring-up: /],
  ])('finds by “%s” a key of the tab %s, which it shows without pressing it', (typed, tab, title) => {
    const harness = createConsoleHarness()
    harness.type(`${LEADER}5:${typed}`)
    expect(selected(harness)?.text).toMatch(title)
    harness.type('\r')
    expect([harness.console.state.tab, dialogOf(harness)]).toEqual([tab, undefined])
    expect(harness.console.state.notice?.text).toMatch(/^[mdr]: [A-Z]/)
  })

  it('finds from another tab that a job can be submitted', () => {
    const harness = createConsoleHarness()
    harness.type(`${LEADER}6:submit`)
    expect(selected(harness)?.text).toMatch(/^submit {2}in Jobs: /)
  })

  it('finds and runs the keys of the shown tab', () => {
    const harness = createConsoleHarness()
    for (const { id, key } of PAGE_TABS) {
      harness.type(`${LEADER}${key}`)
      const { state } = harness.console
      const titles = pageKeys[id].flatMap(({ title, isActive }) =>
        title && isActive?.(state) !== false ? [title] : [],
      )
      for (const title of titles) {
        harness.type(`:${title}`)
        expect([id, linesOf(harness).some((line) => line.startsWith(title)), title]).toEqual([id, true, title])
        harness.type('\x1b')
      }
    }
    harness.type(`${LEADER}3:record`)
    harness.type('\x1b')
    expect(harness.console.state.tab).toBe('network')
    // Not a key of this tab now.
    harness.type(':discard plan')
    expect(linesOf(harness)).toEqual(['nothing matches “discard plan”'])
  })
})

describe('the help', () => {
  it('opens at the keys of the current place', () => {
    const harness = createConsoleHarness()
    for (const { key, title } of PAGE_TABS) {
      harness.type(`${LEADER}${key}?`)
      expect(linesOf(harness).slice(0, 8)).toContain(`On the tab ${title}, without the leader`)
      harness.type('\x1b')
    }
    harness.type(`1${LEADER}?`)
    expect(linesOf(harness).slice(0, 8)).toContain('Receivers')
  })

  it('is searched with /, and Esc shows all again before it closes', () => {
    const harness = createConsoleHarness()
    harness.type(`${LEADER}?/zoom`)
    expect(linesOf(harness).slice(0, 2)).toEqual(['Panes', expect.stringMatching(/^z +Fill the screen/)])
    harness.type('xyzzy')
    expect(linesOf(harness)).toEqual(['no key matches “zoomxyzzy”'])
    harness.type('\x15tab jobs array\r')
    expect(linesOf(harness)[0]).toBe('On the tab Jobs, without the leader')
    harness.type('\x1b')
    expect(linesOf(harness).length).toBeGreaterThan(10)
    harness.type('\x1b')
    expect(harness.console.state.mode.kind).toBe('typing')
    expect(harness.got('m1')).toBe('')
  })

  it('says where the settings are', () => {
    const harness = createConsoleHarness()
    harness.type(`${LEADER},`)
    expect(linesOf(harness).join('\n')).toMatch(/preferences\.yaml[\s\S]*^leader +Ctrl-\]$/m)
  })
})

it('shows settings as in preferences.yaml, with units', () => {
  const harness = createConsoleHarness()
  harness.type(`${LEADER},`)
  const text = linesOf(harness).join('\n')
  expect(text).toMatch(/^pane +\{ columns: 40, rows: 8 \}$/m)
  expect(text).toMatch(/^history +1000 lines per host$/m)
  expect(text).toMatch(/^keep_for +8 h$/m)
  expect(text).toMatch(/^macros +none$/m)
})
