/** What the plots of a study show, as places from 0 to 1; svg.ts and text-plot.ts draw them. Pure. */
import { clip } from '../../base/text-width.ts'
import type { Metric } from '../jobs/metric.ts'
import { type Axis, metricAxis, parameterAxis, timeAxis } from './axis.ts'
import { formatValue } from './format-value.ts'
import { bestSoFar, bestTrials, metricValue } from './front.ts'
import { type Importance, importanceOf } from './importance.ts'
import type { Parameter } from './space.ts'
import { type Study, spaceOf, type Trial } from './study.ts'

/** `x` to the right and `y` upwards. */
export type Place = { readonly x: number; readonly y: number }

/** x and y of one place after the other: thousands of objects would take longer than all else. */
export type Places = readonly number[]

export type Plot = {
  readonly title: string
  readonly x: Axis
  readonly y: Axis
  readonly done: Places
  readonly pruned: Places
  /** The best trials, which are among the done ones. */
  readonly best: Places
  /** Corners of a line: the best so far, or the front. */
  readonly line: readonly Place[]
  /** What the axes leave out. */
  readonly note?: string
}

export type ParallelPlot = {
  readonly axes: readonly Axis[]
  /** From the best to the worst trial: its place on each axis; undefined: the parameter is not part of it. */
  readonly lines: readonly (readonly (number | undefined)[])[]
  /** How many trials there are; of many, only some are lines. */
  readonly trials: number
}

export type StudyPlots = {
  readonly history: Plot
  /** Of the first two metrics. */
  readonly front: Plot | undefined
  readonly parameters: readonly Plot[]
  readonly parallel: ParallelPlot
  readonly importance: readonly Importance[] | undefined
}

/** Of a metric in titles, so that they have room for the parameter. */
const MOST_NAME = 16
const MOST_LINES = 400
/** The best ones are all lines; of the others, evenly chosen ones. */
const BEST_LINES = 40

/** `metric`: undefined is the first one; undefined is returned where the study has none, or no trial has a number yet. */
export function studyPlots(
  { spec }: Pick<Study, 'spec'>,
  trials: readonly Trial[],
  metric: Metric | undefined = spec.metrics[0],
): StudyPlots | undefined {
  if (metric === undefined) return undefined
  const rows = trials.flatMap((trial) => {
    const value = trial.end?.kind === 'done' || trial.end?.kind === 'pruned' ? metricValue(trial, metric) : undefined
    return value === undefined ? [] : [{ trial, value }]
  })
  if (rows.length === 0) return undefined
  const y = metricAxis(
    metric,
    rows.map(({ value }) => value),
  )
  const best = new Set(bestTrials(trials, [metric]))
  const outside = rows.filter(({ value }) => y.isOutside(value)).length
  const shared = { y, ...(outside === 0 ? {} : { note: `${outside} off the chart` }) }
  const { parameters } = spaceOf(spec)
  return {
    history: { ...shared, ...historyOf(rows, best, y, metric, trials) },
    front: frontOf(trials, spec.metrics),
    parameters: parameters.map((parameter) => {
      const x = parameterAxis(parameter.name, parameter)
      const place = parameterPlace(parameter, x)
      return {
        ...shared,
        title: `${clip(metric.name, MOST_NAME)} over ${parameter.name}`,
        x,
        line: [],
        ...split(rows, best, place, y),
      }
    }),
    parallel: parallelOf(parameters, rows, y, metric),
    importance: importanceOf(spaceOf(spec), trials, metric),
  }
}

type Row = { readonly trial: Trial; readonly value: number }

/** `placeOf`: along the x axis; undefined leaves the trial out. */
function split(
  rows: readonly Row[],
  best: ReadonlySet<Trial>,
  placeOf: (trial: Trial) => number | undefined,
  y: Axis,
): Pick<Plot, 'done' | 'pruned' | 'best'> {
  const places: Record<'done' | 'pruned' | 'best', number[]> = { done: [], pruned: [], best: [] }
  for (const { trial, value } of rows) {
    const x = placeOf(trial)
    if (x === undefined) continue
    const height = y.place(value)
    places[trial.end?.kind === 'pruned' ? 'pruned' : 'done'].push(x, height)
    if (best.has(trial)) places.best.push(x, height)
  }
  return places
}

