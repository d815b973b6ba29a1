/** What a study is doing now, and why, in a few sentences for people. Pure. */

import { counted } from '../../base/counted.ts'
import { printable } from '../../base/printable.ts'
import { type Metric, metricNumber } from '../jobs/metric.ts'
import type { TrialCounts } from './front.ts'
import { endedTrials } from './front.ts'
import { DEFAULT_FACTOR } from './prune.ts'
import { shownUrl } from './source.ts'
import { sizeOf } from './space.ts'
import { type PbtSpec, type PruneSpec, type Study, type StudySpec, spaceOf, type Trial } from './study.ts'

/** Of Optuna's TPE and others that model what was seen. */
const DEFAULT_RANDOM_TRIALS = 10
const SHOWN_RUNGS = 4

/** One sentence each: what it looks for, how points are chosen, repetitions, early stopping, and where it stands. */
export function explainStudy(
  study: Pick<Study, 'spec' | 'state'>,
  counts: TrialCounts,
  trials: readonly Trial[],
): readonly string[] {
  const { spec, state } = study
  return [
    explainGoal(spec.metrics),
    ...explainPoints(spec, counts),
    ...(state.repeated > 0 ? [explainRepeats(state)] : []),
    ...(spec.prune === undefined ? [] : [explainPruning(spec.prune, spec.metrics[0], counts.pruned, trials)]),
    explainState(study, counts),
  ].map(printable)
}

function explainGoal(metrics: readonly Metric[]): string {
  const goals = metrics.map(({ name, isMost = false }) => `the ${isMost ? 'largest' : 'smallest'} ${name}`)
  if (goals.length === 0) return 'It has no metric, so it only tries points.'
  if (goals.length === 1) return `It looks for ${goals[0]}.`
  return `It looks for ${goals.slice(0, -1).join(', ')} and ${goals.at(-1)}: the best trials are those that no other beats in all of them.`
}

function explainPoints(spec: StudySpec, counts: TrialCounts): readonly string[] {
  if (spec.source !== undefined)
    return [`It runs elsewhere${onHost(spec.source.host)}; Muster only reads it, from ${shownUrl(spec.source.url)}.`]
  const asker = spec.isAsked === true ? ['Programs ask for its points and tell their values; it starts no jobs.'] : []
  if (spec.pbt !== undefined) return [...asker, explainPopulation(spec.pbt)]
  return [...asker, explainMethod(spec, counts)]
}

const onHost = (host: string | undefined) => (host === undefined ? '' : ` on ${host}`)

function explainMethod(spec: StudySpec, counts: TrialCounts): string {
  const size = sizeOf(spaceOf(spec)) * spec.repeat
  const tried = counts.open + endedTrials(counts)
  const many = Number.isFinite(size) ? `${tried} of ${size} combinations tried` : `${counted(tried, 'trial')} so far`
  const repeats = spec.repeat > 1 ? `, each ${spec.repeat} times` : ''
  switch (spec.method) {
    case 'grid':
      return `Grid: ${many}${repeats}, in order; the last parameter changes first.`
    case 'brute':
      return `Brute: ${many}${repeats}, in random order.`
    case 'random':
      return `Random: each point is drawn at random, regardless of earlier results; ${many}${repeats}.`
    case 'quasi-random':
      return `Quasi-random: points fill the space evenly, regardless of earlier results; ${many}${repeats}.`
  }
  const sampler = spec.method === 'tpe' ? 'TPESampler' : spec.method.replace(/^optuna:/, '')
  const where = onHost(spec.sampler?.host)
  const known = SAMPLERS[sampler]
  if (known === undefined) return `Optuna's ${sampler}${where} suggests the points; ${many}${repeats}.`
  const start = Number(spec.sampler?.options.n_startup_trials ?? DEFAULT_RANDOM_TRIALS)
  const seen = counts.done + counts.pruned
  if (!known.isModel) return `${known.name}${where}: it ${known.does}; ${many}${repeats}.`
  return seen < start
    ? `${known.name}${where}: its first ${counted(start, 'trial')} are random, and ${seen} of them have ended; then it ${known.does}.`
    : `${known.name}${where}: from the ${counted(seen, 'trial')} that have ended, it ${known.does}; ${many}${repeats}.`
}

type Sampler = { readonly name: string; readonly does: string; readonly isModel: boolean }

