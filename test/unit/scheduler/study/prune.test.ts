import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { pruneReason } from '../../../../src/scheduler/study/prune.ts'
import type { PruneSpec, TrialStep } from '../../../../src/scheduler/study/study.ts'

const LOSS = { name: 'loss' }
const ACCURACY = { name: 'acc', isMost: true }
const median: PruneSpec = { rule: 'median', stepMetric: 'step', fromStep: 0, fromTrials: 1 }
const halving: PruneSpec = { rule: 'halving', factor: 3, stepMetric: 'epoch', fromStep: 1, fromTrials: 1 }

const steps = (...values: readonly (readonly [number, number])[]): readonly TrialStep[] =>
  values.map(([step, value]) => ({ step, value }))
const at = (step: number, ...values: readonly number[]) => values.map((value) => steps([step, value]))

describe('the median rule', () => {
  it('compares a trial that is ahead of the others where enough of them have been', () => {
    const others = [...at(1, 1, 2, 3), steps([1, 5], [5, 4])]
    const rule = { ...median, fromTrials: 4 }
    expect(pruneReason(rule, LOSS, steps([1, 8], [9, 7]), others)).toBe(
      'at step 9 its loss 7 is worse than the median 2.5 of 4 trials at step 1',
    )
    expect(pruneReason(rule, LOSS, steps([1, 8], [9, 2]), others)).toBeUndefined()
    expect(pruneReason({ ...rule, fromStep: 2 }, LOSS, steps([1, 8], [9, 7]), others)).toBeUndefined()
    expect(pruneReason({ ...rule, fromTrials: 5 }, LOSS, steps([1, 8], [9, 7]), others)).toBeUndefined()
    expect(pruneReason({ ...rule, fromTrials: 1 }, LOSS, steps([1, 8], [9, 7]), others)).toBe(
      'at step 9 its loss 7 is worse than the median 4 of 1 trial at step 5',
    )
  })

  it('stops a trial whose best value is worse than the median of the others at its step', () => {
    const others = at(12, 0.3, 0.4, 0.5, 0.5, 0.54, 0.6, 0.7, 0.8)
    expect(pruneReason(median, LOSS, steps([6, 0.95], [12, 0.91]), others)).toBe(
      'at step 12 its loss 0.91 is worse than the median 0.52 of 8 trials',
    )
    expect(pruneReason(median, LOSS, steps([6, 0.5], [12, 0.91]), others)).toBeUndefined()
    expect(pruneReason(median, ACCURACY, steps([12, 0.91]), others)).toBeUndefined()
    expect(pruneReason(median, ACCURACY, steps([12, 0.2]), others)).toBe(
      'at step 12 its acc 0.2 is worse than the median 0.52 of 8 trials',
    )
  })

  it('compares with the last value at or before the step, of those that reached it', () => {
    const others = [steps([1, 9], [10, 0.5], [20, 0.1]), steps([1, 9], [11, 0]), steps([5, 0.7], [12, 0.7])]
    expect(pruneReason(median, LOSS, steps([12, 0.65]), others)).toBe(
      'at step 12 its loss 0.65 is worse than the median 0.6 of 2 trials',
    )
  })

  it('waits for its first step and for enough others', () => {
    const bad = steps([12, 9])
    expect(pruneReason({ ...median, fromStep: 13 }, LOSS, bad, at(12, 1, 1, 1))).toBeUndefined()
    expect(pruneReason({ ...median, fromTrials: 4 }, LOSS, bad, at(12, 1, 1, 1))).toBeUndefined()
    expect(pruneReason({ ...median, fromTrials: 0 }, LOSS, bad, [])).toBeUndefined()
    expect(pruneReason(median, LOSS, [], at(12, 1))).toBeUndefined()
  })

  it('says nothing again before the next step', () => {
    expect(pruneReason(median, LOSS, steps([12, 9]), at(12, 1), 12)).toBeUndefined()
    expect(pruneReason(median, LOSS, steps([12, 9], [13, 9]), at(13, 1), 12)).toBeDefined()
  })

  it('stops a trial that has only printed what is no number, and does not count such others', () => {
    expect(pruneReason(median, LOSS, steps([12, Number.NaN]), at(12, 1, Number.NaN))).toBe(
      'at step 12 its loss not a number is worse than the median 1 of 1 trial',
    )
    expect(pruneReason(median, LOSS, steps([12, Number.NaN]), at(12, Number.NaN))).toBeUndefined()
    expect(pruneReason(median, LOSS, steps([1, Number.POSITIVE_INFINITY]), at(1, 5))).toContain('its loss ∞ is worse')
  })

  it('never stops a trial that is best at its last step', () => {
    const value = fc.double({ min: -1e6, max: 1e6, noNaN: true })
    fc.assert(
      fc.property(fc.array(value, { minLength: 1 }), value, fc.boolean(), (others, own, isMost) => {
        const best = isMost ? Math.max(own, ...others) : Math.min(own, ...others)
        expect(pruneReason(median, { name: 'x', isMost }, steps([1, best]), at(1, ...others))).toBeUndefined()
      }),
    )
  })
})

