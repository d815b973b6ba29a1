import { describe, expect, it } from 'vitest'
import { createRandomNumbers } from '../../../../src/scheduler/policies/random.ts'
import { importanceOf } from '../../../../src/scheduler/study/importance.ts'
import { makeSpace, parseCondition, parseParameter, pointFrom } from '../../../../src/scheduler/study/space.ts'
import { trialOf } from './some-trials.ts'

const LOSS = { name: 'loss' }
const space = makeSpace([
  ...['lr=log:1e-5:1e-1', 'size=int:10:200', 'opt=adam,sgd'].map(parseParameter),
  parseCondition('opt=sgd momentum=float:0:1'),
])

/** Numbers that repeat nowhere near. */
const unit = (number: number, index: number) => (number * [0.618034, 0.754878, 0.569841, 0.438579][index]! + 0.5) % 1

const trials = (count: number, lossOf: (point: Readonly<Record<string, string>>) => number) =>
  Array.from({ length: count }, (_, number) => {
    const point = pointFrom(space, (index) => unit(number, index))
    return trialOf(number, { loss: String(lossOf(point)) }, { point })
  })

describe('importance', () => {
  it('is with the parameter that decides', () => {
    const shares = importanceOf(
      space,
      trials(300, ({ lr }) => (Math.log10(Number(lr)) + 3) ** 2),
      LOSS,
    )
    expect(shares?.[0]?.name).toBe('lr')
    expect(shares?.[0]?.share).toBeGreaterThan(0.95)
    expect(shares?.reduce((sum, { share }) => sum + share, 0)).toBeCloseTo(1)
    expect(shares?.map(({ trials: count }) => count).toSorted((one, other) => one - other)[3]).toBe(300)
  })

  it('is shared by two that count about the same', () => {
    const both = importanceOf(
      space,
      trials(400, ({ size, opt }) => Number(size) / 190 + (opt === 'sgd' ? 0.6 : 0)),
      LOSS,
    )
    expect(
      both
        ?.slice(0, 2)
        .map(({ name }) => name)
        .toSorted(),
    ).toEqual(['opt', 'size'])
    for (const { share } of both?.slice(0, 2) ?? []) expect(share).toBeGreaterThan(0.3)
  })

  it('of a parameter with a condition is measured where it is part', () => {
    const shares = importanceOf(
      space,
      trials(400, ({ momentum }) => Number(momentum ?? 0.5)),
      LOSS,
    )
    expect(shares?.[0]?.name).toBe('momentum')
    expect(shares?.[0]?.share).toBeGreaterThan(0.8)
    // The half that has it.
    expect(Math.abs((shares?.[0]?.trials ?? 0) - 200)).toBeLessThan(5)
  })

  it('does not change because one trial diverged', () => {
    const steady = trials(100, ({ lr }) => Math.abs(Math.log10(Number(lr)) + 2))
    const diverged = [...steady, ...trials(3, () => 1e30)]
    expect(importanceOf(space, diverged, LOSS)?.[0]?.share).toBeGreaterThan(0.8)
    expect(importanceOf(space, diverged, LOSS)?.[0]?.name).toBe('lr')
  })

  it('is unknown where all is chance', () => {
    const noise = (count: number, seed: number) => {
      const random = createRandomNumbers(seed)
      return importanceOf(
        space,
        trials(count, () => random()),
        LOSS,
      )
    }
    const found = Array.from({ length: 100 }, (_, seed) => noise(200, seed)).filter((shares) => shares !== undefined)
    expect(found.length).toBeLessThan(20)
  })

  it('is unknown for fewer than ten trials, and where all are the same', () => {
    expect(
      importanceOf(
        space,
        trials(9, ({ size }) => Number(size)),
        LOSS,
      ),
    ).toBeUndefined()
    expect(
      importanceOf(
        space,
        trials(10, ({ size }) => Number(size)),
        LOSS,
      ),
    ).toBeDefined()
    expect(
      importanceOf(
        space,
        trials(50, () => 1),
        LOSS,
      ),
    ).toBeUndefined()
    expect(
      importanceOf(
        space,
        trials(50, () => Number.NaN),
        LOSS,
      ),
    ).toBeUndefined()
  })
})