function historyOf(
  rows: readonly Row[],
  best: ReadonlySet<Trial>,
  y: Axis,
  metric: Metric,
  trials: readonly Trial[],
): Omit<Plot, 'y' | 'note'> {
  let [fromMs, toMs] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY]
  for (const { trial } of rows) {
    const endedMs = trial.end?.endedMs ?? 0
    fromMs = Math.min(fromMs, trial.end?.startedMs ?? endedMs)
    toMs = Math.max(toMs, endedMs)
  }
  const x = timeAxis('time since the first trial', Math.max(1, (toMs - fromMs) / 1000))
  const at = (trial: Trial) => x.place(((trial.end?.endedMs ?? 0) - fromMs) / 1000)
  const line: Place[] = []
  let last: number | undefined
  for (const { trial, best: value } of bestSoFar(trials, metric)) {
    if (value === last) continue
    if (last !== undefined) line.push({ x: at(trial), y: y.place(last) })
    line.push({ x: at(trial), y: y.place(value) })
    last = value
  }
  if (last !== undefined) line.push({ x: x.place((toMs - fromMs) / 1000), y: y.place(last) })
  return {
    title: `best ${clip(metric.name, MOST_NAME)} so far`,
    x,
    line,
    ...split(rows, best, at, y),
  }
}

function frontOf(trials: readonly Trial[], metrics: readonly Metric[]): Plot | undefined {
  const [first, second] = metrics
  if (first === undefined || second === undefined) return undefined
  const [xs, ys]: [number[], number[]] = [[], []]
  const done = trials.filter((trial) => {
    const [value, other] = [metricValue(trial, first), metricValue(trial, second)]
    if (trial.end?.kind !== 'done' || value === undefined || other === undefined) return false
    xs.push(value)
    ys.push(other)
    return true
  })
  if (done.length === 0) return undefined
  const [x, y] = [metricAxis(first, xs), metricAxis(second, ys)]
  const best = bestTrials(done, [first, second]).map((trial) => ({
    x: x.place(metricValue(trial, first) ?? 0),
    y: y.place(metricValue(trial, second) ?? 0),
  }))
  const outside = xs.filter((value, index) => x.isOutside(value) || y.isOutside(ys[index] ?? value)).length
  return {
    title: `${clip(first.name, MOST_NAME)} and ${clip(second.name, MOST_NAME)}`,
    x,
    y,
    done: xs.flatMap((value, index) => [x.place(value), y.place(ys[index] ?? value)]),
    pruned: [],
    best: best.flatMap((one) => [one.x, one.y]),
    line: best.flatMap((one, index) => [...(index === 0 ? [] : [{ x: one.x, y: best[index - 1]?.y ?? one.y }]), one]),
    ...(outside === 0 ? {} : { note: `${outside} off the chart` }),
  }
}

/** How much of a choice's room its points fill, so that they do not lie on each other. */
const SPREAD = 0.6
const GOLDEN = 0.618_033_988_749_895

function parameterPlace(parameter: Parameter, axis: Axis): (trial: Trial) => number | undefined {
  if (parameter.kind !== 'choice')
    return ({ point }) => {
      const value = Number(point[parameter.name] ?? Number.NaN)
      return Number.isNaN(value) ? undefined : axis.place(value)
    }
  const places = new Map(parameter.values.map((value, index) => [value, axis.place(index)]))
  return ({ point, number }) => {
    const middle = places.get(point[parameter.name] ?? '')
    if (middle === undefined) return undefined
    return middle + ((((number + 1) * GOLDEN) % 1) - 0.5) * (SPREAD / parameter.values.length)
  }
}

function parallelOf(parameters: readonly Parameter[], rows: readonly Row[], y: Axis, metric: Metric): ParallelPlot {
  const done = rows.filter(({ trial }) => trial.end?.kind === 'done')
  const sorted = done.toSorted((one, other) =>
    one.value === other.value ? 0 : (one.value < other.value ? -1 : 1) * (metric.isMost === true ? -1 : 1),
  )
  const every = (sorted.length - BEST_LINES) / (MOST_LINES - BEST_LINES)
  const shown =
    sorted.length <= MOST_LINES
      ? sorted
      : [
          ...sorted.slice(0, BEST_LINES),
          ...Array.from(
            { length: MOST_LINES - BEST_LINES },
            (_, index) => BEST_LINES + Math.floor(index * every),
          ).flatMap((index) => sorted[index] ?? []),
        ]
  const axes = parameters.map((parameter) => parameterAxis(parameter.name, parameter))
  const places = parameters.map((parameter, index) => parameterPlace(parameter, axes[index] as Axis))
  return {
    axes: [...axes, { ...y, label: metric.name }],
    lines: shown.map(({ trial, value }) => [...places.map((place) => place(trial)), y.place(value)]),
    trials: sorted.length,
  }
}

/** `loss 0.12 with lr=0.01 size=20` of the best trial. */
export function describeBest(study: Pick<Study, 'spec'>, trials: readonly Trial[], metric: Metric): string {
  const [best] = bestTrials(trials, [metric])
  if (best === undefined) return `no trial has a ${metric.name} yet`
  const value = metricValue(best, metric) ?? Number.NaN
  const values = spaceOf(study.spec).parameters.flatMap(({ name }) =>
    best.point[name] === undefined ? [] : [`${name}=${best.point[name]}`],
  )
  return `best ${metric.name} ${formatValue(value)} in trial ${best.number}: ${values.join(' ')}`
}
