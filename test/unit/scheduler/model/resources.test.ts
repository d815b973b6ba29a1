import { expect, test } from 'vitest'
import { milliOf } from '../../../../src/scheduler/model/resources.ts'

test('keeps amounts with three digits exact in milli, whichever way they are rounded', () => {
  for (let milli = 0; milli <= 512_000; milli++) {
    // Not through expect each time: that takes seconds.
    if (milliOf(milli / 1000, 'up') !== milli || milliOf(milli / 1000, 'down') !== milli)
      expect([milli, milliOf(milli / 1000, 'up'), milliOf(milli / 1000, 'down')]).toEqual([milli, milli, milli])
  }
})

test('rounds further digits of a request up and those of a host down', () => {
  expect([milliOf(16.1001, 'up'), milliOf(16.1001, 'down')]).toEqual([16_101, 16_100])
  expect([milliOf(0.0001, 'up'), milliOf(0.0001, 'down')]).toEqual([1, 0])
})
