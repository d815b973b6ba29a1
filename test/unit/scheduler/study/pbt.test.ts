import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createRandomNumbers } from '../../../../src/scheduler/policies/random.ts'
import { ancestorsOf, descentLines } from '../../../../src/scheduler/study/descent.ts'
import {
  checkMutations,
  decide,
  explore,
  markOfReplaced,
  type PopulationMember,
  parameterOfMutation,
  parseMutation,
  quantiles,
} from '../../../../src/scheduler/study/pbt.ts'
import {
  canonicalPoint,
  makeSpace,
  type Point,
  parseCondition,
  parseParameter,
  pointFrom,
  pointKey,
  type Space,
} from '../../../../src/scheduler/study/space.ts'
import type { MemberMark, PbtSpec, Trial } from '../../../../src/scheduler/study/study.ts'
import { randomRuns } from '../../../support/random-runs.ts'

const spaceOf = (params: readonly string[], conditions: readonly string[] = []): Space =>
  makeSpace([...params.map(parseParameter), ...conditions.map(parseCondition)])

const spec = (rest: Partial<PbtSpec> = {}): PbtSpec => ({
  population: 4,
  timeAttr: 'step',
  perturbationInterval: 4,
  quantileFraction: 0.25,
  resampleProbability: 0.25,
  mutate: ['lr=loguniform:1e-4:1e-1'],
  ...rest,
})

const member = (
  number: number,
  step: number | undefined,
  value: number | undefined,
  point: Point = { lr: '0.01' },
): PopulationMember => ({
  member: number,
  trial: number,
  point: { ...point },
  step,
  value,
  isReplaced: false,
})

const SPACE = spaceOf(['lr=log:1e-4:1e-1'])
const context = (rest: Partial<Parameters<typeof decide>[2]> = {}) => ({
  spec: spec(),
  space: SPACE,
  isMost: true,
  seed: 1,
  isTried: () => false,
  ...rest,
})

