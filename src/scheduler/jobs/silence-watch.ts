/** Finds running jobs that look stuck, and were submitted to be stopped then: read along with the driver's polls, kept in memory. */
import { hasPassed } from '../../base/clock.ts'
import { getOrMake } from '../../base/collections.ts'
import { formatNumberSet } from '../../base/number-set.ts'
import { shellQuote } from '../../base/shell-quote.ts'
import { isActive, type Job, type JobEvent } from './job.ts'
import { parseRankReadings, type RankReading, runningPrograms } from './ranks.ts'

/** Readings of a job: so many in its time, within these bounds. */
const PARTS = 20
const OFTEN_MS = 2_000
const RARELY_MS = 30_000
/** Of a core: processes that only wait have timers. */
const IDLE_PART = 0.01
/** Limits of all readings in a round with a host: they read files of jobs, which may be slow or long. */
const READING_S = 5
const READING_BYTES = 32 * 1024

/** Since when a rank has used no more than a hundredth of a core. */
type Idle = { readonly process: string; readonly sinceMs: number; readonly cpuS: number }
type HostReading = { readonly atMs: number; readonly ranks: readonly RankReading[] }
type Watched = { readonly attempt: number; readonly idle: Map<number, Idle>; readonly hosts: Map<string, HostReading> }

export class SilenceWatch {
  readonly #storeId: string
  readonly #jobs = new Map<number, Watched>()
  /** By host and job. */
  readonly #askedMs = new Map<string, number>()
  readonly #asked = new Map<string, readonly Job[]>()
  /** When a reading was cut short, by host and job. That job is read last from then on, so that the others are read. */
  readonly #lateMs = new Map<string, number>()

  constructor(storeId: string) {
    this.#storeId = storeId
  }

