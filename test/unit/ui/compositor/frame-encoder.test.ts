import { expect, test, vi } from 'vitest'
import {
  BOLD,
  type CellGrid,
  CLUSTER_BIT,
  createCellGrid,
  rgbColour,
  WIDE_TAIL,
  WORDS_PER_CELL,
} from '../../../../src/terminal/cells.ts'
import * as clusters from '../../../../src/terminal/clusters.ts'
import { putSpans } from '../../../../src/ui/compositor/canvas.ts'
import { createColourMap } from '../../../../src/ui/compositor/colours.ts'
import { FrameEncoder } from '../../../../src/ui/compositor/frame-encoder.ts'
import { style } from './stage.ts'

vi.mock('../../../../src/terminal/clusters.ts', { spy: true })

const line = (text: string, columns = 40): CellGrid => {
  const grid = createCellGrid(columns, 1)
  putSpans(grid, 0, 0, columns, [{ text, style }])
  return grid
}

/** The bytes that make `from` into `to`, with what they act with left visible. */
function encode(from: CellGrid, to: CellGrid, isUtf8 = true): string {
  const encoder = new FrameEncoder(createColourMap('truecolor'), isUtf8)
  encoder.begin()
  encoder.difference(from, to, { column: 0, row: 0, width: to.columns, height: to.rows })
  return encoder.finish().toString()
}

test.each([
  '\x1b[2J',
  'a\x07',
  '\x9b2J',
  'a\u202eb',
  'a\u2028',
  '\ud800',
  '',
])('writes a cluster of %j as blanks', (text) => {
  vi.mocked(clusters.clusterText).mockReturnValueOnce(text)
  const to = line('')
  to.words[0] = (CLUSTER_BIT | (1 << 24) | 5) >>> 0
  expect(encode(line(''), to)).toBe('\x1b[1;1H\x1b[0m ')
})

test('writes a soft hyphen as a hyphen', () => {
  const grid = line('a b')
  grid.words[WORDS_PER_CELL] = (1 << 24) | 0xad
  expect(encode(line(''), grid)).toContain('a-b')
})

test('writes ASCII in the same columns to a terminal without UTF-8', () => {
  const text = '┌ m1 · 漢! ● ▁█ e\u0301 😀. ┐'
  expect(encode(line(''), line(text), false)).toBe('\x1b[1;1H\x1b[0m+ m1 - ? ! * _# e ? . +')
})

test('writes only changes, and short gaps between them', () => {
  expect(encode(line('one two three'), line('one tWo Three'))).toBe('\x1b[1;6H\x1b[0mWo T')
})

test('moves the cursor over a longer gap', () => {
  expect(encode(line('aaaaaaaaaaaaaaaaaaaaaaaa'), line('baaaaaaabaaaaaaaaaaaaaab'))).toBe(
    '\x1b[1;1H\x1b[0mb\x1b[7Cb\x1b[24Gb',
  )
})

test('erases a row that becomes empty', () => {
  expect(encode(line('x'.repeat(30)), line('x'))).toBe('\x1b[1;2H\x1b[0m\x1b[29X')
})

test('changes a single colour without a reset', () => {
  const to = createCellGrid(40, 1)
  putSpans(to, 0, 0, 40, [
    { text: 'a', style: { ...style, attributes: BOLD, foreground: rgbColour(0x010203) } },
    { text: 'b', style: { ...style, attributes: BOLD } },
    { text: 'c', style },
  ])
  expect(encode(line(''), to)).toBe('\x1b[1;1H\x1b[0;1;38;2;1;2;3ma\x1b[39mb\x1b[0mc')
})

test('writes an emoji of several code points over blanks, and then what follows it again', () => {
  const from = line('xxxxxxxxxxxxxxxxxxxx')
  const to = line('❤️xxxxxxxxxxxxxxxxxx')
  expect(encode(from, to)).toBe('\x1b[1;1H\x1b[0m  \x1b[1G❤️\x1b[1;3Hxxxxxxxx')
})

test.each([
  ['an unassigned character, which tmux drops', '\u05cd', ' \x1b[1G\u05cd'],
  ['a symbol that newer terminals show wide', '\u4dc0', ' \x1b[1G\u4dc0'],
  ['a letter with a vowel sign beside it', 'क\u093e', ' \x1b[1Gक\u093e'],
])('writes what follows %s at its own position, and again', (_, text, written) => {
  const from = line('xxxxxxxxxxxxxxxxxxxx')
  const to = line('xxxxxxxxxxxxxxxxxxxx')
  to.words[0] = clusters.cellWord(text, 1)
  expect(encode(from, to)).toBe(`\x1b[1;1H\x1b[0m${written}\x1b[1;2Hxxxxxxxx`)
})