describe('population-based training', () => {
  it('reads how a parameter changes', () => {
    expect(parseMutation('lr=loguniform:1e-5:1e-1')).toEqual({
      name: 'lr',
      kind: 'number',
      low: 1e-5,
      high: 0.1,
      isLog: true,
    })
    expect(parseMutation('b=choice:8,16.0')).toEqual({ name: 'b', kind: 'choice', values: ['8', '16'] })
    expect(parameterOfMutation(parseMutation('lr=uniform:0:1'))).toBe('lr=float:0:1')
    for (const text of [
      'lr',
      'lr=uniform:1:0',
      'lr=uniform:a:b',
      'lr=loguniform:0:1',
      'b=choice:1,1.0',
      'b=choice:,',
      'lr=uniform:0:1:2',
    ])
      expect(() => parseMutation(text)).toThrow(/--mutate/)
  })

  it('refuses mutations that could lead out of the space', () => {
    const check = (mutate: string, param: string) => () => checkMutations([parseMutation(mutate)], spaceOf([param]))
    expect(check('lr=uniform:0:1', 'lr=float:0:0.5')).toThrow('--param lr does not have 1')
    expect(check('b=choice:8,64', 'b=int:8:32:8')).toThrow('does not have 64')
    expect(check('x=uniform:0:1', 'lr=float:0:1')).toThrow('there is no parameter x')
    expect(check('opt=uniform:0:1', 'opt=adam,sgd')).toThrow('opt=choice:adam,sgd')
    expect(check('b=choice:8,16', 'b=int:8:32:8')).not.toThrow()
    expect(check('b=uniform:8:32', 'b=int:8:32:8')).not.toThrow()
  })

  it('replaces the worst of four members by the best at the interval, and not before', () => {
    const members = [member(0, 4, 0.97), member(1, 4, 0.5), member(2, 4, 0.6), member(3, 4, 0.3, { lr: '0.1' })]
    const early = decide(
      members.map((one) => ({ ...one, step: 3 })),
      [],
      context(),
    )
    expect(early).toEqual({ marks: [], decisions: [] })
    const { marks, decisions } = decide(members, [], context())
    expect(marks).toHaveLength(4)
    expect(decisions.map(({ victim, source, reason }) => [victim.member, source.member, reason])).toEqual([
      [3, 0, "replaced by member 0's checkpoint at step 4: 0.97 against 0.3"],
    ])
    expect(decisions[0]?.point).not.toEqual({ lr: '0.01' })
    // The same readings are not judged again.
    expect(decide(members, marks, context()).decisions).toEqual([])
    // Smaller is better: the other way round.
    expect(decide(members, [], context({ isMost: false })).decisions.map(({ victim }) => victim.member)).toEqual([0])
  })

  it('compares members when all have come an interval further, and waits for a slow one no longer than a second interval', () => {
    const [good, bad] = [member(0, 9, 0.9), member(1, 4, 0.2)]
    const first = decide([good, { ...bad, step: 3 }], [], context())
    expect(first).toEqual({ marks: [{ member: 0, step: 9, value: 0.9, isWaiting: true }], decisions: [] })
    // What counts is the value at its own interval, not the one that it has when the other arrives.
    const second = decide([{ ...good, step: 11, value: 0.1 }, bad], first.marks, context())
    expect(second.decisions.map(({ victim }) => victim.member)).toEqual([1])
    expect(second.marks).toEqual([
      { member: 0, step: 9, value: 0.9 },
      { member: 1, step: 4, value: 0.2 },
    ])
    const stuck = { ...member(1, 1, 0.95), step: 1 }
    const known = [...first.marks, { member: 1, step: 0, value: 0.95 }]
    expect(decide([{ ...good, step: 12 }, stuck], known, context()).decisions).toEqual([])
    expect(
      decide([{ ...good, step: 13, value: 0.8 }, stuck], known, context()).decisions.map(({ victim }) => victim.member),
    ).toEqual([0])
  })

  it('lets a replaced member continue from the interval of its source', () => {
    const marks: MemberMark[] = [
      { member: 0, step: 8, value: 0.9 },
      { member: 1, step: 4, value: 0.1 },
    ]
    expect(markOfReplaced(marks, 1, 0)).toEqual([
      { member: 0, step: 8, value: 0.9 },
      { member: 1, step: 8, value: 0.1 },
    ])
  })

  it('takes no checkpoint of a member that is itself being replaced, and judges only those that have printed something', () => {
    const members = [member(0, 4, 0.9), member(1, undefined, undefined), member(2, 4, 0.1)]
    const first = members.map((one) => (one.member === 0 ? { ...one, isReplaced: true } : one))
    expect(decide(first, [{ member: 0, step: 4, value: 0.9 }], context()).decisions).toEqual([])
    expect(decide(members, [], context()).decisions.map(({ victim }) => victim.member)).toEqual([2])
  })

  it.each([
    Number.NaN,
    Number.POSITIVE_INFINITY,
    Number.NEGATIVE_INFINITY,
  ])('replaces a member that has diverged to %s, also after its state was stored', (value) => {
    const [bad, good] = [member(0, 4, value), member(1, 4, 0.1)]
    const { decisions } = decide([bad, good], [], context())
    expect(decisions).toMatchObject([{ victim: { member: 0 }, source: { member: 1 } }])
    const waiting = decide([bad, { ...good, step: 3 }], [], context())
    expect(waiting.decisions).toEqual([])
    const marks = JSON.parse(JSON.stringify(waiting.marks)) as MemberMark[]
    expect(decide([bad, good], marks, context()).decisions).toMatchObject([{ victim: { member: 0 } }])
    // Nobody takes the checkpoint of such a member.
    expect(decide([bad, { ...good, value }], [], context()).decisions).toEqual([])
  })

  it('never has the parameters of another member except by descent', () => {
    const space = spaceOf(['b=choice1,choice2,choice3'])
    const mutate = ['b=choice:choice1,choice2,choice3']
    const [good, bad] = [member(0, 4, 1, { b: 'choice1' }), member(1, 4, 0, { b: 'choice3' })]
    const free = decide(
      [good, bad],
      [],
      context({ spec: spec({ mutate }), space, isTried: (key) => key !== pointKey({ b: 'choice2' }) }),
    )
    expect(free.decisions[0]).toMatchObject({ point: { b: 'choice2' } })
    // Not even where all neighbours are tried.
    const numbers = spaceOf(['lr=float:0:1'])
    for (let seed = 0; seed < 200; seed++) {
      const members = [member(0, 4, 1, { lr: '1' }), member(1, 4, 0, { lr: '0.1' })]
      const isTried = (key: string) => ['1', '0.8'].some((lr) => key === pointKey({ lr }))
      const options = { spec: spec({ mutate: ['lr=uniform:0:1'] }), space: numbers, seed, isTried }
      expect(isTried(pointKey(decide(members, [], context(options)).decisions[0]?.point ?? {}))).toBe(false)
    }
    const full = decide([good, bad], [], context({ spec: spec({ mutate }), space, isTried: () => true }))
    expect(full.decisions[0]).toMatchObject({ point: { b: 'choice1' } })
  })

  it('gives the same decisions for the same seed, and others for another one', () => {
    const members = [member(0, 4, 0.9), member(1, 4, 0.1)]
    const of = (seed: number) => decide(members, [], context({ seed })).decisions[0]?.point
    expect(of(7)).toEqual(of(7))
    expect(new Set(Array.from({ length: 20 }, (_, seed) => of(seed)?.lr)).size).toBeGreaterThan(3)
  })

  it('has as many in the first quantile as in the last, none in both', () => {
    fc.assert(
      fc.property(
        fc.array(fc.double({ noNaN: true, noDefaultInfinity: true }), { maxLength: 12 }),
        fc.double({ min: 0, max: 0.5, noNaN: true }),
        fc.boolean(),
        (values, fraction, isMost) => {
          const members = values.map((value, number) => member(number, 4, value))
          const marks = new Map(values.map((value, number) => [number, { member: number, step: 4, value }]))
          const { first, last } = quantiles(members, marks, isMost, fraction)
          expect(first.length).toBe(last.length)
          expect(first.filter((one) => last.includes(one))).toEqual([])
          expect(first.length * 2).toBeLessThanOrEqual(values.length)
          const sign = isMost ? 1 : -1
          for (const good of first)
            for (const bad of last)
              expect(sign * (values[good.member] ?? 0)).toBeGreaterThanOrEqual(sign * (values[bad.member] ?? 0))
        },
      ),
    )
  })

  it('multiplies numbers by 1.2 or 0.8, moves choices to a neighbour, and stays in the space', () => {
    const space = spaceOf(['lr=log:1e-4:1e-1', 'b=8,16,32', 'n=int:1:10', 'fixed=float:0:1'])
    const mutations = ['lr=loguniform:1e-4:1e-1', 'b=choice:8,16,32', 'n=uniform:1:10'].map(parseMutation)
    const from = { lr: '0.01', b: '16', n: '2', fixed: '0.5' }
    const seen = new Set<string>()
    for (let seed = 0; seed < 200; seed++) {
      const point = explore(mutations, space, from, 0, createRandomNumbers(seed))
      expect(point.fixed).toBe('0.5')
      seen.add(`lr ${point.lr}`).add(`b ${point.b}`).add(`n ${point.n}`)
    }
    // 2 × 1.2 is 2 again as a whole number: it moves by one step all the same.
    expect([...seen].sort()).toEqual(['b 32', 'b 8', 'lr 0.008', 'lr 0.012', 'n 1', 'n 3'])
    const end = explore(mutations, space, { lr: '0.1', b: '32', n: '10', fixed: '0' }, 0, () => 0.1)
    expect(end).toEqual({ lr: '0.1', b: '16', n: '10', fixed: '0' })
  })

  it('draws parameters that come with a changed choice, and drops those that go with it', () => {
    const space = spaceOf(['opt=adam,sgd'], ['opt=sgd momentum=float:0:0.9'])
    const mutations = [parseMutation('opt=choice:adam,sgd')]
    const points = Array.from({ length: 50 }, (_, seed) =>
      explore(mutations, space, { opt: 'adam' }, 1, createRandomNumbers(seed)),
    )
    for (const point of points) expect(canonicalPoint(space, point)).toEqual(point)
    expect(points.some(({ momentum }) => momentum !== undefined)).toBe(true)
    expect(explore(mutations, space, { opt: 'sgd', momentum: '0.5' }, 0, () => 0.1)).toEqual({ opt: 'adam' })
  })

  it('stays canonical in any space, whatever it mutates', () => {
    const param = fc.oneof(
      fc
        .tuple(fc.integer({ min: -50, max: 50 }), fc.integer({ min: 1, max: 60 }), fc.integer({ min: 1, max: 7 }))
        .map(([low, size, step]) => ({
          domain: `int:${low}:${low + size}:${step}`,
          mutation: `uniform:${low}:${low + Math.floor(size / step) * step || low + 1}`,
          isOk: size >= step,
        })),
      fc.tuple(fc.integer({ min: -50, max: 50 }), fc.integer({ min: 1, max: 9 })).map(([low, size]) => ({
        domain: `float:${low / 10}:${(low + size) / 10}:0.1`,
        mutation: `uniform:${low / 10}:${(low + size) / 10}`,
        isOk: true,
      })),
      fc.constant({ domain: 'log:1e-5:1e-1', mutation: 'loguniform:1e-5:1e-1', isOk: true }),
      fc.constant({ domain: 'float:-1:1', mutation: 'uniform:-1:1', isOk: true }),
      fc.constant({ domain: 'a,b,c', mutation: 'choice:a,c', isOk: true }),
    )
    fc.assert(
      fc.property(
        fc.array(
          param.filter(({ isOk }) => isOk),
          { minLength: 1, maxLength: 4 },
        ),
        fc.integer(),
        fc.double({ min: 0, max: 1, noNaN: true }),
        (params, seed, probability) => {
          const space = spaceOf(params.map(({ domain }, index) => `p${index}=${domain}`))
          const mutations = params.map(({ mutation }, index) => parseMutation(`p${index}=${mutation}`))
          checkMutations(mutations, space)
          const random = createRandomNumbers(seed)
          let point = pointFrom(space, random)
          for (let generation = 0; generation < 10; generation++) {
            point = explore(mutations, space, point, probability, random)
            expect(canonicalPoint(space, point)).toEqual(point)
          }
        },
      ),
      { numRuns: randomRuns(300) },
    )
  })
})