const SAMPLERS: Readonly<Record<string, Sampler>> = {
  TPESampler: {
    name: 'TPE',
    does: 'models which values good trials have more often than the others, and suggests those',
    isModel: true,
  },
  GPSampler: {
    name: 'Gaussian process',
    does: 'models the metric over the whole space, and suggests where an improvement is likely',
    isModel: true,
  },
  CmaEsSampler: {
    name: 'CMA-ES',
    does: 'draws points around the best ones, and adapts the size and shape of that region',
    isModel: false,
  },
  NSGAIISampler: {
    name: 'NSGA-II',
    does: 'combines and mutates the parameters of the best trials, one generation after the other',
    isModel: false,
  },
  NSGAIIISampler: {
    name: 'NSGA-III',
    does: 'combines and mutates the parameters of the best trials, one generation after the other',
    isModel: false,
  },
  QMCSampler: {
    name: 'Quasi-Monte Carlo',
    does: 'fills the space evenly, regardless of earlier results',
    isModel: false,
  },
  RandomSampler: { name: 'Random', does: 'draws each point at random', isModel: false },
  GridSampler: { name: 'Grid', does: 'tries all combinations', isModel: false },
  BruteForceSampler: { name: 'Brute force', does: 'tries all combinations', isModel: false },
}

function explainPopulation(pbt: PbtSpec): string {
  const share = `${formatPercent(pbt.quantileFraction)} of ${pbt.population} members`
  const drawn = formatPercent(pbt.resampleProbability)
  const change =
    pbt.explore === undefined
      ? `with changed parameters (resampled in ${drawn} of cases, otherwise × 1.2 or × 0.8, or a neighbouring choice)`
      : 'with the parameters that the explore command prints'
  return `Population: every ${pbt.perturbationInterval} of ${pbt.timeAttr}, the worst ${share} stop and continue from a checkpoint of the best ${formatPercent(pbt.quantileFraction)}, ${change}.`
}

const formatPercent = (share: number): string => `${Number((share * 100).toPrecision(3))} %`

function explainRepeats({ repeated, replaced }: Pick<Study['state'], 'repeated' | 'replaced'>): string {
  const suggestions = repeated === 1 ? '1 suggestion was a repeat' : `${repeated} suggestions were repeats`
  if (replaced === 0) return `${suggestions}: not run; the method was asked again.`
  return `${suggestions}: not run; ${counted(replaced, 'trial')} took the nearest untried point instead.`
}

const PARTS: Readonly<Record<number, string>> = { 2: 'half', 3: 'third', 4: 'quarter' }

function explainPruning(rule: PruneSpec, metric: Metric | undefined, pruned: number, trials: readonly Trial[]): string {
  const name = metric?.name ?? 'metric'
  const done = trials.flatMap(({ end }) => (end?.kind === 'done' ? [end] : []))
  const cannot = done.length > 0 && done.every(({ values }) => metricNumber(values[rule.stepMetric]) === undefined)
  const so =
    pruned === 0 && cannot
      ? `no trial can be pruned: those that are done printed no ${rule.stepMetric}=NUMBER with ${name}= (--step-metric names another number)`
      : `${pruned} pruned so far`
  if (rule.rule === 'median')
    return `Median rule: from ${rule.stepMetric} ${rule.fromStep} on, a trial stops when its best ${name} is worse than the median of at least ${counted(Math.max(1, rule.fromTrials), 'trial')} at that step; ${so}.`
  const factor = rule.factor ?? DEFAULT_FACTOR
  const first = rule.fromStep > 0 ? rule.fromStep : 1
  const rungs = Array.from({ length: SHOWN_RUNGS }, (_, index) => first * factor ** index)
  return `Halving: at ${rule.stepMetric} ${rungs.join(', ')}… only the best ${PARTS[factor] ?? `1/${factor}`} by ${name} of those that got there continue; ${so}.`
}

function explainState({ spec, state }: Pick<Study, 'spec' | 'state'>, counts: TrialCounts): string {
  const reason = state.reason === undefined ? '' : `: ${state.reason}`
  if (state.kind === 'stopped') return `It was ${state.reason ?? 'stopped'}.`
  const without = (['failed', 'cancelled'] as const).filter((kind) => counts[kind] > 0)
  const others = without.length === 0 ? '' : `; ${without.map((kind) => `${counts[kind]} ${kind}`).join(', ')}`
  const again = counts.open === 0 ? '' : `; ${counted(counts.open, 'trial')} to run again`
  if (state.kind === 'done') return `It is done${reason}${others}${again}.`
  if (spec.pbt !== undefined && state.trouble !== undefined) return `${state.trouble}.`
  if (state.trouble !== undefined) return `It has no next point yet: ${state.trouble}`.replace(/\.?$/, '.')
  const open = counts.open === 1 ? '1 trial is open' : `${counts.open} trials are open`
  const most = spec.atOnce === undefined ? '' : `, at most ${spec.atOnce} at once`
  if (spec.source !== undefined) return `${open}.`
  if (spec.pbt !== undefined && state.trials === undefined) return `${open}; it ends when all members have ended.`
  return state.trials === undefined
    ? `${open}${most}; it ends when all points are tried.`
    : `${open}${most}; it ends after ${counted(state.trials, 'trial')}.`
}
