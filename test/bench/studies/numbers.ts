/** `npm run bench -- studies`: what is computed from the trials of a study, and the next point, at 10,000 trials. */
import { createRandomNumbers } from '../../../src/scheduler/policies/random.ts'
import { askNext, METHODS, untriedNear } from '../../../src/scheduler/study/ask.ts'
import { bestTrials, countTrials, rankTrials } from '../../../src/scheduler/study/front.ts'
import { importanceOf } from '../../../src/scheduler/study/importance.ts'
import { pruneReason } from '../../../src/scheduler/study/prune.ts'
import { makeSpace, parseParameter, pointAt, pointFrom, pointKey } from '../../../src/scheduler/study/space.ts'
import { type Study, type StudySpec, spaceOf, type Trial } from '../../../src/scheduler/study/study.ts'
import { studySvg } from '../../../src/scheduler/study/svg.ts'
import { studyText } from '../../../src/scheduler/study/text-plot.ts'
import { formatPair, median, type Row } from '../support/statistics.ts'

const TRIALS = 10_000
const STEPS = 100
const ROUNDS = 30
const GOAL_MS = 50
const ASK_GOAL_MS = 20

const METRICS = [{ name: 'loss' }, { name: 'accuracy', isMost: true }]
const SPEC: StudySpec = {
  ...{ method: 'random', seed: 1, metrics: METRICS, repeat: 1, failures: 5 },
  parameters: [
    ...['lr=log:1e-5:1e-1', 'size=int:10:200:10', 'opt=adam,sgd,rmsprop', 'dropout=float:0:0.5'],
    'if opt=sgd momentum=float:0:0.9:0.1',
  ],
}

export function benchStudyNumbers(): readonly Row[] {
  const random = createRandomNumbers(1)
  const study: Pick<Study, 'name' | 'spec' | 'state'> = {
    name: 'wf',
    spec: SPEC,
    state: { kind: 'running', repeated: 0, replaced: 0 },
  }
  const space = spaceOf(SPEC)
  const trials = Array.from({ length: TRIALS }, (_, number): Trial => {
    const point = pointFrom(space, random)
    const loss = (Math.log10(Number(point.lr)) + 3) ** 2 + Number(point.dropout) + random()
    return {
      ...{ number, point, repetition: 0, job: number },
      end: {
        kind: number % 5 === 0 ? 'pruned' : 'done',
        values: { loss: loss.toFixed(4), accuracy: (1 - loss / 8 + random() / 10).toFixed(4) },
        endedMs: number * 1000,
      },
    }
  })
  const steps = trials.map(() => Array.from({ length: STEPS }, (_, step) => ({ step, value: random() })))
  const prune = { stepMetric: 'step', fromStep: 1, fromTrials: 5 }
  const own = [{ step: STEPS / 2, value: 0 }]
  const [metric] = METRICS
  return [
    row('ranking of all trials', GOAL_MS, () => rankTrials(trials, METRICS)),
    row('Pareto front of two metrics, and counts', GOAL_MS, () => [bestTrials(trials, METRICS), countTrials(trials)]),
    row('importance of five parameters', GOAL_MS, () => metric && importanceOf(space, trials, metric)),
    row(
      'median rule for one trial, 100 steps each',
      GOAL_MS,
      () => metric && pruneReason({ ...prune, rule: 'median' }, metric, own, steps),
    ),
    row(
      'halving rule for one trial, 100 steps each',
      GOAL_MS,
      () => metric && pruneReason({ ...prune, rule: 'halving' }, metric, own, steps),
    ),
    row('all plots in 80 columns', GOAL_MS, () => studyText(study, trials, { columns: 80 })),
    row('all plots as SVG', GOAL_MS, () => studySvg(study, trials)),
    ...askRows(trials),
  ]
}

function askRows(trials: readonly Trial[]): readonly Row[] {
  const real = spaceOf(SPEC)
  const tried = new Set(trials.map(({ point }) => pointKey(point)))
  const full = makeSpace(['a=int:1:100', 'b=int:1:100'].map(parseParameter))
  const last = Array.from({ length: TRIALS }, (_, index) => pointKey(pointAt(full, index) ?? {})).at(-7)
  const large = makeSpace(['a=int:1:1000', 'b=int:1:1000', 'c=x,y'].map(parseParameter))
  const near = pointAt(large, 1_000_000) ?? {}
  const close = new Set(Array.from({ length: TRIALS }, (_, index) => pointKey(pointAt(large, 995_000 + index) ?? {})))
  return [
    ...METHODS.filter(({ name }) => name !== 'grid').map((method) =>
      row(`next point after them, ${method.name}`, ASK_GOAL_MS, () =>
        askNext(real, method, TRIALS, 1, (key) => tried.has(key)),
      ),
    ),
    row('the last untried of 10,000 points, random', ASK_GOAL_MS, () =>
      METHODS.filter(({ name }) => name === 'random').map((method) =>
        askNext(full, method, TRIALS, 1, (key) => key !== last),
      ),
    ),
    row('the nearest untried of 2,000,000 points, 10,000 round it tried', ASK_GOAL_MS, () =>
      untriedNear(large, near, TRIALS, 1, (key) => close.has(key)),
    ),
  ]
}

/** Of processor time, which other work on the machine changes less. */
export function row(what: string, goalMs: number, work: () => unknown): Row {
  const times = Array.from({ length: ROUNDS }, () => {
    const before = process.cpuUsage()
    work()
    const { user, system } = process.cpuUsage(before)
    return (user + system) / 1000
  })
  return {
    what: `${what}, ms of processor time p50 / p99`,
    ours: formatPair(times),
    peer: '–',
    goal: `p50 ≤ ${goalMs}`,
    isReached: median(times) <= goalMs,
  }
}
