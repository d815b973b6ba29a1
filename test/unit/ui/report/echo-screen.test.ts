/** The part of a terminal that finds echoes, against the emulator. */
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { createScreen } from '../../../../src/terminal/headless-screen.ts'
import { PLAIN_PEN } from '../../../../src/terminal/pen.ts'
import { EchoScreen } from '../../../../src/ui/report/echo-screen.ts'
import { randomRuns } from '../../../support/random-runs.ts'

const [COLUMNS, ROWS] = [12, 4]
const PIECES = /\x1b\][^\x07\x18\x1a\x1b]*(?:\x07|\x1b\\)|\x1b\[([0-?]*)[ -/]*([@-~])|\x1b[ -/]*[0-~]|[\s\S]/gu

const parameter = fc.constantFrom('', '0', '1', '2', '3', '5', '11', '12', '40')
const sequences = fc
  .tuple(parameter, fc.constantFrom(...'ABCDEFGHIJKLMPSTXZ@`abdefgrsu'), fc.boolean())
  .map(([count, final, hasTwo]) => `\x1b[${count}${hasTwo && final === 'H' ? ';3' : ''}${final}`)
const others = fc.constantFrom(
  ...[
    '\r',
    '\b',
    '\n',
    '\r\n',
    '\t',
    '\v',
    '\x0e',
    '\x0f',
    '\x07',
    '\x1b7',
    '\x1b8',
    '\x1bM',
    '\x1bD',
    '\x1bE',
    '\x1bc',
  ],
  ...[
    '\x1b#8',
    '\x1bH',
    '\x1b(0',
    '\x1b(B',
    '\x1b[4h',
    '\x1b[4l',
    '\x1b[?7l',
    '\x1b[?6h',
    '\x1b[?1049h',
    '\x1b[?1049l',
  ],
  ...['\x1b[8m', '\x1b[m', '\x1b[30;40m', '\x1b[31m', '\x1b]0;x\x07', '\x1b[1 @', '\x1b[?25l', '\x1b[2 q', '\x1b[!p'],
)
const text = fc.oneof(
  fc.constantFrom('語', '한', 'é', 'e\u0301', '⚠\ufe0f', '🐳', '👩\u200d💻', '🇩🇪', '❯', '\ue0b0', '│'),
  fc.string({ unit: fc.constantFrom(...'abcdefgh'), minLength: 1, maxLength: 14 }),
)
const output = fc.array(fc.oneof({ weight: 4, arbitrary: text }, { weight: 4, arbitrary: sequences }, others), {
  maxLength: 30,
})
const size = fc.record({ columns: fc.integer({ min: 2, max: 20 }), rows: fc.integer({ min: 1, max: 7 }) })
const outputWithSizes = fc
  .tuple(output, fc.array(fc.tuple(fc.nat(30), size), { maxLength: 4 }))
  .map(([pieces, sizes]) =>
    sizes.reduce<(string | { columns: number; rows: number })[]>(
      (sum, [at, each]) => sum.toSpliced(at, 0, each),
      pieces,
    ),
  )

/** What programs before the line have left behind. */
const earlier = fc.array(
  fc.constantFrom('\x0e', '\x0f', '\x1b(0', '\x1b)0', '\x1b(B', '\x1b[4C\x1bH', '\x1b[3g', '\x1b[4h'),
  { maxLength: 3 },
)

it('never takes for text what the emulator does not show, also after its size has changed', () => {
  const place = { row: fc.integer({ min: 0, max: ROWS - 1 }), column: fc.integer({ min: 0, max: COLUMNS - 1 }) }
  fc.assert(
    fc.property(outputWithSizes, place.row, place.column, earlier, (pieces, row, column, before) => {
      using emulated = createScreen({
        ...{ columns: COLUMNS, rows: ROWS, historyLines: 1000, handlers: { onReply: () => undefined } },
      })
      emulated.parse(Buffer.from(`${before.join('')}\x1b[${row + 1};${column + 1}H`))
      const { isOrdinary, hasPlainTabs } = emulated
      const size = { rows: ROWS, row, column }
      const echo = new EchoScreen(COLUMNS, ' '.repeat(column), {
        ...{ seen: '', pen: PLAIN_PEN, savedPen: PLAIN_PEN, backdrop: 'dark', size, isOrdinary, hasPlainTabs },
      })
      const losesHistory = pieces.some((piece) => piece === '\x1b[3J' || piece === '\x1b[?1049h')
      for (const piece of pieces) {
        if (typeof piece !== 'string') {
          emulated.resize(piece.columns, piece.rows)
          echo.resize(piece.columns, piece.rows)
          continue
        }
        emulated.parse(Buffer.from(piece))
        for (const [token, parameters, final] of piece.matchAll(PIECES)) {
          if (token === '\n') echo.lineFeed()
          else echo.print(token, parameters, final)
        }
        const mostKept = losesHistory ? emulated.columns * (emulated.rows - 1) : Number.POSITIVE_INFINITY
        if (echo.text.length > mostKept) continue
        const shown = emulated.allText().join('').replaceAll(' ', '')
        for (const word of echo.text.split(' ')) expect(shown).toContain(word)
      }
    }),
    {
      numRuns: randomRuns(2000),
      examples: [
        // The same size, with the cursor behind the last column.
        [['\r', 'aaa', 'aaaaaaaea', { columns: COLUMNS, rows: ROWS }, '語'], 0, 0, []],
        // A sequence that is not modelled has moved the cursor to the last column, where a wide character wraps.
        [[{ columns: 7, rows: 1 }, '\x1b[I', '語', '\x1b[G', 'a', { columns: 2, rows: 1 }, 'a'], 0, 0, []],
        // After a flag, whose width is not known, the row may wrap, or be longer than what is known of it.
        [['\x1b[11G', 'aaa', 'aaaaa', '語', '\x1b[B', '🇩🇪', 'aaa', '\x1b[3f', '語'], 1, 0, []],
        [['🇩🇪', 'a', 'a', '\x1b[G', '語', { columns: 3, rows: 1 }, '語'], 0, 0, []],
        // The alternate screen gets another size.
        [
          [{ columns: 12, rows: 2 }, '語', '\x1b[?1049h', 'a', '\x1b[F', { columns: 2, rows: 4 }, 'a', 'aaaaag'],
          1,
          10,
          [],
        ],
        // A flag that may stand in the row below.
        [['🇩🇪', '\x1b[`', '語', '\x1b[A', 'a'], 0, 11, []],
        // A line feed to a row that is no longer known, and continues the one above.
        [
          [
            ...[{ columns: 10, rows: 1 }, { columns: 10, rows: 3 }, '語', '語', 'aa', '\x1b[;3H', '\n', 'aa'],
            ...[{ columns: 7, rows: 3 }, '語', '👩\u200d💻'],
          ],
          2,
          9,
          [],
        ],
        // Erases nothing.
        [['a', '\x1b[`', '語', '\x1b[5J', '語', { columns: 5, rows: 1 }, 'h'], 0, 5, []],
        // A line below the cursor wraps.
        [['aa', '\x1b[12A', '\r\n', 'a', { columns: 13, rows: 4 }, 'e'], 2, 11, []],
      ],
    },
  )
})
