import { describe, expect, it } from 'vitest'
import { explainStudy } from '../../../../src/scheduler/study/explain.ts'
import type { StudySpec, StudyState, Trial } from '../../../../src/scheduler/study/study.ts'

const spec: StudySpec = {
  parameters: ['size=int:10:200:10', 'lr=float:0.1:1:0.1'],
  method: 'grid',
  seed: 1,
  metrics: [{ name: 'loss' }],
  repeat: 1,
  failures: 5,
}
const state: StudyState = { kind: 'running', repeated: 0, replaced: 0 }
const counts = { open: 4, done: 30, failed: 1, cancelled: 0, pruned: 1 }

const explained = (changes: Partial<StudySpec>, own: Partial<StudyState> = {}, own2 = counts) =>
  explainStudy({ spec: { ...spec, ...changes }, state: { ...state, ...own } }, own2, [])

describe('the words for a study', () => {
  it('say how far a grid is', () => {
    expect(explained({ atOnce: 4 })).toEqual([
      'It looks for the smallest loss.',
      'Grid: 36 of 200 combinations tried, in order; the last parameter changes first.',
      '4 trials are open, at most 4 at once; it ends when all points are tried.',
    ])
    expect(explained({ repeat: 3 })[1]).toBe(
      'Grid: 36 of 600 combinations tried, each 3 times, in order; the last parameter changes first.',
    )
  })

  it('say what TPE does before and after its random trials', () => {
    const place = { host: 'm1', setUp: '', options: {} }
    expect(
      explained({ method: 'tpe', sampler: place }, {}, { open: 4, done: 6, failed: 0, cancelled: 0, pruned: 1 })[1],
    ).toBe(
      'TPE on m1: its first 10 trials are random, and 7 of them have ended; then it models which values good trials have more often than the others, and suggests those.',
    )
    expect(explained({ method: 'tpe', sampler: place, parameters: ['lr=log:1e-5:1e-1'] })[1]).toBe(
      'TPE on m1: from the 31 trials that have ended, it models which values good trials have more often than the others, and suggests those; 36 trials so far.',
    )
    const later = { ...place, options: { n_startup_trials: '50' } }
    expect(explained({ method: 'optuna:TPESampler', sampler: later })[1]).toContain('its first 50 trials are random')
    expect(explained({ method: 'optuna:CmaEsSampler', sampler: place })[1]).toContain('CMA-ES on m1: it draws points')
    expect(explained({ method: 'optuna:OtherSampler' })[1]).toContain("Optuna's OtherSampler suggests the points;")
  })

  it('say what became of repetitions', () => {
    expect(explained({}, { repeated: 4 })[2]).toBe('4 suggestions were repeats: not run; the method was asked again.')
    expect(explained({}, { repeated: 1, replaced: 1 })[2]).toBe(
      '1 suggestion was a repeat: not run; 1 trial took the nearest untried point instead.',
    )
  })

  it('say that no trial can be pruned where none prints its steps', () => {
    const prune = { rule: 'median', stepMetric: 'epoch', fromStep: 1, fromTrials: 4 } as const
    const trial = (values: Record<string, string>): Trial =>
      ({ number: 0, point: {}, repetition: 0, job: 1, end: { kind: 'done', values, endedMs: 0 } }) as unknown as Trial
    const words = (pruned: number, ...values: Record<string, string>[]) =>
      explainStudy({ spec: { ...spec, prune }, state }, { ...counts, pruned }, values.map(trial))[2]
    const cannot =
      'no trial can be pruned: those that are done printed no epoch=NUMBER with loss= (--step-metric names another number).'
    expect(words(0, { loss: '1' }, { loss: '2', epoch: 'x' })).toMatch(/; no trial can be pruned/)
    expect(words(0, { loss: '1' })?.endsWith(`; ${cannot}`)).toBe(true)
    expect(words(0, { loss: '1' }, { loss: '2', epoch: '8' })).toContain('; 0 pruned so far.')
    expect(words(0)).toContain('; 0 pruned so far.')
    expect(words(1, { loss: '1' })).toContain('; 1 pruned so far.')
  })

  it('say when trials are stopped early', () => {
    const prune = { rule: 'median', stepMetric: 'epoch', fromStep: 5, fromTrials: 4 } as const
    expect(explained({ prune })[2]).toBe(
      'Median rule: from epoch 5 on, a trial stops when its best loss is worse than the median of at least 4 trials at that step; 1 pruned so far.',
    )
    expect(explained({ prune: { ...prune, rule: 'halving', factor: 4, fromStep: 1 } })[2]).toBe(
      'Halving: at epoch 1, 4, 16, 64… only the best quarter by loss of those that got there continue; 1 pruned so far.',
    )
  })

  it('explain a population', () => {
    const pbt = {
      population: 8,
      timeAttr: 'step',
      perturbationInterval: 4,
      quantileFraction: 0.25,
      resampleProbability: 0.1,
      mutate: [],
    }
    expect(explained({ method: 'pbt', pbt })[1]).toBe(
      'Population: every 4 of step, the worst 25 % of 8 members stop and continue from a checkpoint of the best 25 %, with changed parameters (resampled in 10 % of cases, otherwise × 1.2 or × 0.8, or a neighbouring choice).',
    )
  })

  it('name several goals, an end, and trouble of which no text acts', () => {
    const metrics = [{ name: 'acc', isMost: true }, { name: 'seconds' }]
    expect(explained({ metrics })[0]).toBe(
      'It looks for the largest acc and the smallest seconds: the best trials are those that no other beats in all of them.',
    )
    expect(explained({ metrics: [] })[0]).toBe('It has no metric, so it only tries points.')
    expect(explained({}, { kind: 'done', reason: 'all 200 points tried' }).at(-1)).toBe(
      'It is done: all 200 points tried; 1 failed; 4 trials to run again.',
    )
    expect(explained({}, { kind: 'stopped' }).at(-1)).toBe('It was stopped.')
    expect(explained({}, { trouble: 'm1: \x1b[2Jno optuna.' }).at(-1)).toBe(
      'It has no next point yet: m1: \\x1b[2Jno optuna.',
    )
    expect(explained({ isAsked: true })[1]).toContain('Programs ask for its points')
    const source = { kind: 'optuna', url: 'sqlite:///a.db' } as const
    expect(explained({ source })[1]).toBe('It runs elsewhere; Muster only reads it, from sqlite:///a.db.')
  })
})