  /** Goes with the next round to the host; empty: nothing to read. */
  programFor(host: string, active: readonly Job[], nowMs: number): string {
    const lateMs = ({ id }: Job) => this.#lateMs.get(`${host} ${id}`) ?? 0
    const asked = active
      .filter((job) => {
        const everyMs = everyMsOf(job)
        if (everyMs === undefined || !placesOf(job).includes(host)) return false
        return hasPassed(this.#askedMs.get(`${host} ${job.id}`) ?? 0, everyMs, nowMs)
      })
      .toSorted((one, other) => lateMs(one) - lateMs(other))
    this.#asked.set(host, asked)
    for (const { id } of asked) this.#askedMs.set(`${host} ${id}`, nowMs)
    const programs = asked.map(
      (job) => `(${runningPrograms(job, this.#storeId).get(host) ?? 'false'}) && echo ${endOf(job)}\n`,
    )
    return programs.length === 0 ? '' : formatProgram(programs.join(''))
  }

  /** Reads the answer of that round. */
  take(host: string, text: string, nowMs: number): void {
    const asked = this.#asked.get(host) ?? []
    this.#asked.delete(host)
    if (asked.length === 0) return
    const lines = text.split('\n').flatMap((line) => (line.startsWith(WORD) ? [line.slice(WORD.length)] : []))
    const told = new Set(lines)
    const late = asked.find((job) => !told.has(endOf(job)))
    for (const job of asked) {
      const isWhole = told.has(endOf(job))
      if (isWhole) this.#lateMs.delete(`${host} ${job.id}`)
      else if (job === late) this.#lateMs.set(`${host} ${job.id}`, nowMs)
      const known = getOrMake(this.#jobs, job.id, () => newWatched(job))
      const watched = known.attempt === job.attempt ? known : newWatched(job)
      this.#jobs.set(job.id, watched)
      // Nothing is concluded from a part of the ranks: the others may have written something.
      const ranks = isWhole ? [...parseRankReadings(lines.join('\n'), host, job, this.#storeId).values()].flat() : []
      watched.hosts.set(host, { atMs: nowMs, ranks })
      for (const { rank, restart, process } of ranks) {
        if (process === undefined) continue
        const [name, before] = [`${restart} ${process.pid}`, watched.idle.get(rank)]
        const usedS = before?.process === name ? process.cpuS - before.cpuS : Number.POSITIVE_INFINITY
        if (before !== undefined && nowMs >= before.sinceMs && usedS * 1000 <= IDLE_PART * (nowMs - before.sinceMs))
          continue
        watched.idle.set(rank, { process: name, sinceMs: nowMs, cpuS: process.cpuS })
      }
    }
  }

  /** Each is stopped, and has failed for this reason. */
  stuck(active: readonly Job[], nowMs: number): readonly { readonly id: number; readonly event: JobEvent }[] {
    if (this.#jobs.size === 0) return []
    const byId = new Map(active.map((job) => [job.id, job]))
    return [...this.#jobs].flatMap(([id, watched]) => {
      const job = byId.get(id)
      if (job === undefined || job.attempt !== watched.attempt || everyMsOf(job) === undefined) {
        this.#jobs.delete(id)
        for (const host of watched.hosts.keys())
          for (const times of [this.#askedMs, this.#lateMs]) times.delete(`${host} ${id}`)
        return []
      }
      const reason = reasonOf(job, watched, nowMs)
      return reason === undefined ? [] : [{ id, event: { kind: 'refused', reason } }]
    })
  }
}

const newWatched = ({ attempt }: Job): Watched => ({ attempt, idle: new Map(), hosts: new Map() })

/** Undefined: it is not watched now. */
function everyMsOf({ spec: { silence }, state }: Job): number | undefined {
  if (silence?.stop === undefined || state.kind !== 'running') return undefined
  return Math.max(OFTEN_MS, Math.min(RARELY_MS, (silence.seconds * 1000) / PARTS))
}

/** Where it runs now. */
function placesOf({ state }: Job): readonly string[] {
  if (!isActive(state)) return []
  return state.places.flatMap(({ host }, bundle) => (state.bundles[bundle]?.kind === 'begun' ? [host] : []))
}

function reasonOf(job: Job, { idle, hosts }: Watched, nowMs: number): string | undefined {
  const { seconds, stop } = job.spec.silence ?? { seconds: Number.POSITIVE_INFINITY }
  const own = [...new Set(placesOf(job))].map((host) => hosts.get(host))
  // All hosts have told of their ranks lately.
  const lateMs = 3 * (everyMsOf(job) ?? 0)
  if (
    own.some((reading) => reading === undefined || reading.ranks.length === 0 || hasPassed(reading.atMs, lateMs, nowMs))
  )
    return undefined
  const running = own.flatMap((reading) => reading?.ranks ?? []).filter(({ process }) => process !== undefined)
  const isIdle = ({ rank }: RankReading) => nowMs - (idle.get(rank)?.sinceMs ?? nowMs) >= seconds * 1000
  if (running.length === 0 || running.some(({ quietS }) => quietS < seconds)) return undefined
  const allIdle = running.every(isIdle)
  if (stop === 'idle' && !allIdle) return undefined
  const waits = [...Map.groupBy(running, ({ process }) => process?.waitsIn ?? '')].flatMap(([name, ranks]) =>
    name === ''
      ? []
      : [`${ranks.length === 1 ? 'rank' : 'ranks'} ${formatNumberSet(ranks.map(({ rank }) => rank))} in ${name}`],
  )
  const where = waits.length === 0 ? '' : `, waiting: ${waits.join('; ')}`
  return `silent: nothing was written for ${seconds} s${allIdle ? ' and no processor used' : ''}${where}`
}

/** Before each line that it prints. */
const WORD = 'ranks '

/** Printed after the ranks of a job once all of them are read. */
const endOf = ({ id }: Job): string => `all ${id}`

/** In the shell of a host. A last line that is cut has no end, and is not printed. */
const formatProgram = (
  program: string,
): string => `timeout ${READING_S} sh -c ${shellQuote(program)} </dev/null 2>/dev/null | head -c ${READING_BYTES} |
while IFS= read -r l; do printf '%s${WORD}%s\\n' "$mark" "$l"; done
`
