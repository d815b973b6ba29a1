import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  bestSoFar,
  bestTrials,
  countTrials,
  improvingTrials,
  metricValue,
  rankTrials,
} from '../../../../src/scheduler/study/front.ts'
import { trialOf } from './some-trials.ts'

const LOSS = { name: 'loss' }
const ACCURACY = { name: 'acc', isMost: true }
const SECONDS = { name: 's' }
const numbers = (trials: readonly { readonly number: number }[]) => trials.map(({ number }) => number)

describe('the best trials', () => {
  const trials = [
    trialOf(0, { loss: '0.5', acc: '0.9' }),
    trialOf(1, { loss: '0.1', acc: '0.2' }, { kind: 'pruned' }),
    trialOf(2, { loss: 'nan', acc: '0.99' }),
    trialOf(3, { loss: '0.3', acc: '0.8' }),
    trialOf(4, {}, { kind: 'open' }),
    trialOf(5, { loss: '0.4', acc: '0.7' }),
    trialOf(6, {}, { kind: 'failed' }),
    trialOf(7, { acc: '0.95' }),
  ]

  it('are of done trials with a number, smallest or largest', () => {
    expect(numbers(bestTrials(trials, [LOSS]))).toEqual([3])
    expect(numbers(bestTrials(trials, [ACCURACY]))).toEqual([2])
    expect(bestTrials(trials, [])).toEqual([])
    expect(bestTrials(trials.slice(4, 5), [LOSS])).toEqual([])
  })

  it('are a front with several metrics', () => {
    expect(numbers(bestTrials(trials, [LOSS, ACCURACY]))).toEqual([3, 0])
  })

  it('come first in the ranking of all trials', () => {
    expect(numbers(rankTrials(trials, [LOSS, ACCURACY]))).toEqual([3, 0, 5, 2, 7, 1, 6, 4])
    expect(numbers(rankTrials(trials, [LOSS]))).toEqual([3, 5, 0, 2, 7, 1, 6, 4])
    expect(numbers(rankTrials(trials, []))).toEqual([0, 2, 3, 5, 7, 1, 6, 4])
  })

  it('are the best so far only where they are better than all before', () => {
    const losses = ['0.5', '0.6', '0.5', 'nan', '0.2', '0.2']
    expect([
      ...improvingTrials(
        losses.map((loss, number) => trialOf(number, { loss })),
        LOSS,
      ),
    ]).toEqual([0, 4])
  })

  it('keep trials that are equal in all metrics', () => {
    const equal = [trialOf(0, { a: '1', s: '2' }), trialOf(1, { a: '1', s: '2' }), trialOf(2, { a: '1', s: '3' })]
    expect(numbers(bestTrials(equal, [{ name: 'a' }, SECONDS]))).toEqual([0, 1])
    expect(numbers(bestTrials(equal, [{ name: 'a' }]))).toEqual([0])
  })

  it('are exactly those that no other beats, with two, three and four metrics', () => {
    const value = fc.integer({ min: 0, max: 6 })
    fc.assert(
      fc.property(
        fc
          .integer({ min: 2, max: 4 })
          .chain((count) => fc.array(fc.array(value, { minLength: count, maxLength: count }))),
        fc.boolean(),
        (rows, isMost) => {
          const metrics = (rows[0] ?? [0, 0]).map((_, index) => ({ name: `m${index}`, isMost }))
          const all = rows.map((row, number) =>
            trialOf(number, Object.fromEntries(row.map((one, index) => [`m${index}`, String(one)]))),
          )
          const sign = isMost ? -1 : 1
          const isBeaten = (row: readonly number[]) =>
            rows.some(
              (other) =>
                other.every((one, index) => sign * one <= sign * (row[index] ?? 0)) &&
                other.some((one, index) => one !== row[index]),
            )
          expect(new Set(numbers(bestTrials(all, metrics)))).toEqual(
            new Set(rows.flatMap((row, number) => (isBeaten(row) ? [] : [number]))),
          )
        },
      ),
    )
  })

  it('so far are those at each end of a trial, in the order of ends', () => {
    const ends = [
      trialOf(0, { loss: '0.5' }, { endedMs: 30 }),
      trialOf(1, { loss: '0.7' }, { endedMs: 10 }),
      trialOf(2, { loss: '0.1' }, { endedMs: 5, kind: 'pruned' }),
      trialOf(3, { loss: '0.6' }, { endedMs: 40 }),
    ]
    expect(bestSoFar(ends, LOSS).map(({ trial, value, best }) => [trial.number, value, best])).toEqual([
      [1, 0.7, 0.7],
      [0, 0.5, 0.5],
      [3, 0.6, 0.5],
    ])
    expect(bestSoFar(ends, { ...LOSS, isMost: true }).map(({ best }) => best)).toEqual([0.7, 0.7, 0.7])
  })

  it('are counted', () => {
    expect(countTrials(trials)).toEqual({ open: 1, done: 5, failed: 1, cancelled: 0, pruned: 1 })
    expect(metricValue(trialOf(0, { loss: '-inf' }), LOSS)).toBe(Number.NEGATIVE_INFINITY)
    expect(metricValue(trialOf(0, { loss: 'x' }), LOSS)).toBeUndefined()
  })
})
