/** Which ranks fall behind the others, and whether all of them look stuck, from what was read of them over time. Pure. */

/** What was read of a running rank. */
export type RankSight = {
  readonly rank: number
  /** Another process than before begins anew. */
  readonly process: string
  readonly step?: number
  /** Processor time since it began, in seconds. */
  readonly cpuS: number
  /** Seconds since it wrote something. */
  readonly quietS: number
}

type Point = { readonly atMs: number; readonly step: number | undefined; readonly cpuS: number }
type Trace = { readonly process: string; readonly quietS: number; readonly points: readonly Point[] }

/** By rank. */
export type RankTraces = ReadonlyMap<number, Trace>

/** Another window for programs that print few steps. */
const WINDOWS_MS = [60_000, 300_000] as const
const KEPT_MS = 310_000
/** Points closer than this replace each other. */
const APART_MS = 1_900
/** A rank that gains less than this part of what the others gain is behind. */
const LAG = 0.8

/** `sights`: of all ranks that were read now; the traces of the others stay as they are. */
export function noteSights(traces: RankTraces, sights: readonly RankSight[], atMs: number): RankTraces {
  if (sights.length === 0) return traces
  const next = new Map(traces)
  for (const { rank, process, step, cpuS, quietS } of sights) {
    const before = traces.get(rank)
    const known = before?.process === process ? before.points : []
    const kept = known.filter((point) => point.atMs <= atMs && atMs - point.atMs <= KEPT_MS)
    const last = kept.at(-1)
    const [first] = kept
    const isClose = last !== undefined && last !== first && atMs - last.atMs < APART_MS
    next.set(rank, { process, quietS, points: [...(isClose ? kept.slice(0, -1) : kept), { atMs, step, cpuS }] })
  }
  return next
}

/** Seconds a step; undefined: no step in that time. */
export type Lag = { readonly stepS: number | undefined; readonly othersStepS: number; readonly watchedS: number }

/** Ranks of `running` whose steps lag by 20 % for a minute behind the median of the others. Needs steps in the output. */
export function findStragglers(traces: RankTraces, running: readonly number[]): ReadonlyMap<number, Lag> {
  const found = new Map<number, Lag>()
  for (const windowMs of WINDOWS_MS) {
    const gains = new Map(running.flatMap((rank) => gainOf(rank, traces.get(rank), windowMs)))
    if (gains.size < 2) continue
    const sorted = [...gains].toSorted(([, one], [, other]) => one.perS - other.perS)
    const middle = Math.floor((sorted.length - 1) / 2)
    for (const [index, [rank, gain]] of sorted.entries()) {
      // The middle of the list without this rank.
      const median = sorted[index <= middle ? middle + 1 : middle]?.[1]
      // Steps come in jumps: the next one may be due.
      if (median === undefined || median.perS === 0 || found.has(rank)) continue
      if (gain.steps + gain.jump > LAG * median.perS * gain.seconds) continue
      const stepS = gain.steps === 0 ? undefined : 1 / gain.perS
      found.set(rank, { stepS, othersStepS: 1 / median.perS, watchedS: gain.seconds })
    }
  }
  return found
}

type Gain = {
  readonly steps: number
  readonly seconds: number
  readonly perS: number
  /** The most that it gained from one reading to the next. */
  readonly jump: number
}

function gainOf(rank: number, trace: Trace | undefined, windowMs: number): [number, Gain][] {
  const points = trace?.points.filter(({ step }) => step !== undefined) ?? []
  const last = points.at(-1)
  // The window begins at the last point that is old enough.
  const from = points.findLastIndex(({ atMs }) => (last?.atMs ?? 0) - atMs >= windowMs)
  const first = points[from]
  if (last === undefined || first === undefined) return []
  const steps = (last.step ?? 0) - (first.step ?? 0)
  const jumps = points.slice(from + 1).map(({ step = 0 }, index) => step - (points[from + index]?.step ?? 0))
  // An epoch that begins anew counts from 0 again.
  if (jumps.some((jump) => jump < 0)) return []
  const seconds = (last.atMs - first.atMs) / 1000
  return [[rank, { steps, seconds, perS: steps / seconds, jump: Math.max(1, ...jumps) }]]
}

/** `6 is behind: 0.41 s a step, the others 0.28 s` */
export function formatLag(title: string, { stepS, othersStepS, watchedS }: Lag): string {
  const own = stepS === undefined ? `no step for ${Math.round(watchedS)} s` : `${secondsText(stepS)} s a step`
  return `${title} is behind: ${own}, the others ${secondsText(othersStepS)} s${stepS === undefined ? ' a step' : ''}`
}

const secondsText = (seconds: number): string =>
  seconds < 10 ? seconds.toFixed(seconds < 0.1 ? 3 : 2) : seconds.toFixed(0)

/** Part of a core that a rank used since it was read before; undefined: read once. */
export function cpuPartOf(traces: RankTraces, rank: number, sinceMs = 0): number | undefined {
  const points = traces.get(rank)?.points ?? []
  const last = points.at(-1)
  const first = sinceMs === 0 ? points.at(-2) : points.find(({ atMs }) => atMs >= sinceMs)
  if (last === undefined || first === undefined || last.atMs <= first.atMs) return undefined
  return Math.max(0, ((last.cpuS - first.cpuS) * 1000) / (last.atMs - first.atMs))
}

/** `usesCpu`: MPI and NCCL wait by asking again and again, which uses a core; others sleep. */
export type Silence = { readonly quietS: number; readonly watchedS: number; readonly usesCpu: boolean }

/** Without its timers: a process that waits uses less of a core. */
const IDLE_PART = 0.01
const LEAST_WATCH_MS = 8_000

/**
 * Undefined: some rank of `running` wrote something within `silentS` seconds, or processor time has not been watched for long
 * enough. It is watched for as long as the silence lasts, at most for five minutes.
 */
export function silenceOf(traces: RankTraces, running: readonly number[], silentS: number): Silence | undefined {
  const own = running.map((rank) => traces.get(rank))
  const quietS = Math.min(...own.map((trace) => trace?.quietS ?? 0))
  if (running.length === 0 || quietS < silentS) return undefined
  const [firstMs, lastMs] = [0, -1].map((at) => own.map((trace) => trace?.points.at(at)?.atMs ?? Number.NaN)) as [
    number[],
    number[],
  ]
  const sinceMs = Math.max(Math.max(...firstMs), Math.max(...lastMs) - quietS * 1000)
  const watchedMs = Math.min(...lastMs) - sinceMs
  if (!(watchedMs >= LEAST_WATCH_MS)) return undefined
  const usesCpu = running.some((rank) => (cpuPartOf(traces, rank, sinceMs) ?? 0) > IDLE_PART)
  return { quietS, watchedS: watchedMs / 1000, usesCpu }
}