test.each([
  ['a narrow character in a wide cell', '#', 2, '  \x1b[1G#\x1b[1;3Hxxxxxxxx'],
  ['a soft hyphen in a wide cell', '\u00ad', 2, '  \x1b[1G-\x1b[1;3Hxxxxxxxx'],
  ['a wide character in a narrow cell', '漢', 1, ' \x1b[1G漢\x1b[1;2Hxxxxxxxx'],
] as const)('writes what follows %s at its own position, and again', (_, text, width, written) => {
  const to = line('xxxxxxxxxxxxxxxxxxxx')
  to.words[0] = clusters.cellWord(text, width)
  if (width === 2) to.words[WORDS_PER_CELL] = WIDE_TAIL
  expect(encode(line('xxxxxxxxxxxxxxxxxxxx'), to)).toBe(`\x1b[1;1H\x1b[0m${written}`)
})

test('writes again what is before a character that a terminal may not know: marks after it would be put there', () => {
  const from = line('xxxxxxxxxxxxxxxxxxxx')
  const to = line('xxxxxxxxxxxxxxxxxxxx')
  to.words[WORDS_PER_CELL] = clusters.cellWord('\u{1fae8}\u0301', 1)
  expect(encode(from, to)).toBe('\x1b[1;2H\x1b[0m \x1b[2G\u{1fae8}\u0301\x1b[1;1Hx\x1b[Cxxxxxxxx')
})

test('writes no joiner before a character that a terminal may not know: tmux would join the next that it knows', () => {
  const to = line('')
  to.words[0] = clusters.cellWord('👩\u200d\u{1fae8}', 2)
  to.words[WORDS_PER_CELL] = WIDE_TAIL
  expect(encode(line(''), to)).toContain('👩\u{1fae8}')
})

test('writes an emoji that a terminal may not know over blanks', () => {
  expect(encode(line('xxxxxxxxxxxx'), line('🫨xxxxxxxxxx'))).toBe('\x1b[1;1H\x1b[0m  \x1b[1G🫨\x1b[1;3Hxxxxxxxx')
})

test.each(['👨\u200d', `⚕${'\u200d👨'.repeat(20)}`])('writes no joiner at the end of a cell, as of %j', (text) => {
  const to = line('')
  to.words[0] = clusters.cellWord(text, 2)
  to.words[WORDS_PER_CELL] = WIDE_TAIL
  expect(encode(line(''), to)).not.toMatch(/\u200d(?!👨)/u)
})

test('writes what follows an accented letter at its own position, but not again', () => {
  expect(encode(line('xxxxxxxxxxxx'), line('e\u0301xxxxxxxxxxx'))).toBe('\x1b[1;1H\x1b[0me\u0301')
})

test('does not write a character of disputed width again to bridge a gap', () => {
  expect(encode(line('a\u05cdbcd'), line('A\u05cdbcD'))).toBe('\x1b[1;1H\x1b[0mA\x1b[3CD')
})

test('writes nothing for an equal grid', () => {
  expect(encode(line('漢字 é 👩‍👩‍👧'), line('漢字 é 👩‍👩‍👧'))).toBe('')
})

test('leaves no half of a wide character that is overwritten in part', () => {
  const from = line('漢字')
  const to = line('漢字')
  putSpans(to, 1, 0, 1, [{ text: 'x', style }])
  expect(to.words[0]).toBe(line('').words[0])
  expect(encode(from, to)).toBe('\x1b[1;1H\x1b[0m x')
  expect(Array.from(from.words.subarray(0, 4 * WORDS_PER_CELL))).toEqual(
    Array.from(to.words.subarray(0, 4 * WORDS_PER_CELL)),
  )
})

test('writes a blank for half a wide character, and completes the frame', () => {
  const to = line('xxxxx')
  to.words.fill(WIDE_TAIL, 2 * WORDS_PER_CELL, 3 * WORDS_PER_CELL)
  const from = line('')
  expect(encode(from, to)).toBe('\x1b[1;1H\x1b[0mxx xx')
  expect(from.words).toEqual(to.words)
})
