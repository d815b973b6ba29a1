/** Round ticks in equal steps. Pure. */
import { shortAmount } from '../rows/rows-pane.ts'

/** The ends of the value axis start at 0; `step` divides `top`. */
export type ValueAxis = { readonly top: number; readonly step: number }

const EPSILON = 1e-9

/** The smallest axis to `most` with at most this many steps, each 1, 2 or 5 times a power of ten. */
export function valueAxis(most: number, mostSteps: number): ValueAxis {
  const steps = Math.max(1, mostSteps)
  const wanted = Number.isFinite(most) && most > 0 ? most : 1
  const power = 10 ** Math.floor(Math.log10(wanted / steps))
  const step = [1, 2, 5, 10, 20, 50]
    .map((factor) => factor * power)
    .find((each) => wanted <= each * steps * (1 + EPSILON))
  if (step === undefined || !Number.isFinite(step * steps)) return { top: wanted, step: wanted }
  return { top: Math.ceil(wanted / step - EPSILON) * step, step }
}

/** As `valueAxis`, but to this end exactly: only steps that divide it. */
export function fixedAxis(top: number, mostSteps: number): ValueAxis {
  for (let count = Math.max(1, mostSteps); count > 1; count -= 1) {
    const step = top / count
    if (/^[125]$/.test(String(Number((step / 10 ** Math.floor(Math.log10(step) + EPSILON)).toPrecision(6)))))
      return { top, step }
  }
  return { top, step: top }
}

/** `0`, `0.5`, `20`, `1.5k`, `2M` */
export function amountLabel(value: number): string {
  const text = value < 1000 ? String(Number(value.toPrecision(3))) : shortAmount(value)
  return text.replace(/\.0(?=\D)/, '')
}

const SECOND_STEPS = [1, 2, 5, 10, 15, 20, 30, 60, 120, 300, 600, 900, 1200, 1800, 3600, 7200, 21_600, 43_200, 86_400]

export type TimeTick = { readonly seconds: number; readonly text: string }

/** Ticks within these seconds, at most this many; below 0 is the past: `-5 min`, `-30 s`, `now`. */
export function timeTicks(from: number, to: number, mostTicks: number): readonly TimeTick[] {
  const step = SECOND_STEPS.find((each) => (to - from) / each < Math.max(2, mostTicks))
  if (step === undefined) return []
  const first = Math.ceil(from / step - EPSILON)
  const count = Math.floor(to / step + EPSILON) - first + 1
  return Array.from({ length: Math.max(0, count) }, (_, index) => {
    const seconds = (first + index) * step
    return { seconds, text: timeLabel(seconds, step, from < 0) }
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
