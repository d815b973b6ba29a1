import { expect, it } from 'vitest'
import { formatPercent } from '../../../src/base/format-percent.ts'

it.each([
  [0, '0 %'],
  [0.000_2, '<0.1 %'],
  [0.001_4, '0.1 %'],
  [0.05, '5 %'],
  [0.123, '12 %'],
  [0.988, '99 %'],
  [0.998_6, '99.9 %'],
  [0.999_9, '>99.9 %'],
  [1, '100 %'],
  [2.4, '240 %'],
])('writes %s so that a part is neither nothing nor all: %s', (fraction, text) => {
  expect(formatPercent(fraction)).toBe(text)
})
