/** The pen of the emulator, the pen of the session report, and what can be seen. */
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { createScreen } from '../../../src/terminal/headless-screen.ts'
import { changedPen, isSeen, PLAIN_PEN } from '../../../src/terminal/pen.ts'
import { randomRuns } from '../../support/random-runs.ts'

const screen = () => createScreen({ columns: 20, rows: 3, historyLines: 0, handlers: { onReply: () => undefined } })

it('changes as that of the emulator does', () => {
  const value = fc.integer({ min: 0, max: 255 })
  const code = fc.oneof(
    fc.integer({ min: 0, max: 110 }).filter((each) => ![38, 48, 58].includes(each)),
    fc.constant(''),
    fc.tuple(fc.constantFrom(38, 48, 58), value).map(([kind, index]) => `${kind};5;${index}`),
    fc.tuple(fc.constantFrom(38, 48, 58), value).map(([kind, index]) => `${kind}:5:${index}`),
    fc.tuple(fc.constantFrom(38, 48), value, value, value).map(([kind, ...rgb]) => `${kind};2;${rgb.join(';')}`),
    fc.tuple(fc.constantFrom(38, 48), value, value, value).map(([kind, ...rgb]) => `${kind}:2::${rgb.join(':')}`),
    fc.constantFrom('2', '8', '22', '28', '30', '40', '97', '107'),
  )
  const sequences = fc.array(fc.tuple(fc.constantFrom('', '', '', '>', '?'), fc.array(code, { maxLength: 4 })))
  fc.assert(
    fc.property(sequences, (all) => {
      using emulated = screen()
      let pen = PLAIN_PEN
      for (const [prefix, codes] of all) {
        const parameters = `${prefix}${codes.join(';')}`
        emulated.parse(Buffer.from(`\x1b[${parameters}m`))
        pen = changedPen(pen, parameters)
      }
      expect(pen).toEqual(emulated.pen.now)
    }),
    { numRuns: randomRuns(300) },
  )
})

it('is saved and restored with the cursor', () => {
  using emulated = screen()
  emulated.parse(Buffer.from('\x1b[8m\x1b7\x1b[m'))
  expect(emulated.pen).toEqual({ now: PLAIN_PEN, saved: { ...PLAIN_PEN, isConcealed: true } })
})

it('leaves blanks for what nobody can see left of the cursor, over wrapped rows', () => {
  using emulated = screen()
  emulated.parse(Buffer.from('Password:\x1b[8m漢字.\x1b[m then \x1b[31;41mx\x1b[m a\x1b[30mb\x1b[m'))
  expect(emulated.textBeforeCursor()).toBe('Password:漢字. then x ab')
  expect(emulated.seenBeforeCursor('dark')).toBe('Password:      then   a ')
  expect(emulated.seenBeforeCursor('light')).toBe('Password:      then   ab')
})

it('takes text for seen by its luminance, not by single colours', () => {
  const isSeenWith = (parameters: string, backdrop: 'dark' | 'light') =>
    isSeen(changedPen(PLAIN_PEN, parameters), backdrop)
  // A contrast of 1.02, 1.17 and 1.35.
  for (const hidden of ['38;2;0;0;25;48;2;0;0;0', '38;5;17', '2;38;2;60;60;60;48;5;16'])
    expect([hidden, isSeenWith(hidden, 'dark')]).toEqual([hidden, false])
  for (const seen of ['34', '90', '38;5;238', '2', '2;90', '38;2;60;60;60;48;5;16'])
    expect([seen, isSeenWith(seen, 'dark')]).toEqual([seen, true])
  for (const seen of ['33', '93', '32', '36', '90', '2'])
    expect([seen, isSeenWith(seen, 'light')]).toEqual([seen, true])
})

it('shows each of the 256 colours on black or on white', () => {
  for (let index = 0; index < 256; index++) {
    const on = (background: number) => isSeen(changedPen(PLAIN_PEN, `38;5;${index};48;5;${background}`), undefined)
    expect(on(16) || on(231)).toBe(true)
    expect(on(index)).toBe(false)
  }
})