describe('the line of descent', () => {
  const trial = (number: number, of: number, lr: string, rest: Partial<Trial> = {}): Trial => ({
    number,
    point: { lr },
    repetition: 0,
    job: number,
    end: undefined,
    member: of,
    ...rest,
  })
  const TRIALS = [
    trial(0, 0, '0.1'),
    trial(1, 1, '0.01'),
    trial(2, 0, '0.012', { parent: 1, parentStep: 4 }),
    trial(3, 1, '0.012', { parent: 2, parentStep: 8, repetition: 1 }),
  ]

  it('tells from whose checkpoint each trial went on', () => {
    expect(descentLines(TRIALS, 'step')).toEqual([
      'member 0  trial 0  from the start                lr=0.1',
      '          trial 2  member 1 (trial 1) at step 4  lr 0.01 → 0.012',
      'member 1  trial 1  from the start                lr=0.01',
      '          trial 3  member 0 (trial 2) at step 8  the same parameters',
    ])
    expect(ancestorsOf(TRIALS, 3).map(({ number }) => number)).toEqual([1, 2, 3])
  })

  it('ends where a row is damaged', () => {
    const [first, second] = [trial(0, 0, '1', { parent: 1 }), trial(1, 0, '2', { parent: 0 })]
    expect(ancestorsOf([first, second], 1).map(({ number }) => number)).toEqual([0, 1])
    expect(ancestorsOf([], 4)).toEqual([])
  })
})
