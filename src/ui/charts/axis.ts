/** Round ticks in equal steps. Pure. */
import { shortAmount } from '../rows/rows-pane.ts'

/** From 0 to `top`; `step` divides it. */
export type ValueAxis = {
  readonly top: number
  readonly step: number
  /** Rows to leave free, so that the ticks are equally many rows apart. */
  readonly unused: number
}

const EPSILON = 1e-9
const MOST_STEPS = 5
/** Rows between the ends of an axis that has more ticks than its ends. */
const LEAST_DIVIDED = 6

/**
 * Steps of 1, 2 or 5 times a power of ten, each of equally many rows. `span`: rows from 0 to the upper end. `isFixed`: that
 * end is `most`, otherwise the least one that holds it.
 */
export function valueAxis(most: number, span: number, isFixed: boolean): ValueAxis {
  const wanted = Number.isFinite(most) && most > 0 ? most : 1
  const mostSteps = Math.min(MOST_STEPS, Math.floor((span + 1) / 2))
  const axes = (span < LEAST_DIVIDED ? [0] : [0, 1]).flatMap((unused) =>
    Array.from({ length: mostSteps }, (_, index) => index + 1).flatMap((steps) => {
      const step = isFixed ? wanted / steps : roundUp(wanted / steps)
      const isRight = (span - unused) % steps === 0 && (steps === 1 || Math.abs(roundUp(step) / step - 1) < EPSILON)
      return isRight && Number.isFinite(step * steps) ? [{ top: step * steps, step, unused, steps }] : []
    }),
  )
  const isFew = ({ steps }: { readonly steps: number }) => Number(steps === 1 && span >= LEAST_DIVIDED)
  const [best = { top: wanted, step: wanted, unused: 0 }] = axes.toSorted(
    (one, other) =>
      isFew(one) - isFew(other) || one.top - other.top || one.unused - other.unused || other.steps - one.steps,
  )
  return best
}

/** The least of 1, 2 or 5 times a power of ten that is not below it. */
function roundUp(value: number): number {
  const power = 10 ** Math.floor(Math.log10(value) + EPSILON)
  return ([1, 2, 5].find((factor) => value <= factor * power * (1 + EPSILON)) ?? 10) * power
}

/** `0`, `0.5`, `20`, `1.5k`, `2M` */
export function amountLabel(value: number): string {
  const text = value < 1000 ? String(Number(value.toPrecision(3))) : shortAmount(value)
  return text.replace(/\.0(?=\D)/, '')
}

const SECOND_STEPS = [1, 2, 5, 10, 15, 20, 30, 60, 120, 300, 600, 900, 1200, 1800, 3600, 7200, 21_600, 43_200, 86_400]

export type TimeTick = { readonly seconds: number; readonly text: string }

/** Ticks within these seconds, at most this many; below 0 is the past: `-5 min`, `-30 s`, `now`. */
export function timeTicks(
  from: number,
  to: number,
  mostTicks: number,
  textOf?: (value: number) => string,
): readonly TimeTick[] {
  const span = to - from
  // The unit depends on the time alone, not on how many ticks there is room for.
  const least = textOf !== undefined ? 1 : span >= 7200 ? 3600 : span >= 120 ? 60 : 1
  const step = SECOND_STEPS.find((each) => each >= least && span / each < Math.max(2, mostTicks))
  if (step === undefined) return []
  const first = Math.ceil(from / step - EPSILON)
  const count = Math.floor(to / step + EPSILON) - first + 1
  return Array.from({ length: Math.max(0, count) }, (_, index) => {
    const seconds = (first + index) * step
    return { seconds, text: textOf?.(seconds) ?? timeLabel(seconds, step, from < 0) }
  })
}

function timeLabel(seconds: number, step: number, isAgo: boolean): string {
  if (seconds === 0) return isAgo ? 'now' : '0'
  const [unit, size] = step % 3600 === 0 ? ['h', 3600] : step % 60 === 0 ? ['min', 60] : ['s', 1]
  return `${seconds / size} ${unit}`
}

const SPANS = [60, 120, 300, 600, 900, 1200, 1800, 3600]

/** A round number of seconds that covers this many. */
export const roundSpan = (seconds: number): number =>
  SPANS.find((span) => seconds <= span) ?? Math.ceil(seconds / 3600) * 3600

/** How many points of a line fit beside the labels; more would be invisible. */
export const chartPoints = (columns: number): number => Math.max(2, (columns - 8) * 2)
