import { expect, it } from 'vitest'
import { letterOf, lettersOf } from '../../../../src/scheduler/jobs/packing.ts'

it('gives no two jobs one letter, and lets a job keep its letter', () => {
  const first = lettersOf([1, 44, 9])
  expect([...first.values()]).toEqual(['A', 'r', 'I'])
  const second = lettersOf([1, 9, 63, 71], first)
  expect([...second]).toEqual([
    [1, 'A'],
    [9, 'I'],
    [63, 'B'],
    [71, 'J'],
  ])
  // The letter of the job that has ended is free again, but not for one that has another.
  expect([...lettersOf([63, 125, 2], second).values()]).toEqual(['B', 'A', 'C'])
  const all = lettersOf(Array.from({ length: 62 }, (_, index) => index * 62 + 1))
  expect(new Set(all.values()).size).toBe(62)
  expect(lettersOf([...all.keys(), 5000]).get(5000)).toBe(letterOf(5000))
})
