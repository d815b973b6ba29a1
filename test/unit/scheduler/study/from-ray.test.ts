/** Lines of the program that reads a Ray Tune experiment become a study. */
import { describe, expect, it } from 'vitest'
import { fromRay } from '../../../../src/scheduler/study/from-ray.ts'
import type { SourceReading } from '../../../../src/scheduler/study/source.ts'
import { type StudySpec, spaceOf } from '../../../../src/scheduler/study/study.ts'

const SPEC: StudySpec = {
  parameters: [],
  method: 'ray',
  seed: 0,
  metrics: [],
  repeat: 1,
  failures: 1,
  source: { kind: 'ray', url: '/srv/ray/train' },
}
const NOW = 1_800_000_000_000
const studyLine = { op: 'study', name: 'train', directions: ['NOT_SET'], metrics: ['loss'], trials: 3, since: 'abc' }
const end = { op: 'end', more: false }

const run = (params: object, steps: readonly (readonly [number, string])[]) => ({
  params,
  steps,
  values: [steps.at(-1)?.[1] ?? null],
  started: 1_700_000_000_000,
  ended: 1_700_000_005_000,
  host: 'node1',
})
const trial = (number: number, params: object, rest: object = {}) => ({
  op: 'trial',
  number,
  tag: `${number}_lr`,
  state: 'TERMINATED',
  params,
  first: params,
  searched: Object.keys(params),
  values: ['0.5'],
  runs: [],
  error: '',
  started: 1_700_000_000_000,
  ended: 1_700_000_009_000,
  host: 'node1',
  ...rest,
})

function read(lines: readonly unknown[], spec = SPEC): Extract<SourceReading, { kind: 'read' }> {
  const reading = fromRay([studyLine, ...lines, end], spec, NOW)
  if (reading.kind !== 'read') throw new Error(JSON.stringify(reading))
  return reading
}

describe('trials', () => {
  it('finds the space in what was tried', () => {
    const { spec, trials } = read([
      trial(
        0,
        { 'opt/lr': ['0.1', 1], layers: ['2', 0], act: ['relu'], seed: ['1', 0] },
        { searched: ['act', 'layers'] },
      ),
      trial(
        1,
        { 'opt/lr': ['0.01', 1], layers: ['8', 0], act: ['tanh'], seed: ['1', 0] },
        { searched: ['act', 'layers'] },
      ),
    ])
    expect(spec.parameters).toEqual(['act=relu,tanh', 'layers=int:2:8', 'opt_lr=float:0.01:0.1'])
    expect(spec.source).toMatchObject({ names: { opt_lr: 'opt/lr' }, mark: 'abc', metrics: ['loss'] })
    expect(trials.map(({ point }) => point)).toEqual([
      { act: 'relu', layers: '2', opt_lr: '0.1' },
      { act: 'tanh', layers: '8', opt_lr: '0.01' },
    ])
    expect(spaceOf(spec).parameters).toHaveLength(3)
  })

  it('reads states, values, steps and errors', () => {
    const own = { x: ['0.5', 1] }
    const { trials } = read([
      trial(0, own, {
        runs: [
          run(own, [
            [1, '0.9'],
            [2, '0.5'],
          ]),
        ],
      }),
      trial(1, { x: ['0.6', 1] }, { state: 'ERROR', error: 'RuntimeError: \u001b[31mbad', values: [null] }),
      trial(2, { x: ['0.7', 1] }, { state: 'RUNNING', runs: [run(own, [[1, '0.8']])] }),
    ])
    expect(trials[0]).toMatchObject({
      end: { kind: 'done', values: { loss: '0.5' }, host: 'node1', endedMs: 1_700_000_009_000 },
      steps: [
        { step: 1, value: 0.9 },
        { step: 2, value: 0.5 },
      ],
    })
    expect(trials[1]?.end).toMatchObject({ kind: 'failed', values: {}, reason: 'RuntimeError: \\x1b[31mbad' })
    expect(trials[2]?.end).toBeUndefined()
    expect(trials[2]?.steps).toEqual([{ step: 1, value: 0.8 }])
  })

  it('keeps the metric that its user named', () => {
    const spec: StudySpec = { ...SPEC, metrics: [{ name: 'acc', isMost: true }] }
    expect(read([trial(0, { x: ['0.5', 1] })], spec).spec.metrics).toEqual([{ name: 'acc', isMost: true }])
  })
})

