/** The axes of plots: where values lie, and round ticks. Pure. */
import { decimalAt } from '../../base/decimals.ts'
import type { Metric } from '../jobs/metric.ts'
import { formatValue } from './format-value.ts'
import type { Domain } from './space.ts'

export type Tick = { readonly at: number; readonly text: string }

export type Axis = {
  readonly label: string
  /** From 0 to 1 along the axis. */
  readonly ticks: readonly Tick[]
  readonly isLog: boolean
  /** Where a number lies, from 0 to 1; numbers beyond an end lie on it. */
  place(value: number): number
  /** Lies beyond an end. */
  isOutside(value: number): boolean
}

const MOST_TICKS = 6
/** Free space at both ends, so that no point lies on the frame. */
const MARGIN = 0.03
/** Values that reach over more than this factor are shown by their logarithms. */
const LOG_FROM = 1000
/** A bad end is cut where it lies this many times farther out than most values reach. */
const CUT = 2
const LEAST_CUT = 10
/** So that the difference of two numbers is one, too. */
const MOST = 1e300

/** `marked`: the values that get a tick; undefined: round ones. */
export function numberAxis(label: string, low: number, high: number, isLog: boolean, marked?: readonly number[]): Axis {
  const at = (value: number) => {
    const bounded = Math.min(MOST, Math.max(-MOST, value))
    return isLog ? Math.log10(Math.max(1 / MOST, bounded)) : bounded
  }
  let [from, to] = [at(low), at(high)]
  // What has one value only lies in the middle.
  if (!(to > from)) {
    const half = Math.abs(from) * 0.05 || 0.5
    from -= half
    to += half
  }
  const margin = (to - from) * MARGIN
  from -= margin
  to += margin
  const span = to - from
  const place = (value: number) => Math.min(1, Math.max(0, (at(value) - from) / span))
  const values =
    marked?.map((value) => ({ value, text: formatValue(value) })) ??
    (isLog ? logTicks(from, to) : linearTicks(from, to))
  return {
    label,
    isLog,
    ticks: values.map(({ value, text }) => ({ at: place(value), text })),
    place,
    isOutside: (value) => value < low || value > high,
  }
}

type TickValue = { readonly value: number; readonly text: string }

/** Multiples of 1, 2 or 5 times a power of ten. */
function linearTicks(from: number, to: number): readonly TickValue[] {
  const rough = (to - from) / MOST_TICKS
  const power = 10 ** Math.floor(Math.log10(rough))
  const step = power * ([1, 2, 5].find((factor) => factor * power >= rough * (1 - 1e-9)) ?? 10)
  const digits = Math.max(0, -Math.floor(Math.log10(step) + 1e-9))
  const ticks: TickValue[] = []
  // Bounded, as steps near the precision of numbers do not advance.
  for (let index = Math.ceil(from / step - 1e-9); index * step <= to && ticks.length <= MOST_TICKS; index++) {
    const value = Number((index * step).toPrecision(12))
    const isPlain = digits <= 4 && Math.abs(value) < 1e6
    ticks.push({ value, text: isPlain ? value.toFixed(digits) : formatValue(value) })
  }
  return ticks
}

/** Powers of ten, or 1, 2 and 5 times them; `from` and `to` are logarithms. */
function logTicks(from: number, to: number): readonly TickValue[] {
  const [first, last] = [Math.ceil(from), Math.floor(to)]
  const every = Math.ceil((last - first + 1) / MOST_TICKS)
  const powers = Array.from({ length: Math.max(0, last - first + 1) }, (_, index) => first + index)
  const values =
    powers.length >= 2
      ? powers.filter((power) => (power - first) % every === 0).map((power) => 10 ** power)
      : [first - 1, first].flatMap((power) => [1, 2, 5].map((factor) => factor * 10 ** power))
  const inside = values.filter((value) => Math.log10(value) >= from && Math.log10(value) <= to)
  if (inside.length >= 2) return inside.map((value) => ({ value, text: formatValue(Number(value.toPrecision(12))) }))
  return linearTicks(10 ** from, 10 ** to).filter(({ value }) => value > 0)
}

/** Of what is given without numbers: each value has the same room. */
export function choiceAxis(label: string, values: readonly string[]): Axis {
  const count = Math.max(1, values.length)
  const place = (index: number) => (index + 0.5) / count
  return {
    label,
    isLog: false,
    ticks: values.map((text, index) => ({ at: place(index), text })),
    place,
    isOutside: (index) => index < 0 || index >= count,
  }
}

/** Its whole domain, whatever was tried of it. */
export function parameterAxis(name: string, domain: Domain): Axis {
  if (domain.kind === 'choice') return choiceAxis(name, domain.values)
  if (domain.kind === 'real') return numberAxis(name, domain.low, domain.high, domain.isLog)
  const { count } = domain
  const at = (index: number) => Number(decimalAt(domain, index))
  const marked = count <= MOST_TICKS ? Array.from({ length: count }, (_, index) => at(index)) : undefined
  return numberAxis(name, at(0), at(count - 1), false, marked)
}

/**
 * From the best value to the worst, by logarithms where they differ by far. Where a few are far worse than the others, the axis
 * ends before them.
 */
export function metricAxis(metric: Metric, values: readonly number[]): Axis {
  const finite = Float64Array.from(values.filter(Number.isFinite)).sort()
  const label = `${metric.name} (${metric.isMost === true ? 'larger' : 'smaller'} is better)`
  if (finite.length === 0) return numberAxis(label, 0, 1, false)
  const quantile = (share: number) => finite[Math.round(share * (finite.length - 1))] ?? 0
  const isLog = quantile(0) > 0 && quantile(0.95) / quantile(0.05) >= LOG_FROM
  const scale = (value: number) => (isLog ? Math.log10(value) : value)
  const back = (value: number) => (isLog ? 10 ** value : value)
  const [from, to] = [scale(quantile(0.05)), scale(quantile(0.95))]
  let [low, high] = [quantile(0), quantile(1)]
  if (finite.length >= LEAST_CUT && to > from) {
    // The last value within the cut, so that no room is left free.
    if (metric.isMost === true) low = finite.find((value) => value >= back(from - CUT * (to - from))) ?? low
    else high = finite.findLast((value) => value <= back(to + CUT * (to - from))) ?? high
  }
  return numberAxis(label, low, high, isLog)
}

const UNITS = [
  { name: 'days', seconds: 86_400, from: 172_800 },
  { name: 'h', seconds: 3600, from: 7200 },
  { name: 'min', seconds: 60, from: 120 },
  { name: 's', seconds: 1, from: 0 },
] as const

/** From 0, in the unit that fits. `place` takes seconds. */
export function timeAxis(label: string, seconds: number): Axis {
  const unit = UNITS.find(({ from }) => seconds >= from) ?? UNITS[3]
  const axis = numberAxis(`${label} (${unit.name})`, 0, seconds / unit.seconds, false)
  return { ...axis, place: (value) => axis.place(value / unit.seconds), isOutside: (value) => value > seconds }
}
