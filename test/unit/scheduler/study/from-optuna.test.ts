/** Lines of the program that reads a storage of Optuna become a study, whatever they say. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { fromOptuna } from '../../../../src/scheduler/study/from-optuna.ts'
import type { SourceReading } from '../../../../src/scheduler/study/source.ts'
import { type StudySpec, spaceOf } from '../../../../src/scheduler/study/study.ts'
import { randomRuns } from '../../../support/random-runs.ts'

const SPEC: StudySpec = {
  parameters: [],
  method: 'optuna',
  seed: 0,
  metrics: [],
  repeat: 1,
  failures: 1,
  source: { kind: 'optuna', url: 'sqlite:////srv/a.db' },
}
const NOW = 1_800_000_000_000

const studyLine = {
  op: 'study',
  name: 'wf',
  directions: ['MINIMIZE'],
  metrics: [],
  trials: 3,
  began: 1_700_000_000_000,
}
const end = { op: 'end', more: false }
const float = (id: number, low: string, high: string, rest: object = {}) => ({
  op: 'distribution',
  id,
  kind: 'float',
  low,
  high,
  step: null,
  log: false,
  ...rest,
})
const trial = (number: unknown, params: object, rest: object = {}) => ({
  op: 'trial',
  number,
  state: 'COMPLETE',
  params,
  values: ['1.0'],
  steps: [],
  started: 1_700_000_000_000,
  ended: 1_700_000_001_000,
  attributes: {},
  ...rest,
})

function read(lines: readonly unknown[], spec = SPEC): Extract<SourceReading, { kind: 'read' }> {
  const reading = fromOptuna([studyLine, ...lines, end], spec, NOW)
  if (reading.kind !== 'read') throw new Error(JSON.stringify(reading))
  return reading
}

describe('parameters', () => {
  it.each([
    [float(0, '-10.0', '10.0'), '0.5', 'x=float:-10:10', '0.5'],
    [float(0, '1e-05', '0.1', { log: true }), '0.006509909345751136', 'x=log:0.00001:0.1', '0.006509909345751136'],
    [float(0, '0.1', '0.3', { step: '0.1' }), '0.30000000000000004', 'x=float:0.1:0.3:0.1', '0.3'],
    [float(0, '1.0', '9.0', { kind: 'int', step: '2.0' }), '3.0', 'x=int:1:9:2', '3'],
    [float(0, '1.0', '1024.0', { kind: 'int', step: '1.0', log: true }), '23.0', 'x=log:1:1024', '23'],
    [float(0, '2.5', '2.5'), '2.5', 'x=2.5', '2.5'],
    [float(0, '1e-300', '1.2345678901234567e-06'), '1e-06', 'x=float:1e-300:1.2345678901234567e-6', '0.000001'],
  ])('reads %j', (distribution, value, text, point) => {
    const { spec, trials } = read([distribution, trial(0, { x: [0, value] })])
    expect(spec.parameters).toEqual([text])
    expect(trials[0]?.point).toEqual({ x: point })
    expect(spaceOf(spec).parameters).toHaveLength(1)
  })

  it('gives each choice a text of its own', () => {
    const values = [['None'], ['True'], ['1'], ['1', 1], ['a,b', 1], ['', 1], ['int:1:2', 1], ['\u001b[31m', 1]]
    const { spec, trials } = read([
      { op: 'distribution', id: 0, kind: 'choice', values },
      ...values.map((_, index) => trial(index, { c: [0, `${index}.0`] })),
    ])
    expect(spec.parameters).toEqual(['c=None,True,1,1~2,a;b,"",int;1:2,\\x1b[31m'])
    expect(trials.map(({ point }) => point.c)).toEqual([
      'None',
      'True',
      '1',
      '1~2',
      'a;b',
      '""',
      'int;1:2',
      '\\x1b[31m',
    ])
    expect(spaceOf(spec).parameters[0]).toMatchObject({ kind: 'choice' })
  })

  it('bounds the texts of all choices together', () => {
    const values = Array.from({ length: 1000 }, (_, index) => [`${index}${'x'.repeat(300)}`, 1])
    const { spec, trials } = read([
      { op: 'distribution', id: 0, kind: 'choice', values },
      trial(0, { c: [0, '0.0'] }),
      trial(1, { c: [0, '999.0'] }),
    ])
    expect(spec.parameters.join('').length).toBeLessThan(21_000)
    expect(trials.map(({ point }) => Object.keys(point).length)).toEqual([1, 0])
  })

  it('names parameters so that they can be variables, and remembers their names there', () => {
    const params = { 'learning rate': [0, '0.1'], learning_rate: [0, '0.2'], '9': [0, '0.3'], '\u202eevil': [0, '0.4'] }
    const { spec, trials } = read([float(0, '0.0', '1.0'), trial(0, params)])
    expect(trials[0]?.point).toEqual({ learning_rate: '0.1', learning_rate_2: '0.2', _9: '0.3', _evil: '0.4' })
    expect(spec.source?.names).toEqual({
      learning_rate: 'learning rate',
      learning_rate_2: 'learning_rate',
      _9: '9',
      _evil: '\u202eevil',
    })
    const later = read([float(0, '0.0', '1.0'), trial(1, { learning_rate: [0, '0.7'] })], spec)
    expect(later.trials[0]?.point).toEqual({ learning_rate_2: '0.7' })
    expect(later.spec.parameters).toHaveLength(4)
  })

  it('renames what every object has', () => {
    const params = JSON.parse('{"constructor":[0,"0.5"],"__proto__":[0,"0.25"]}')
    const { trials } = read([float(0, '0.0', '1.0'), trial(0, params), trial(1, {})])
    expect(trials.map(({ point }) => point)).toEqual([{ constructor_2: '0.5', __proto___2: '0.25' }, {}])
  })

  it('joins ranges that differ between trials', () => {
    const first = read([float(0, '0.0', '1.0'), trial(0, { x: [0, '0.5'] })])
    const second = read([float(0, '0.5', '4.0'), trial(1, { x: [0, '3.5'] })], first.spec)
    expect(second.spec.parameters).toEqual(['x=float:0:4'])
    const steps = read([
      float(0, '0.0', '1.0', { step: '0.5' }),
      float(1, '1.0', '3.0', { step: '0.5' }),
      trial(0, { x: [0, '0.5'] }),
      trial(1, { x: [1, '2.5'] }),
    ])
    expect(steps.spec.parameters).toEqual(['x=float:0:3:0.5'])
  })

  it('leaves out what a trial lacks, as parameters may appear while a study runs', () => {
    const { trials, spec } = read([
      float(0, '0.0', '1.0'),
      trial(0, { x: [0, '0.5'] }),
      trial(1, { x: [0, '0.5'], late: [0, '0.1'] }),
    ])
    expect(trials.map(({ point }) => point)).toEqual([{ x: '0.5' }, { x: '0.5', late: '0.1' }])
    expect(spec.parameters).toEqual(['x=float:0:1', 'late=float:0:1'])
  })
})

describe('trials', () => {
  const one = (rest: object) => read([float(0, '0.0', '1.0'), trial(0, { x: [0, '0.5'] }, rest)]).trials[0]

  it('reads states, times and values', () => {
    expect(one({})?.end).toEqual({
      kind: 'done',
      values: { value: '1' },
      startedMs: 1_700_000_000_000,
      endedMs: 1_700_000_001_000,
    })
    expect(one({ state: 'PRUNED' })?.end?.kind).toBe('pruned')
    expect(one({ state: 'FAIL', values: [] })?.end).toMatchObject({ kind: 'failed', values: {} })
    expect(one({ state: 'RUNNING' })?.end).toBeUndefined()
    expect(one({ state: 'WAITING' })?.end).toBeUndefined()
    expect(one({ started: null, ended: null })?.end?.endedMs).toBe(NOW)
  })

  it('keeps infinity as a word, and NaN apart from numbers', () => {
    expect(one({ values: ['inf'] })?.end?.values).toEqual({ value: 'inf' })
    expect(one({ values: ['nan'] })?.end?.values).toEqual({ value: 'nan' })
    expect(one({ values: ['1e309', '; rm'] })?.end?.values).toEqual({ value: 'Infinity' })
    const steps = [[0, '1.5'], [1, 'nan'], [2, '-inf'], ['3', '1'], [4.5, '1'], [5, 'x'], 6]
    expect(one({ steps })?.steps).toEqual([
      { step: 0, value: 1.5 },
      { step: 2, value: Number.NEGATIVE_INFINITY },
    ])
  })

  it('reads what an export has added', () => {
    const attributes = {
      'muster:host': 'm1\u0007',
      'muster:devices': [0, 1, 'x'],
      'muster:reason': 'at step 3',
      'muster:state': 'done',
    }
    expect(one({ state: 'FAIL', values: [], attributes })?.end).toMatchObject({
      kind: 'done',
      host: 'm1\\x07',
      devices: [0, 1],
      reason: 'at step 3',
    })
  })

  it('takes no number that is none', () => {
    const numbers = [0, -1, 1.5, '2', 1e9, null, 100_000]
    const { trials } = read([float(0, '0.0', '1.0'), ...numbers.map((number) => trial(number, { x: [0, '0.5'] }))])
    expect(trials.map(({ number }) => number)).toEqual([0])
  })
})

describe('metrics', () => {
  const metricsOf = (directions: unknown, metrics: unknown) => {
    const line = { ...studyLine, directions, metrics }
    const reading = fromOptuna([line, float(0, '0.0', '1.0'), trial(0, { x: [0, '0.5'] }), end], SPEC, NOW)
    return reading.kind === 'read' ? reading.spec.metrics : reading
  }

  it('reads directions and names', () => {
    expect(metricsOf(['MAXIMIZE'], ['acc'])).toEqual([{ name: 'acc', isMost: true }])
    expect(metricsOf(['MINIMIZE', 'MAXIMIZE'], null)).toEqual([{ name: 'value_0' }, { name: 'value_1', isMost: true }])
    expect(metricsOf(['MINIMIZE', 'NOT_SET'], ['my loss', 'my loss'])).toEqual([
      { name: '_my_loss' },
      { name: '_my_loss_2' },
    ])
  })
})

it('says that another study has taken its place', () => {
  const { spec } = read([float(0, '0.0', '1.0'), trial(0, { x: [0, '0.5'] })])
  expect(fromOptuna([{ ...studyLine, began: 1_700_000_009_000 }, end], spec, NOW)).toEqual({ kind: 'other' })
})

it('says what is wrong', () => {
  const kinds = (lines: readonly unknown[]) => {
    const reading = fromOptuna(lines, SPEC, NOW)
    return reading.kind === 'trouble' ? [reading.problem, reading.names] : reading
  }
  expect(kinds([])).toEqual(['failed', []])
  expect(kinds([studyLine])).toEqual(['failed', []])
  expect(kinds([studyLine, end])).toEqual(['no-trials', []])
  expect(kinds([{ op: 'error', kind: 'which', names: ['a', '\u001b]0;b\u0007', 3] }])).toEqual([
    'which',
    ['a', '\\x1b]0;b\\x07'],
  ])
  expect(kinds([{ op: 'error', kind: '__proto__', message: 5 }])).toEqual(['failed', []])
})

it('makes a study of any lines, or none', () => {
  const text = fc.oneof(fc.string(), fc.constantFrom('nan', '1e400', '-0', '0.1', '__proto__', 'constructor'))
  const params = fc.dictionary(text, fc.oneof(fc.tuple(fc.nat(3), text), fc.anything()))
  const line = fc.oneof(
    fc.record({
      op: fc.constant('distribution'),
      id: fc.nat(3),
      kind: fc.constantFrom('float', 'int', 'choice', 'x'),
      low: text,
      high: text,
      step: text,
      log: fc.boolean(),
      values: fc.array(fc.oneof(fc.tuple(text), fc.anything())),
    }),
    fc.record({
      op: fc.constant('trial'),
      number: fc.nat(5),
      state: fc.constantFrom('COMPLETE', 'RUNNING', 'FAIL'),
      params,
      values: fc.anything(),
      steps: fc.anything(),
      started: fc.anything(),
      ended: fc.anything(),
      attributes: fc.anything(),
    }),
    fc.anything(),
  )
  fc.assert(
    fc.property(fc.array(line, { maxLength: 12 }), (lines) => {
      const reading = fromOptuna([studyLine, ...lines, end], SPEC, NOW)
      if (reading.kind !== 'read') return
      expect(spaceOf(reading.spec).parameters.length).toBeGreaterThan(0)
      const names = new Set(spaceOf(reading.spec).parameters.map(({ name }) => name))
      for (const { point } of reading.trials)
        for (const [name, value] of Object.entries(point)) {
          expect(names.has(name)).toBe(true)
          expect(value).not.toMatch(/[\u0000-\u001f\u007f-\u009f]/)
        }
      // Its own space is read again at the next reading.
      fromOptuna([studyLine, ...lines, end], reading.spec, NOW)
    }),
    { numRuns: randomRuns(300) },
  )
})
