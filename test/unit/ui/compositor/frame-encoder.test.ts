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
])('a cluster of %j is written as blanks', (text) => {
  vi.mocked(clusters.clusterText).mockReturnValueOnce(text)
  const to = line('')
  to.words[0] = (CLUSTER_BIT | (1 << 24) | 5) >>> 0
  expect(encode(line(''), to)).toBe('\x1b[1;1H\x1b[0m ')
})

test('a soft hyphen is written as the hyphen that it looks like', () => {
  const grid = line('a b')
  grid.words[WORDS_PER_CELL] = (1 << 24) | 0xad
  expect(encode(line(''), grid)).toContain('a-b')
})

test('a terminal that is not UTF-8 gets ASCII, in the same columns', () => {
  const text = '┌ m1 · 漢! ● ▁█ e\u0301 😀. ┐'
  expect(encode(line(''), line(text), false)).toBe('\x1b[1;1H\x1b[0m+ m1 - ? ! * _# e ? . +')
})

test('only what changed is written, and a short gap is written again', () => {
  expect(encode(line('one two three'), line('one tWo Three'))).toBe('\x1b[1;6H\x1b[0mWo T')
})

test('over a longer gap the cursor moves', () => {
  expect(encode(line('aaaaaaaaaaaaaaaaaaaaaaaa'), line('baaaaaaabaaaaaaaaaaaaaab'))).toBe(
    '\x1b[1;1H\x1b[0mb\x1b[7Cb\x1b[24Gb',
  )
})

test('a row that becomes empty is erased, not written', () => {
  expect(encode(line('x'.repeat(30)), line('x'))).toBe('\x1b[1;2H\x1b[0m\x1b[29X')
})

test('a colour that changes alone costs no reset', () => {
  const to = createCellGrid(40, 1)
  putSpans(to, 0, 0, 40, [
    { text: 'a', style: { ...style, attributes: BOLD, foreground: rgbColour(0x010203) } },
    { text: 'b', style: { ...style, attributes: BOLD } },
    { text: 'c', style },
  ])
  expect(encode(line(''), to)).toBe('\x1b[1;1H\x1b[0;1;38;2;1;2;3ma\x1b[39mb\x1b[0mc')
})

test('an emoji of several code points is written over blanks, and what stands after it once more', () => {
  const from = line('xxxxxxxxxxxxxxxxxxxx')
  const to = line('❤️xxxxxxxxxxxxxxxxxx')
  expect(encode(from, to)).toBe('\x1b[1;1H\x1b[0m  \x1b[1G❤️\x1b[1;3Hxxxxxxxx')
})

test('a grid that equals the other needs nothing', () => {
  expect(encode(line('漢字 é 👩‍👩‍👧'), line('漢字 é 👩‍👩‍👧'))).toBe('')
})

test('half of a wide character that is overwritten leaves no other half', () => {
  const from = line('漢字')
  const to = line('漢字')
  putSpans(to, 1, 0, 1, [{ text: 'x', style }])
  expect(to.words[0]).toBe(line('').words[0])
  expect(encode(from, to)).toBe('\x1b[1;1H\x1b[0m x')
  expect(Array.from(from.words.subarray(0, 4 * WORDS_PER_CELL))).toEqual(
    Array.from(to.words.subarray(0, 4 * WORDS_PER_CELL)),
  )
})

test('half a wide character without its other half is a blank, and the frame comes to its end', () => {
  const to = line('xxxxx')
  to.words.fill(WIDE_TAIL, 2 * WORDS_PER_CELL, 3 * WORDS_PER_CELL)
  const from = line('')
  expect(encode(from, to)).toBe('\x1b[1;1H\x1b[0mxx xx')
  expect(from.words).toEqual(to.words)
})
