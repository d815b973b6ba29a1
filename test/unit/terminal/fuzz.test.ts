/**
 * Random bytes and mutated captures of real programs. A failure prints its seed, which MUSTER_SEED repeats; MUSTER_ROUNDS makes the
 * run longer.
 */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createScreen } from '../../../src/terminal/headless-screen.ts'
import { randomRuns } from '../../support/random-runs.ts'
import { CAPTURES, capture } from './corpus.ts'
import { allText, cellAt, invalidCell, openScreen } from './screen-harness.ts'

const runs = Number(process.env.MUSTER_ROUNDS ?? randomRuns(150))
const seed = Number(process.env.MUSTER_SEED ?? Date.now() % 0x7fff_ffff)
const parameters = { numRuns: runs, seed, interruptAfterTimeLimit: process.env.MUSTER_ROUNDS ? 3_600_000 : 1000 }

/** Pieces of the language of terminals, whole, cut and misplaced. */
const token = fc.oneof(
  fc.constantFrom(
    ...[
      '\x1b',
      '\x1b[',
      '\x1b]',
      '\x1bP',
      '\x1b_',
      '\x1b^',
      '\x1bX',
      '\x1b\\',
      '\x07',
      '\x18',
      '\x1a',
      '\x9b',
      '\x9d',
      '\x90',
      '\x9c',
    ],
    ...[
      '\r',
      '\n',
      '\t',
      '\b',
      '\x0e',
      '\x0f',
      '\x1bc',
      '\x1b7',
      '\x1b8',
      '\x1bM',
      '\x1bD',
      '\x1bE',
      '\x1bH',
      '\x1b#8',
      '\x1b(0',
      '\x1b(B',
    ],
    ...[
      '\x1b[6n',
      '\x1b[c',
      '\x1b[>c',
      '\x1b[?6n',
      '\x1bP$qm\x1b\\',
      '\x1b]11;?\x07',
      '\x1b[18t',
      '\x05',
      '\x1b[?1049h',
      '\x1b[?1049l',
    ],
    ...[
      '漢',
      'e\u0301',
      '\u0301',
      '\u200d',
      '\ufe0f',
      '👨‍👩‍👧',
      '🇩🇪',
      '🇩',
      '\u202e',
      '\u200b',
      '\u00ad',
      '\ufeff',
      'ﷺ',
      '𒐫',
      'ｶ',
      'ก็',
    ],
  ),
  fc
    .tuple(
      fc.constantFrom('', '?', '>', '=', '!'),
      fc.array(
        fc.oneof(fc.nat(3000), fc.constantFrom(0, 1, 2, 25, 38, 48, 5, 1000, 1006, 1047, 2147483647, 99999999)),
        { maxLength: 6 },
      ),
      fc.constantFrom('', ' ', '$', "'", '"', '!'),
      fc.integer({ min: 0x40, max: 0x7e }),
      fc.constantFrom(';', ':'),
    )
    .map(
      ([prefix, values, middle, final, separator]) =>
        `\x1b[${prefix}${values.join(separator)}${middle}${String.fromCharCode(final)}`,
    ),
  fc
    .tuple(fc.constantFrom(0, 1, 2, 4, 7, 8, 9, 10, 52, 104, 112, 133, 1337, 9999), fc.string({ maxLength: 30 }))
    .map(([code, text]) => `\x1b]${code};${text}\x07`),
  fc.string({ maxLength: 40 }),
  fc.string({ unit: 'grapheme', maxLength: 10 }),
)

const bytes = fc.oneof(
  fc.array(token, { minLength: 1, maxLength: 60 }).map((tokens) => Buffer.from(tokens.join(''))),
  fc.uint8Array({ maxLength: 400 }).map((array) => Buffer.from(array)),
  mutatedCapture(),
)

/** A part of a capture with bytes changed, and pieces of it doubled, dropped and put elsewhere. */
function mutatedCapture(): fc.Arbitrary<Buffer> {
  const name = fc.constantFrom(...CAPTURES)
  const edits = fc.array(
    fc.tuple(fc.constantFrom('change', 'drop', 'double', 'token'), fc.nat(10_000), fc.nat(255), token),
    { maxLength: 20 },
  )
  return fc.tuple(name, fc.nat(9000), edits).map(([which, start, list]) => {
    const whole = capture(which)
    let text: Buffer = Buffer.from(whole.subarray(start % whole.length, (start % whole.length) + 3000))
    for (const [kind, place, value, inserted] of list) {
      const at = text.length === 0 ? 0 : place % text.length
      const head = text.subarray(0, at)
      if (kind === 'change' && text.length > 0) text[at] = value
      else if (kind === 'drop') text = Buffer.concat([head, text.subarray(at + value)])
      else if (kind === 'double') text = Buffer.concat([head, text.subarray(at, at + value), text.subarray(at)])
      else if (kind === 'token') text = Buffer.concat([head, Buffer.from(inserted), text.subarray(at)])
    }
    return text
  })
}

