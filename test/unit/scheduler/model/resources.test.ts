import { expect, test } from 'vitest'
import { milliOf } from '../../../../src/scheduler/model/resources.ts'

test('amounts with three digits keep their value in milli, whichever way the rest is rounded', () => {
  for (let milli = 0; milli <= 512_000; milli++) {
    // Not through expect each time: that takes seconds.
    if (milliOf(milli / 1000, 'up') !== milli || milliOf(milli / 1000, 'down') !== milli)
      expect([milli, milliOf(milli / 1000, 'up'), milliOf(milli / 1000, 'down')]).toEqual([milli, milli, milli])
  }
})

test('what a request has beyond three digits is rounded up, what a host has down', () => {
  expect([milliOf(16.1001, 'up'), milliOf(16.1001, 'down')]).toEqual([16_101, 16_100])
  expect([milliOf(0.0001, 'up'), milliOf(0.0001, 'down')]).toEqual([1, 0])
})
