/** What a clumsy user does, and what happens at the wrong moment: nothing of it may reach a host or a question unmeant. */
import { describe, expect, test } from 'vitest'
import { headerBars } from '../../../../src/ui/console/header.ts'
import { paneView } from '../../../../src/ui/console/pane-view.ts'
import type { DialogFactory } from '../../../../src/ui/dialogs/dialog.ts'
import { themes } from '../../../../src/ui/theme/theme.ts'
import { createStand, type Stand } from './stand.ts'

const LEADER = '\x1d'

/** A question from outside; what it was told is kept. */
function askQuestion(stand: Stand): { readonly keys: string[]; readonly isShown: () => boolean } {
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
  stand.console.dialogs.openWhenQuiet(make)
  return { keys, isShown: () => isShown }
}

describe('a question that opens by itself', () => {
  test('waits after a command as after typing', () => {
    const stand = createStand()
    stand.type(`${LEADER}a`)
    stand.clock.advance(700)
    stand.type(LEADER)
    stand.type('n')
    const question = askQuestion(stand)
    stand.clock.advance(700)
    expect(question.isShown()).toBe(false)
    stand.clock.advance(200)
    expect(question.isShown()).toBe(true)
  })

  test('does not accept the keys that follow the answer of another dialog', () => {
    const stand = createStand()
    stand.type(`${LEADER}/`)
    const question = askQuestion(stand)
    stand.clock.advance(5000)
    stand.type('m2\r')
    stand.type('ls')
    expect(question.keys).toEqual([])
    expect(stand.got('m2')).toBe('ls')
  })

  test('waits after a paste', () => {
    const stand = createStand()
    stand.type('\x1b[200~uptime\x1b[201~')
    const question = askQuestion(stand)
    expect(question.isShown()).toBe(false)
  })

  test('restores the scroll mode that it interrupted', async () => {
    const stand = createStand()
    await stand.print('m1', 'x\r\n'.repeat(100))
    stand.type(`${LEADER}[`)
    stand.type('g')
    stand.clock.advance(1000)
    const question = askQuestion(stand)
    expect(question.isShown()).toBe(true)
    stand.type('\r')
    expect(stand.console.state.mode).toMatchObject({ kind: 'scroll', host: 'm1' })
    stand.type('q')
    expect(stand.got('m1')).toBe('')
  })

  test('does not come between the leader and its key', () => {
    const stand = createStand()
    stand.type(LEADER)
    const question = askQuestion(stand)
    stand.clock.advance(5000)
    stand.type('n')
    expect(question.keys).toEqual([])
    expect(stand.receivers()).toBe('')
  })
})

describe('a bell', () => {
  const badges = ({ console }: Stand): string =>
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
    const stand = createStand()
    await stand.print('m1', '\x07')
    expect(badges(stand)).toContain('♪')
    stand.clock.advance(5000)
    expect(badges(stand)).not.toContain('♪')
  })
})

describe('the mouse', () => {
  const press = (column: number, row: number) => `\x1b[<0;${column};${row}M`
  const drag = (column: number, row: number) => `\x1b[<32;${column};${row}M`
  const release = (column: number, row: number) => `\x1b[<0;${column};${row}m`

  test('belongs to the pane where the button was pressed until it is released', async () => {
    const stand = createStand({ hosts: ['m1', 'm2'], size: { columns: 120, rows: 20 } })
    for (const host of ['m1', 'm2']) await stand.print(host, '\x1b[?1002h\x1b[?1006h')
    stand.type(press(5, 5) + drag(6, 5) + drag(80, 5) + release(80, 5))
    const { width } = stand.console.arrangement.placed[0]?.rect ?? { width: 0 }
    expect(stand.got('m1')).toBe(`\x1b[<0;4;3M\x1b[<32;5;3M\x1b[<32;${width - 2};3M\x1b[<0;${width - 2};3m`)
    expect(stand.got('m2')).toBe('')
  })

  test('that was pressed outside a program does not act on it when it is dragged there', async () => {
    const stand = createStand({ hosts: ['m1', 'm2'], size: { columns: 120, rows: 20 } })
    await stand.print('m2', '\x1b[?1002h\x1b[?1006h')
    stand.type(press(5, 5) + drag(80, 5) + release(80, 5))
    expect(stand.got('m2')).toBe('')
  })
})

describe('a narrow terminal', () => {
  test.each([80, 60, 40, 30, 20, 14])('shows the receivers at %i columns', (columns) => {
    const stand = createStand({ size: { columns, rows: 10 }, hosts: ['m1', 'm2', 'm3'] })
    const { left, right } = headerBars(stand.console.state, themes.dark, stand.console.arrangement)
    const text = [...left, ...right].map((part) => part.text).join('')
    expect(text.length).toBeLessThanOrEqual(columns)
    expect(text).toMatch(/INTO ALL 3/)
    stand.type(`${LEADER}n`)
    const none = headerBars(stand.console.state, themes.dark, stand.console.arrangement)
    expect(none.left.map((part) => part.text).join('')).toMatch(/NO HOST/)
  })
})

describe('zooming into a folded pane', () => {
  test('gives all of its hosts the same size, so that they stay equal', async () => {
    const stand = createStand({ size: { columns: 120, rows: 40 } })
    for (const host of ['m1', 'm2', 'm3', 'm4']) await stand.print(host, `${'x'.repeat(150)}\r\n$ `)
    await stand.print('m4', 'other')
    stand.type(`${LEADER}=`)
    stand.clock.advance(1000)
    stand.type(`${LEADER}z`)
    stand.clock.advance(1000)
    expect(stand.console.arrangement.placed.map(({ hosts }) => hosts.join())).toEqual(['m1,m2,m3'])
    expect(stand.fleet.sizes.get('m3')).toEqual(stand.fleet.sizes.get('m1'))
    expect(stand.fleet.sizes.get('m4')).not.toEqual(stand.fleet.sizes.get('m1'))
  })
})
