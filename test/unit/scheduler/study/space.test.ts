import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { askNext, brute, METHODS, untriedNear } from '../../../../src/scheduler/study/ask.ts'
import {
  canonicalPoint,
  canonicalText,
  makeSpace,
  type Parameter,
  parseCondition,
  parseParameter,
  pointAt,
  pointFrom,
  pointKey,
  type Space,
  sizeOf,
} from '../../../../src/scheduler/study/space.ts'
import { randomRuns } from '../../../support/random-runs.ts'

const spaceOf = (params: readonly string[], conditions: readonly string[] = []): Space =>
  makeSpace([...params.map(parseParameter), ...conditions.map(parseCondition)])

const all = (space: Space) => Array.from({ length: sizeOf(space) }, (_, index) => pointAt(space, index))

describe('a space', () => {
  it('counts in exact decimals: 0.1 to 0.3 by 0.1 has three values', () => {
    expect(all(spaceOf(['lr=float:0.1:0.3:0.1'])).map((point) => point?.lr)).toEqual(['0.1', '0.2', '0.3'])
    expect(all(spaceOf(['size=int:10:35:10'])).map((point) => point?.size)).toEqual(['10', '20', '30'])
    expect(sizeOf(spaceOf(['a=int:1:4', 'b=x,y']))).toBe(8)
    expect(sizeOf(spaceOf(['lr=log:1e-5:1e-1']))).toBe(Number.POSITIVE_INFINITY)
  })

  it('has parameters that are there only with a choice', () => {
    const space = spaceOf(['opt=adam,sgd'], ['opt=sgd momentum=float:0:0.9:0.3'])
    expect(all(space)).toEqual([
      { opt: 'adam' },
      ...['0', '0.3', '0.6', '0.9'].map((momentum) => ({ opt: 'sgd', momentum })),
    ])
    expect(canonicalPoint(space, { opt: 'adam', momentum: '0.3' })).toEqual({ opt: 'adam' })
  })

  it.each([
    ['0.30', '0.3'],
    ['3.0', '3'],
    ['-0.0', '0'],
    ['007', '7'],
    ['1e-3', '0.001'],
    ['1E3', '1000'],
    ['adam', 'adam'],
  ])('%s is %s', (text, canonical) => {
    expect(canonicalText(text)).toBe(canonical)
  })

  it('knows a point by its values, whatever their order and form', () => {
    const space = spaceOf(['lr=float:0.1:0.3:0.1', 'size=int:1:3'])
    const one = canonicalPoint(space, { size: '3.0', lr: '0.30000000000000004' })
    expect(one).toEqual({ lr: '0.3', size: '3' })
    expect(pointKey({ size: '3', lr: '0.3' })).toBe(pointKey(one ?? {}))
    expect(canonicalPoint(space, { lr: '0.25', size: '1' })).toBeUndefined()
    expect(canonicalPoint(space, { lr: '0.2' })).toBeUndefined()
    expect(canonicalPoint(space, { lr: '0.2', size: '4' })).toBeUndefined()
  })

  it.each([
    ['lr', 'write it as'],
    ['lr=', 'write it as'],
    ['lr=float:1:0:0.1', 'the step must be positive'],
    ['lr=log:0:1', 'log needs numbers above 0'],
    ['n=int:1:2.5', 'int needs whole numbers'],
    ['n=1,1.0', 'duplicate value'],
    ['n=int:1:100000000', 'more than 1000000 values'],
    ['1x=a,b', 'write it as'],
    ['constructor=a,b', 'constructor is reserved'],
    ['__proto__=a,b', '__proto__ is reserved'],
  ])('refuses %s', (text, why) => {
    expect(() => parseParameter(text)).toThrow(why)
  })

  it('refuses conditions that can never hold', () => {
    expect(() => spaceOf(['opt=adam,sgd'], ['opt=lion m=int:1:2'])).toThrow('--if opt=lion: opt never has this value')
    expect(() => spaceOf(['n=int:1:2'], ['n=1 m=int:1:2'])).toThrow('--if: m depends on n, which is a range')
    expect(() => spaceOf(['n=int:1:2', 'n=a,b'])).toThrow('duplicate parameter: n')
  })
})

const domain = fc.oneof(
  fc.uniqueArray(fc.constantFrom('a', 'b', 'c', 'd'), { minLength: 1 }).map((values) => values.join()),
  fc
    .tuple(fc.integer({ min: -5, max: 5 }), fc.integer({ min: 0, max: 6 }))
    .map(([from, more]) => `int:${from}:${from + more}`),
  fc.integer({ min: 1, max: 5 }).map((count) => `float:0.1:${(0.1 * count).toFixed(1)}:0.1`),
)
const anySpace = fc
  .tuple(fc.array(domain, { minLength: 1, maxLength: 3 }), fc.boolean(), domain)
  .map(([domains, isConditional, more]) => {
    const parameters: Parameter[] = [
      parseParameter('k=u,v'),
      ...domains.map((one, index) => parseParameter(`p${index}=${one}`)),
    ]
    return makeSpace(isConditional ? [...parameters, parseCondition(`k=u q=${more}`)] : parameters)
  })