const size = fc.tuple(fc.integer({ min: 1, max: 120 }), fc.integer({ min: 1, max: 40 }))
type Step = { bytes?: Buffer; size?: [number, number]; view?: number; isReset?: boolean }
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 10, arbitrary: bytes.map((value) => ({ bytes: value })) },
  { weight: 2, arbitrary: size.map((value) => ({ size: value })) },
  { weight: 1, arbitrary: fc.nat(200).map((view) => ({ view })) },
  { weight: 1, arbitrary: fc.constant({ isReset: true }) },
)

const REPLY = /^\x1b(\[[?>]?[\d;]*(\$y|[Rcn])|P[01]\$r[\d;:"' pqrm]*\x1b\\)$/

describe(`a screen that gets anything (seed ${seed})`, () => {
  it('never throws, keeps its cells valid and its memory bounded, and answers in the words of terminals', () => {
    fc.assert(
      fc.property(fc.array(step, { minLength: 1, maxLength: 8 }), (steps) => {
        const harness = openScreen({ columns: 33, rows: 9, historyLines: 50 })
        for (const { bytes: output, size: wanted, view, isReset } of steps) {
          if (output) harness.feed(output)
          if (wanted) harness.screen.resize(...wanted)
          if (view !== undefined) harness.screen.viewOffset = view
          if (isReset) harness.screen.restart()
          expect(invalidCell(harness.cells())).toBeUndefined()
        }
        const { screen, replies } = harness
        expect(screen.historyLines).toBeLessThanOrEqual(50)
        expect(screen.viewOffset).toBeLessThanOrEqual(screen.historyLines)
        expect(allText(screen).length).toBeLessThanOrEqual(50 + screen.rows)
        expect(screen.visibleText().length).toBe(screen.rows)
        const { cursor } = screen
        expect(
          cursor.column >= 0 && cursor.column < screen.columns && cursor.row >= 0 && cursor.row < screen.rows,
        ).toBe(true)
        for (const reply of replies) expect(reply).toMatch(REPLY)
        screen.search('e')
        screen[Symbol.dispose]()
      }),
      parameters,
    )
  })

  it('copies every row that changed since it was drawn', () => {
    fc.assert(
      fc.property(fc.array(step, { minLength: 1, maxLength: 12 }), (steps) => {
        const harness = openScreen({ columns: 33, rows: 9, historyLines: 50 })
        const { screen } = harness
        let drawn = harness.cells()
        let revision = screen.revision
        for (const { bytes: output, size: wanted, view, isReset } of steps) {
          if (output) harness.feed(output)
          if (wanted) screen.resize(...wanted)
          if (view !== undefined) screen.viewOffset = view
          if (isReset) screen.restart()
          if (wanted) drawn = harness.cells()
          screen.copyInto(drawn, 0, 0, screen.columns, screen.rows, revision)
          revision = screen.revision
          expect(drawn).toEqual(harness.cells())
        }
      }),
      parameters,
    )
  })

  it('shows the same however the bytes were split', () => {
    fc.assert(
      fc.property(bytes, fc.array(fc.integer({ min: 1, max: 50 }), { minLength: 1 }), (output, sizes) => {
        const whole = openScreen().feed(output)
        const split = openScreen()
        for (let at = 0, turn = 0; at < output.length; turn++) {
          const length = sizes[turn % sizes.length] as number
          split.feed(output.subarray(at, at + length))
          at += length
        }
        expect(split.cells()).toEqual(whole.cells())
        expect(split.replies).toEqual(whole.replies)
      }),
      // A character that a control byte cuts, at the end of a chunk and within one.
      { ...parameters, examples: [[Buffer.from([0xc2, 0x18]), [1]]] },
    )
  })

  it('works again after a restart', () => {
    fc.assert(
      fc.property(bytes, (output) => {
        const harness = openScreen().feed(output)
        harness.screen.restart()
        harness.feed('$ ')
        expect(allText(harness.screen).at(-1)).toBe('$')
        const row = harness.screen.visibleText().lastIndexOf('$')
        expect(cellAt(harness.cells(), 0, row)).toEqual({ text: '$', foreground: 0, background: 0, attributes: 0 })
      }),
      parameters,
    )
  })

  it('answers only the host that asked', () => {
    fc.assert(
      fc.property(bytes, (output) => {
        const answers = [0, 0]
        const screens = answers.map((_, index) =>
          createScreen({ columns: 20, rows: 5, historyLines: 0, handlers: { onReply: () => answers[index]!++ } }),
        )
        screens[0]!.parse(output)
        screens[0]!.parse(Buffer.from('\x18\x1b[6n'))
        expect(answers[0]).toBeGreaterThan(0)
        expect(answers[1]).toBe(0)
        for (const screen of screens) screen[Symbol.dispose]()
      }),
      parameters,
    )
  })
})
