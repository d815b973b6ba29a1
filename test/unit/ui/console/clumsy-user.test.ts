/** What a clumsy user does, and what happens at the wrong moment: nothing of it may reach a host or a question unmeant. */
import { describe, expect, test } from 'vitest'
import { themes } from '../../../../src/ui/compositor/scene.ts'
import { headerBars } from '../../../../src/ui/console/header.ts'
import { paneView } from '../../../../src/ui/console/pane-view.ts'
import type { DialogFactory } from '../../../../src/ui/dialogs/dialog.ts'
import { type ConsoleHarness, createConsoleHarness } from './console-harness.ts'

const LEADER = '\x1d'

/** A question from outside; the answer is kept. */
function askQuestion(harness: ConsoleHarness): { readonly keys: string[]; readonly isShown: () => boolean } {
  const keys: string[] = []
  let isShown = false
  const make: DialogFactory = ({ onClose }) => {
    isShown = true
    return {
      view: () => ({ id: 'credentials', title: '', lines: [], keys: [] }),
      key: (_label, event) => {
        keys.push(event.key.name)
        if (event.key.name === 'enter') onClose()
      },
      paste: () => undefined,
      cancel: onClose,
    }
  }
  harness.console.dialogs.openWhenQuiet(make)
  return { keys, isShown: () => isShown }
}

describe('a question that opens by itself', () => {
  test('waits after a command as after typing', () => {
    const harness = createConsoleHarness()
    harness.type(`${LEADER}a`)
    harness.clock.advance(700)
    harness.type(LEADER)
    harness.type('n')
    const question = askQuestion(harness)
    harness.clock.advance(700)
    expect(question.isShown()).toBe(false)
    harness.clock.advance(200)
    expect(question.isShown()).toBe(true)
  })

  test('does not accept the keys that follow the answer of another dialog', () => {
    const harness = createConsoleHarness()
    harness.type(`${LEADER}/`)
    const question = askQuestion(harness)
    harness.clock.advance(5000)
    harness.type('m2\r')
    harness.type('ls')
    expect(question.keys).toEqual([])
    expect(harness.got('m2')).toBe('ls')
  })

  test('waits after a paste', () => {
    const harness = createConsoleHarness()
    harness.type('\x1b[200~uptime\x1b[201~')
    const question = askQuestion(harness)
    expect(question.isShown()).toBe(false)
  })

  test('restores the scroll mode that it interrupted', async () => {
    const harness = createConsoleHarness()
    await harness.print('m1', 'x\r\n'.repeat(100))
    harness.type(`${LEADER}[`)
    harness.type('g')
    harness.clock.advance(1000)
    const question = askQuestion(harness)
    expect(question.isShown()).toBe(true)
    harness.type('\r')
    expect(harness.console.state.mode).toMatchObject({ kind: 'scroll', host: 'm1' })
    harness.type('q')
    expect(harness.got('m1')).toBe('')
  })

  test('does not come between the leader and its key', () => {
    const harness = createConsoleHarness()
    harness.type(LEADER)
    const question = askQuestion(harness)
    harness.clock.advance(5000)
    harness.type('n')
    expect(question.keys).toEqual([])
    expect(harness.receivers()).toBe('')
  })
})

describe('a bell', () => {
  const badges = ({ console }: ConsoleHarness): string =>
    paneView({
      state: console.state,
      theme: themes.dark,
      hosts: ['m1'],
      rect: { column: 0, row: 0, width: 40, height: 10 },
      screen: console.views.screen('m1'),
      highlights: [],
    })
      .badges.map(({ text }) => text)
      .join('')

  test('is shown, and disappears after an idle moment', async () => {
    const harness = createConsoleHarness()
    await harness.print('m1', '\x07')
    expect(badges(harness)).toContain('♪')
    harness.clock.advance(5000)
    expect(badges(harness)).not.toContain('♪')
  })
})

describe('the mouse', () => {
  const press = (column: number, row: number) => `\x1b[<0;${column};${row}M`
  const drag = (column: number, row: number) => `\x1b[<32;${column};${row}M`
  const release = (column: number, row: number) => `\x1b[<0;${column};${row}m`

  test('belongs to the pane where the button was pressed until it is released', async () => {
    const harness = createConsoleHarness({ hosts: ['m1', 'm2'], size: { columns: 120, rows: 20 } })
    for (const host of ['m1', 'm2']) await harness.print(host, '\x1b[?1002h\x1b[?1006h')
    harness.type(press(5, 5) + drag(6, 5) + drag(80, 5) + release(80, 5))
    const { width } = harness.console.arrangement.placed[0]?.rect ?? { width: 0 }
    expect(harness.got('m1')).toBe(`\x1b[<0;4;3M\x1b[<32;5;3M\x1b[<32;${width - 2};3M\x1b[<0;${width - 2};3m`)
    expect(harness.got('m2')).toBe('')
  })

  test('that was pressed outside a program does not act on it when it is dragged there', async () => {
    const harness = createConsoleHarness({ hosts: ['m1', 'm2'], size: { columns: 120, rows: 20 } })
    await harness.print('m2', '\x1b[?1002h\x1b[?1006h')
    harness.type(press(5, 5) + drag(80, 5) + release(80, 5))
    expect(harness.got('m2')).toBe('')
  })
})

describe('a narrow terminal', () => {
  test.each([80, 60, 40, 30, 20, 14])('shows the receivers at %i columns', (columns) => {
    const harness = createConsoleHarness({ size: { columns, rows: 10 }, hosts: ['m1', 'm2', 'm3'] })
    const { left, right } = headerBars(harness.console.state, themes.dark, harness.console.arrangement)
    const text = [...left, ...right].map((part) => part.text).join('')
    expect(text.length).toBeLessThanOrEqual(columns)
    expect(text).toMatch(/INTO ALL 3/)
    harness.type(`${LEADER}n`)
    const none = headerBars(harness.console.state, themes.dark, harness.console.arrangement)
    expect(none.left.map((part) => part.text).join('')).toMatch(/NO HOST/)
  })
})

describe('zooming into a folded pane', () => {
  test('gives all of its hosts the same size, so that they stay equal', async () => {
    const harness = createConsoleHarness({ size: { columns: 120, rows: 40 } })
    for (const host of ['m1', 'm2', 'm3', 'm4']) await harness.print(host, `${'x'.repeat(150)}\r\n$ `)
    await harness.print('m4', 'other')
    harness.type(`${LEADER}=`)
    harness.clock.advance(1000)
    harness.type(`${LEADER}z`)
    harness.clock.advance(1000)
    expect(harness.console.arrangement.placed.map(({ hosts }) => hosts.join())).toEqual(['m1,m2,m3'])
    expect(harness.fleet.sizes.get('m3')).toEqual(harness.fleet.sizes.get('m1'))
    expect(harness.fleet.sizes.get('m4')).not.toEqual(harness.fleet.sizes.get('m1'))
  })
})
