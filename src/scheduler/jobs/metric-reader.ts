/** Reads metrics along with the driver's polls: of running jobs from time to time, of ended ones once more. */
import { hasPassed } from '../../base/clock.ts'
import { getOrMake } from '../../base/collections.ts'
import { shellQuote } from '../../base/shell-quote.ts'
import type { OutputSearch } from './engine.ts'
import { engineRanks, isActive, isFinal, type Job } from './job.ts'
import type { Metric } from './metric.ts'
import { bundleKey } from './orders.ts'
import type { Reading } from './results.ts'

/** How much of the end of stdout is searched. */
const TAIL_BYTES = 64 * 1024
const MOST_VALUE = 40
const NUMBER = /^[-+]?(?:(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|nan|inf)$/i
const NUMBER_PATTERN = '[-+]?(([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][-+]?[0-9]+)?|[nN][aA][nN]|[iI][nN][fF])'
/** What may follow it: `0,93`, `1_000`, `1.2.3` and `0x1f` are not numbers that begin with 0 or 1. */
const AFTER_NUMBER = '([^0-9.,_xXeE]|[.,_]([^0-9]|$)|[xX]([^0-9A-Fa-f]|$)|[eE]([^-+0-9]|$)|$)'
/** A separator for sed and a mark around what was found; patterns cannot contain them. */
const [SEPARATOR, MARK] = ['\x01', '\x02']
/** Between two readings of a running job that says nothing else. */
const AGAIN_S = 10
/** Each takes a few processes on the host. */
const MOST_AT_ONCE = 16
/** An ended job has no metrics if its output could not be read this often: with each poll, at most every 10 s. */
const MOST_TRIES = 30

/** `tries`: how often its output could not be read. */
type Wanted = { readonly job: Job; readonly isFinal: boolean; readonly tries: number }

export class MetricReader {
  readonly #storeId: string
  /** By host, by key. */
  readonly #ended = new Map<string, Map<string, Wanted>>()
  /** By job. */
  readonly #readMs = new Map<number, number>()
  readonly #asked = new Map<string, ReadonlyMap<string, Wanted>>()

  constructor(storeId: string, unread: readonly Job[]) {
    this.#storeId = storeId
    for (const job of unread) this.noteEnd(job)
  }

  /** The host where something has to be read of it; undefined: none. */
  noteEnd(job: Job): string | undefined {
    const host = hostOf(job)
    if (host === undefined || !isFinal(job.state)) return undefined
    const own = getOrMake(this.#ended, host, () => new Map<string, Wanted>())
    own.set(bundleKey(this.#storeId, job, 0), { job, isFinal: true, tries: 0 })
    this.#readMs.delete(job.id)
    return host
  }

  hasEnded(host: string): boolean {
    return (this.#ended.get(host)?.size ?? 0) > 0
  }

  /** One that was not tried yet. */
  hasJustEnded(host: string): boolean {
    return [...(this.#ended.get(host)?.values() ?? [])].some(({ tries }) => tries === 0)
  }

  /** Where something has to be read. */
  get places(): readonly string[] {
    return [...this.#ended.keys()].filter((place) => this.hasEnded(place))
  }

  /** Goes with the next round to the host; empty: nothing to read. */
  programFor(host: string, active: readonly Job[], nowMs: number): string {
    return formatMetricProgram(this.#ordersFor(host, active, nowMs))
  }

  /** Of jobs in an engine; undefined: nothing to read. */
  searchFor(place: string, active: readonly Job[], nowMs: number): OutputSearch | undefined {
    const jobs = this.#ordersFor(place, active, nowMs)
    if (jobs.length === 0) return undefined
    return { jobs, mostBytes: TAIL_BYTES, programOf: (tails) => `mark=\n${formatMetricProgram(jobs, tails)}` }
  }

  #ordersFor(host: string, active: readonly Job[], nowMs: number) {
    const wanted = new Map([...(this.#ended.get(host) ?? [])].slice(0, MOST_AT_ONCE))
    for (const job of active) {
      if (wanted.size >= MOST_AT_ONCE) break
      if (hostOf(job) !== host || !isActive(job.state)) continue
      const everyMs = (job.spec.metricsEveryS ?? AGAIN_S) * 1000
      if (!hasPassed(this.#readMs.get(job.id) ?? 0, everyMs, nowMs)) continue
      this.#readMs.set(job.id, nowMs)
      wanted.set(bundleKey(this.#storeId, job, 0), { job, isFinal: false, tries: 0 })
    }
    this.#asked.set(host, wanted)
    return [...wanted].map(([key, { job }]) => {
      return { key, metrics: job.spec.metrics ?? [], isGang: engineRanks(job.spec) > 1 }
    })
  }

  /** Reads the answer of that round. */
  take(host: string, text: string): readonly Reading[] {
    const asked = this.#asked.get(host)
    this.#asked.delete(host)
    if (asked === undefined || asked.size === 0) return []
    const answers = parseMetricLines(text)
    const missed = [...asked].filter(([key, { isFinal }]) => isFinal && !answers.has(key))
    const readings = [...answers].flatMap(([key, found]): Reading[] => {
      const { job, isFinal } = asked.get(key) ?? {}
      if (job === undefined) return []
      if (isFinal) this.#ended.get(host)?.delete(key)
      const values = [...found].flatMap(([index, value]) => {
        const name = job.spec.metrics?.[index]?.name
        return name === undefined ? [] : [[name, value] as const]
      })
      return [{ job: job.id, attempt: job.attempt, values: Object.fromEntries(values), isFinal: isFinal ?? false }]
    })
    return [...readings, ...this.#miss(host, missed)]
  }

  /** It could not be asked: those that have ended are tried again some times. */
  miss(host: string): readonly Reading[] {
    this.#asked.delete(host)
    return this.#miss(host, [...(this.#ended.get(host) ?? [])])
  }

  #miss(host: string, missed: readonly (readonly [string, Wanted])[]): readonly Reading[] {
    const own = this.#ended.get(host)
    return missed.flatMap(([key, wanted]): Reading[] => {
      const { job, tries } = wanted
      // Others go first.
      own?.delete(key)
      if (tries + 1 >= MOST_TRIES) return [{ job: job.id, attempt: job.attempt, values: {}, isFinal: true }]
      own?.set(key, { ...wanted, tries: tries + 1 })
      return []
    })
  }
}

function hostOf({ spec, state }: Job): string | undefined {
  return spec.metrics !== undefined && 'places' in state ? state.places?.[0]?.host : undefined
}

/**
 * For the shell of a host, in the directory of bundles: prints `metric KEY INDEX NUMBER` for each, after its mark. `tails`: by
 * key, what prints the end of the output if that is not in this directory; nothing is printed of a job where it fails.
 */
export function formatMetricProgram(
  orders: readonly { readonly key: string; readonly metrics: readonly Metric[] }[],
  tails?: ReadonlyMap<string, string>,
): string {
  if (orders.length === 0) return ''
  const lines = orders.flatMap(({ key, metrics }) => {
    const tail = tails && (tails.get(key) ?? 'exit 1')
    const own = metrics.map(
      (metric, index) => `m ${key} ${index} ${shellQuote(sedScript(metric))} ${tail === undefined ? 'f' : 't'}`,
    )
    return tail === undefined ? own : [`if o=$(sh -c ${shellQuote(tail)} </dev/null 2>/dev/null); then`, ...own, 'fi']
  })
  return `f() { [ ! -f "$1/out" ] || tail -c ${TAIL_BYTES} "$1/out"; }
t() { printf '%s\\n' "$o"; }
m() {
v=$("$4" "$1" 2>/dev/null | tr '\\r' '\\n' | LC_ALL=C sed -nE "$3" 2>/dev/null)
printf '%smetric %s %s %.${MOST_VALUE}s\\n' "$mark" "$1" "$2" "$v"
}
${lines.join('\n')}
`
}

/** Marks the first match of a line, keeps what is between the marks, and prints the last one that was kept. */
function sedScript({ name, pattern }: Metric): string {
  const [found, group] =
    pattern === undefined
      ? [`(^|[^A-Za-z0-9_])${name.replaceAll('.', '[.]')}["']?[ \t]*[=:][ \t]*(${NUMBER_PATTERN})${AFTER_NUMBER}`, 2]
      : [pattern, 1]
  const replace = (from: string, to: string) => `s${SEPARATOR}${from}${SEPARATOR}${to}${SEPARATOR}`
  return [
    // Colours, whose last letter would seem to belong to the name.
    `${replace(`\x1b\\[[0-9;]*m`, '')}g`,
    replace(found, `${MARK}\\${group}${MARK}`),
    replace(`^[^${MARK}]*${MARK}([^${MARK}]*)${MARK}.*$`, '\\1'),
    't keep',
    'b last',
    ':keep',
    'h',
    ':last',
    '$!d',
    'g',
    'p',
  ].join('\n')
}

/** By key and index; a metric that is not a number is left out. Other lines are ignored. */
export function parseMetricLines(text: string): ReadonlyMap<string, ReadonlyMap<number, string>> {
  const found = new Map<string, Map<number, string>>()
  for (const line of text.split('\n')) {
    const [word, key = '', index = '', value = '', ...rest] = line.split(' ')
    if (word !== 'metric' || key === '' || !/^\d{1,3}$/.test(index)) continue
    const own = getOrMake(found, key, () => new Map<number, string>())
    if (rest.length === 0 && value.length < MOST_VALUE && NUMBER.test(value)) own.set(Number(index), value)
  }
  return found
}