describe('a population', () => {
  const good = { lr: ['0.2', 1] }
  const bad = { lr: ['0.001', 1] }
  const better = { lr: ['0.4', 1] }
  const lines = [
    { op: 'population', target: '1_lr', source: '0_lr', at: 5, sourceAt: 7, params: better },
    trial(0, good, {
      runs: [
        run(good, [
          [1, '0.5'],
          [7, '0.1'],
        ]),
      ],
    }),
    trial(1, better, {
      tag: '1_lr@perturbed[lr=0.4]',
      first: bad,
      runs: [
        run(bad, [
          [1, '0.9'],
          [5, '0.8'],
        ]),
        run(better, [[8, '0.05']]),
      ],
      values: ['0.04'],
    }),
  ]

  it('makes a trial of each exchange, with its parent', () => {
    const { trials, isWhole, spec } = read(lines)
    expect(isWhole).toBe(true)
    expect(spec.parameters).toEqual(['lr=float:0.001:0.4'])
    expect(
      trials.map(({ number, member, parent, point, end: own }) => [number, member, parent, point.lr, own?.kind]),
    ).toEqual([
      [0, 0, undefined, '0.2', 'done'],
      [1, 1, undefined, '0.001', 'pruned'],
      [2, 1, 0, '0.4', 'done'],
    ])
    expect(trials[1]?.end).toMatchObject({
      values: { loss: '0.8' },
      reason: 'replaced by the checkpoint of trial 0 at step 7',
    })
    expect(trials[2]?.end?.values).toEqual({ loss: '0.04' })
    expect(trials.map(({ steps }) => steps.length)).toEqual([2, 2, 1])
  })

  it('does not credit a trial with the result of the one whose checkpoint it was given', () => {
    const [exchange, first, second] = lines
    const silent = { ...second, runs: [run(bad, [[5, '0.8']])], values: ['0.1'] }
    expect(read([exchange, first, { ...silent, valued: good }]).trials[2]?.end?.values).toEqual({})
    expect(read([exchange, first, { ...silent, valued: better }]).trials[2]?.end?.values).toEqual({ loss: '0.1' })
  })

  it('lives with exchanges of trials that are not there, and results that are missing', () => {
    const strange = [
      { op: 'population', target: 'x', source: '0_lr', params: better },
      { op: 'population', target: '0_lr', source: 'y', params: better },
      { op: 'population', target: ['1_lr'], source: null, params: 5 },
    ]
    expect(read([...strange, ...lines]).trials).toHaveLength(3)
    const withoutRuns = lines.map((line) => ({ ...line, runs: [] }))
    expect(read(withoutRuns).trials.map(({ steps }) => steps.length)).toEqual([0, 0, 0])
  })
})

it('says that nothing has changed', () => {
  expect(fromRay([{ op: 'same' }], SPEC, NOW)).toEqual({ kind: 'same' })
})

it('says what is wrong', () => {
  expect(fromRay([{ op: 'error', kind: 'no-storage' }], SPEC, NOW)).toMatchObject({ problem: 'no-storage' })
  expect(fromRay([studyLine, end], SPEC, NOW)).toMatchObject({ problem: 'no-trials' })
  expect(fromRay([studyLine, trial(0, { x: ['1', 0] })], SPEC, NOW)).toMatchObject({ problem: 'failed' })
  expect(fromRay([null, 5, 'x', [studyLine]], SPEC, NOW)).toMatchObject({ problem: 'failed' })
})
