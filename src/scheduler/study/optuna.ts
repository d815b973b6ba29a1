/** What Optuna is told of a study, as JSON. Pure. */
import { decimalAt } from '../../base/decimals.ts'
import { metricNumber } from '../jobs/metric.ts'
import type { Parameter, Space } from './space.ts'
import { type Study, spaceOf, type Trial } from './study.ts'

/** The name of Optuna's class for a method of a study; undefined: the method is not one of Optuna's. */
export const samplerOf = (method: string): string | undefined =>
  method === 'tpe' ? 'TPESampler' : /^optuna:([A-Za-z]\w{0,63})$/.exec(method)?.[1]

/** The last ones; Optuna takes 66 µs to store each, and TPE 5 µs to weigh it for each suggestion. */
const MOST_TRIALS = 20_000

export function samplerStart({ spec }: Pick<Study, 'spec'>, trials: readonly Trial[]): object {
  return {
    op: 'start',
    sampler: samplerOf(spec.method),
    options: spec.sampler?.options ?? {},
    seed: spec.seed,
    directions: spec.metrics.map(({ isMost = false }) => (isMost ? 'maximize' : 'minimize')),
    parameters: samplerParameters(spaceOf(spec)),
    trials: trials.slice(-MOST_TRIALS).map((trial) => samplerTrial({ spec }, trial)),
  }
}

/** A trial that is pruned has the step that it reached last. */
export function samplerTrial({ spec }: Pick<Study, 'spec'>, { number, point, end }: Trial): object {
  if (end === undefined) return { number, point, state: 'open' }
  const values = samplerValues(spec.metrics.map(({ name }) => metricNumber(end.values[name])))
  const step = Math.trunc(metricNumber(end.values[spec.prune?.stepMetric ?? '']) ?? 0)
  return {
    number,
    point,
    state: end.kind,
    values,
    ...(end.kind === 'pruned' && { steps: [[step, values[0] ?? null]] }),
  }
}

/** JSON has no infinity, and Python reads it from a word. */
export const samplerValues = (values: readonly (number | undefined)[]): readonly (number | string | null)[] =>
  values.map((value) =>
    value === undefined || Number.isNaN(value) ? null : Number.isFinite(value) ? value : `${value}`,
  )

/** As they are told to Optuna. */
export const samplerParameters = ({ parameters }: Space): readonly object[] =>
  parameters.map((parameter) => ({
    name: parameter.name,
    ...domainOf(parameter),
    ...(parameter.when && { when: parameter.when }),
  }))

function domainOf(domain: Parameter): object {
  switch (domain.kind) {
    case 'choice':
      return { kind: 'choice', values: domain.values }
    case 'real':
      return { kind: 'float', low: domain.low, high: domain.high, log: domain.isLog }
    case 'steps': {
      const [low, high] = [0, domain.count - 1].map((index) => Number(decimalAt(domain, index)))
      const step = Number(decimalAt({ ...domain, first: domain.step }, 0))
      return { kind: domain.digits === 0 ? 'int' : 'float', low, high, step }
    }
  }
}