describe('halving', () => {
  it('keeps the best third of those that reached a rung', () => {
    const others = at(3, 0.1, 0.2, 0.3, 0.4, 0.5)
    expect(pruneReason(halving, LOSS, steps([3, 0.15]), others)).toBeUndefined()
    expect(pruneReason(halving, LOSS, steps([3, 0.25]), others)).toBe(
      'at epoch 3 its loss 0.25 ranks 3 of 6 trials; the best 2 continue',
    )
    expect(pruneReason(halving, ACCURACY, steps([3, 0.45]), others)).toBeUndefined()
  })

  it('judges only at rungs, by the first value at or after each, and each rung once', () => {
    const others = at(3, 0.1, 0.2, 0.3)
    expect(pruneReason(halving, LOSS, steps([2, 9]), at(2, 0.1))).toContain('at epoch 2')
    expect(pruneReason(halving, LOSS, steps([1, 0], [4, 9]), others)).toContain('at epoch 4 its loss 9')
    expect(pruneReason(halving, LOSS, steps([1, 0], [4, 9], [5, 9]), others, 4)).toBeUndefined()
    // Another trial that is still before the rung is no competitor.
    expect(pruneReason(halving, LOSS, steps([1, 0], [3, 9]), at(2, 1, 2, 3))).toBeUndefined()
  })

  it('lets the first trials pass a rung', () => {
    expect(pruneReason({ ...halving, fromTrials: 4 }, LOSS, steps([1, 9]), at(1, 0.1, 0.2, 0.3))).toBeUndefined()
    expect(pruneReason({ ...halving, fromTrials: 4 }, LOSS, steps([1, 9]), at(1, 0.1, 0.2, 0.3, 0.4))).toBeDefined()
    expect(pruneReason({ ...halving, fromTrials: 0 }, LOSS, steps([1, 9]), [])).toBeUndefined()
  })

  it('ends with steps that start at 0', () => {
    expect(pruneReason({ ...halving, fromStep: 0 }, LOSS, steps([0, 9], [1e9, 9]), at(1e9, 1, 2, 3))).toBeDefined()
  })

  it('ends with a step that is larger than any rung', () => {
    const far = steps([1, 0], [Number.MAX_VALUE, 9])
    expect(pruneReason(halving, LOSS, far, at(1, 1, 2, 3))).toBeUndefined()
    const infinite = steps([1, 0], [Number.POSITIVE_INFINITY, 9])
    expect(pruneReason(halving, LOSS, infinite, at(1, 1, 2, 3))).toBeUndefined()
  })

  it('leaves about a third of many trials that reach a rung one after the other', () => {
    const values = Array.from({ length: 300 }, (_, index) => (index * 7919) % 300)
    const kept = values.filter(
      (value, index) =>
        pruneReason({ ...halving, fromTrials: 3 }, LOSS, steps([1, value]), at(1, ...values.slice(0, index))) ===
        undefined,
    )
    expect(kept.length).toBeGreaterThan(85)
    expect(kept.length).toBeLessThan(125)
  })
})
