import { expect, test } from 'vitest'
import { csvCell } from '../../../src/base/csv-cell.ts'

test.each([
  ['=cmd()', "'=cmd()"],
  [' @SUM(1)', "' @SUM(1)"],
  ['a;=cmd', "a;'=cmd"],
  ['-x', "'-x"],
  ['-1+2', "'-1+2"],
  ['-0.5', '-0.5'],
  ['+1e-3', '+1e-3'],
  ['-inf', '-inf'],
  ['a,b', '"a,b"'],
  ['say "x"', '"say ""x"""'],
  ['a\nb', 'a\\x0ab'],
  [-1.23456, '-1.235'],
  [undefined, ''],
])('a cell of %j is %s', (value, cell) => {
  expect(csvCell(value)).toBe(cell)
})