describe('what a study asks', () => {
  it('is each point of a space once, whatever the method, in random spaces with crashes anywhere', () => {
    fc.assert(
      fc.property(
        anySpace,
        fc.constantFrom(...METHODS),
        fc.nat(),
        fc.array(fc.boolean(), { maxLength: 40 }),
        (space, method, seed, crashes) => {
          const size = sizeOf(space)
          const stored = new Set<string>()
          const isTried = (key: string) => stored.has(key)
          // Compared at the end: an `expect` for each of so many points would take most of the time.
          const wrong: unknown[] = []
          for (let number = 0, step = 0; ; step++) {
            const asked = askNext(space, method, number, seed, isTried)
            if (asked.kind === 'all-tried') break
            const key = pointKey(asked.point)
            // Killed after it asked and before it stored: it asks again, and for the same.
            if (crashes[step] === true) {
              const again = askNext(space, method, number, seed, isTried)
              if (again.kind === 'all-tried' || pointKey(again.point) !== key) wrong.push([asked, again])
              continue
            }
            if (stored.has(key) || pointKey(canonicalPoint(space, asked.point) ?? {}) !== key) wrong.push(asked)
            stored.add(key)
            number++
          }
          expect([stored.size, wrong]).toEqual([size, []])
        },
      ),
      { numRuns: randomRuns(1000) },
    )
  })

  it('tries all combinations in random order without one repetition', () => {
    const space = spaceOf(['a=int:1:50', 'b=float:0:1:0.05', 'c=x,y,z'])
    const tried = new Set<string>()
    const indexes: number[] = []
    for (let number = 0; number < sizeOf(space); number++) {
      const asked = askNext(space, brute, number, 3, (key) => tried.has(key))
      if (asked.kind === 'all-tried') break
      expect(asked.repeated).toBe(0)
      tried.add(pointKey(asked.point))
      indexes.push(Number(asked.point.a))
    }
    expect(tried.size).toBe(50 * 21 * 3)
    // The first hundred come from everywhere, not from the start.
    expect(new Set(indexes.slice(0, 100)).size).toBeGreaterThan(35)
  })

  it('replaces a repetition by the nearest untried point', () => {
    const space = spaceOf(['n=int:0:10', 'k=a,b'])
    const near = { n: '5', k: 'a' }
    const tried = new Set([near, { n: '4', k: 'a' }, { n: '6', k: 'a' }, { n: '7', k: 'a' }].map(pointKey))
    expect(untriedNear(space, near, 0, 1, (key) => tried.has(key))).toEqual({ n: '3', k: 'a' })
    expect(untriedNear(space, near, 0, 1, () => true)).toBeUndefined()
  })

  it('finds one close by in a space that is too large to search, and the last one of it', () => {
    const space = spaceOf(['n=int:1:200', 'm=int:1:200', 'k=a,b'])
    const near = { n: '100', m: '50', k: 'b' }
    const found = untriedNear(space, near, 0, 1, (key) => key === pointKey(near)) ?? {}
    expect(Math.abs(Number(found.n) - 100)).toBeLessThan(5)
    expect(found.k).toBe('b')
    const last = pointKey({ n: '199', m: '3', k: 'a' })
    expect(pointKey(untriedNear(space, near, 0, 1, (key) => key !== last) ?? {})).toBe(last)
    const real = spaceOf(['lr=log:1e-5:1e-1'])
    const rate = untriedNear(real, { lr: '0.001' }, 0, 1, (key) => key === pointKey({ lr: '0.001' }))
    expect(Math.abs(Math.log10(Number(rate?.lr)) + 3)).toBeLessThan(0.1)
  })

  it('goes on for ever where numbers may be any, without a point twice', () => {
    const space = spaceOf(['lr=log:1e-5:1e-1', 'opt=adam,sgd'])
    for (const method of METHODS.filter(({ name }) => name !== 'grid')) {
      const keys = new Set<string>()
      for (let number = 0; number < 2000; number++) {
        const asked = askNext(space, method, number, 7, (key) => keys.has(key))
        if (asked.kind === 'point') keys.add(pointKey(asked.point))
      }
      expect(keys.size).toBe(2000)
    }
  })

  it('spreads points evenly over a logarithm', () => {
    const space = spaceOf(['lr=log:1e-4:1e0'])
    const values = Array.from({ length: 400 }, (_, index) => Number(pointFrom(space, () => index / 400).lr))
    expect(values.filter((value) => value < 1e-2).length).toBeGreaterThan(190)
    expect(values.filter((value) => value < 1e-2).length).toBeLessThan(210)
  })
})
