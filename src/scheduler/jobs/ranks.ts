/**
 * The ranks of a job: which rank is on which host and what became of it, from the state of the job; and what each of them does now,
 * read from the hosts by one program each. Ranks of a launcher are told apart by the program `rank` (../launch/rank.ts), which
 * keeps their processes in the file `ranks` and their output in files of their own.
 */
import { getOrMake } from '../../base/collections.ts'
import { shellQuote } from '../../base/shell-quote.ts'
import type { RankEnd } from '../launch/rank.ts'
import { JOBS_DIRECTORY } from './host-program.ts'
import { type BundleState, isActive, type Job, namesOf } from './job.ts'
import { bundleKey, parseBundleKey } from './orders.ts'

/** `stopped`: ended because Muster or the launcher ended it, or without an exit code. */
export type RankState = 'waiting' | 'running' | 'done' | 'failed' | 'stopped'

export type RankRow = {
  readonly rank: number
  /** `rank 3`, or `ps 0` where bundles have roles. */
  readonly title: string
  readonly bundle: number
  readonly host: string
  readonly state: RankState
  /** How often its launcher had started the ranks again. */
  readonly restart: number
  /** Undefined: none is known. */
  readonly code?: number
  /** In milliseconds of this machine's clock. */
  readonly endedMs?: number
  /** Why it failed. */
  readonly text?: string
  /** Undefined: its host was not asked, did not answer, or has nothing of it yet. */
  readonly reading?: RankReading
}

/** What a rank does now, as its host tells. */
export type RankReading = {
  readonly rank: number
  readonly restart: number
  /** Of its output so far. */
  readonly bytes: number
  /** Seconds since it wrote something. */
  readonly quietS: number
  /** From `step=412`, `step 412/1000` or the like in the end of its output. */
  readonly step?: number
  /** The last line of its output, at most 300 characters; not made printable yet. */
  readonly line?: string
  /** Undefined: it has ended. */
  readonly process?: {
    readonly pid: number
    /** As in /proc: R runs, S sleeps, D waits for a disk. */
    readonly state: string
    /** Processor time since it began, in seconds; its own, not that of its children. */
    readonly cpuS: number
    /** The function of the kernel in which it waits. */
    readonly waitsIn?: string
  }
}

/** How much of the end of its output is searched for steps and the last line. */
const TAIL_BYTES = 4096
const MOST_LINE = 300
const MOST_RANKS = 4096
const MOST_BUNDLES = 256
/** Of processor time: Linux counts it in hundredths of a second. */
const TICKS_PER_S = 100
/** Ended by INT, KILL or TERM. */
const SIGNALLED = [130, 137, 143]

/** All ranks in their order. `readings`: by bundle. */
export function ranksOf(
  { spec, state }: Job,
  readings: ReadonlyMap<number, readonly RankReading[]> = new Map(),
): readonly RankRow[] {
  if (!('places' in state) || state.places === undefined) return []
  const { places, bundles = [] } = state
  const each = spec.launch?.ranks
  const names = namesOf(spec.roles, places.length)
  const rows = places.flatMap(({ host }, bundle): readonly RankRow[] => {
    const known = bundles[bundle] ?? { kind: 'sent' }
    const own = new Map(readings.get(bundle)?.map((reading) => [reading.rank, reading]))
    if (each === undefined) return [bundleRow(bundle, names[bundle] ?? '', host, known, own.get(bundle))]
    const ends = lastEnds(known)
    const found = [...new Set([...ends.keys(), ...own.keys()])]
    // Launchers fill the bundles in their order unless they say otherwise.
    const ranks = found.length > 0 ? found : Array.from({ length: each }, (_, index) => bundle * each + index)
    return ranks.map((rank) => launchedRow(rank, bundle, host, known, ends.get(rank), own.get(rank)))
  })
  return rows.toSorted((one, other) => one.rank - other.rank)
}

function lastEnds({ ranks = [] }: BundleState): ReadonlyMap<number, RankEnd> {
  return new Map(ranks.toSorted((one, other) => one.restart - other.restart).map((end) => [end.rank, end]))
}

function launchedRow(
  rank: number,
  bundle: number,
  host: string,
  known: BundleState,
  end: RankEnd | undefined,
  reading: RankReading | undefined,
): RankRow {
  const base = { rank, title: `rank ${rank}`, bundle, host, ...(reading === undefined ? {} : { reading }) }
  const hasEnd = end !== undefined && end.restart >= (reading?.restart ?? 0)
  if (hasEnd) {
    const { restart, code, endedMs, text } = end
    const more = { ...(endedMs === undefined ? {} : { endedMs }), ...(text === undefined ? {} : { text }) }
    return { ...base, state: stateOfCode(code), restart, code, ...more }
  }
  const state = known.kind === 'ended' ? 'stopped' : known.kind === 'begun' ? 'running' : 'waiting'
  return { ...base, state, restart: reading?.restart ?? end?.restart ?? 0 }
}

function bundleRow(
  bundle: number,
  title: string,
  host: string,
  known: BundleState,
  reading: RankReading | undefined,
): RankRow {
  const base = { rank: bundle, title, bundle, host, restart: 0, ...(reading === undefined ? {} : { reading }) }
  if (known.kind !== 'ended') return { ...base, state: known.kind === 'begun' ? 'running' : 'waiting' }
  const { end, beganMs, ranMs, said } = known
  const endedMs = beganMs === undefined || ranMs === undefined ? {} : { endedMs: beganMs + ranMs }
  if (end.kind !== 'exit') return { ...base, ...endedMs, state: 'stopped' }
  const why = end.code === 0 || said?.why === undefined ? {} : { text: said.why }
  return { ...base, ...endedMs, ...why, state: stateOfCode(end.code), code: end.code }
}

function stateOfCode(code: number): RankState {
  if (code === 0) return 'done'
  return SIGNALLED.includes(code) ? 'stopped' : 'failed'
}

/**
 * A program for `sh` on each host of an active job, by host; `parseRankReadings` reads what they print. They only read, take about 5 ms
 * a rank, and print at most 400 bytes a rank.
 */
export function rankPrograms(job: Job, storeId: string): ReadonlyMap<string, string> {
  const lines = new Map<string, string[]>()
  if (!isActive(job.state)) return new Map()
  const isWrapped = job.spec.launch?.ranks !== undefined
  for (const [bundle, { host }] of job.state.places.entries())
    if (job.state.bundles[bundle]?.kind === 'begun')
      getOrMake(lines, host, () => []).push(`one ${bundleKey(storeId, job, bundle)} ${isWrapped ? '-' : bundle}`)
  return new Map([...lines].map(([host, own]) => [host, formatProgram(own.slice(0, MOST_BUNDLES))]))
}

/**
 * Output of ranks goes through awk with lines between them that no rank can foresee. Only numbers of the file `ranks` are used, as
 * the job may have written to it.
 */
const formatProgram = (lines: readonly string[]): string => `cd ${JOBS_DIRECTORY} || exit
m=$(od -An -N8 -tx1 </dev/urandom | tr -d ' ') && [ -n "$m" ] || exit
one() {
  cd "$1" || return
  k=$1
  if [ "$2" = - ]; then
    head -n ${MOST_RANKS} ranks | awk 'NF == 3 && /^[0-9 ]+$/ && length($0) < 40 { last[$1] = $0 } END { for (r in last) print last[r] }' |
      while read -r r t p; do
        if [ "$r" = 0 ]; then rank "$r" "$t" "$p" $(ls -tr out err); else rank "$r" "$t" "$p" "rank.$r"; fi
      done
  else
    p=; read -r p x <id; case $p in ''|*[!0-9]*) p=0;; esac
    q=; read -r q x <"/proc/$p/task/$p/children"
    rank "$2" 0 "\${q:-$p}" $(ls -tr out err)
  fi
  cd ..
}
rank() {
  r=$1 t=$2 p=$3; shift 3
  w=; read -r w <"/proc/$p/wchan"
  s=; read -r s <"/proc/$p/stat"
  echo "$m rank $k $r $t $p \${w:-0} \${s##*) }"
  stat -c "$m file %s %Y" "$@"
  for f; do tail -c ${TAIL_BYTES} "$f"; echo; done
}
{ ${lines.join('\n')}
} 2>/dev/null | LC_ALL=C awk -v m="$m" -v now="$(date +%s)" ${shellQuote(AWK)}
`

const AWK = `function flush() {
  if (head == "") return
  quiet = wrote == 0 || wrote > now ? 0 : now - wrote
  print head, bytes, quiet, step == "" ? "-" : step, line
}
$1 == m && $2 == "rank" {
  flush()
  alive = $8 ~ /^[A-Y]$/
  head = $3 " " $4 " " $5 " " $6 " " (alive ? $8 : "-") " " (alive ? $19 + $20 : 0) " " (alive ? $7 : 0)
  bytes = wrote = 0; step = line = ""
  next
}
$1 == m && $2 == "file" { bytes += $3; if ($4 > wrote) wrote = $4; next }
{
  n = split($0, part, "\\r")
  while (n > 1 && part[n] ~ /^[ \\t]*$/) n--
  text = part[n]
  if (text ~ /^[ \\t]*$/) next
  line = substr(text, 1, ${MOST_LINE})
  if (match(text, /[Ss][Tt][Ee][Pp]["\\047]?[ \\t]*[:=]?[ \\t]*[0-9]+/)) {
    step = substr(text, RSTART, RLENGTH)
    sub(/^.*[^0-9]/, "", step)
    if (length(step) > 15) step = ""
  }
}
END { flush() }`

/** By bundle. A host tells of bundles of this job that are on it; other lines are ignored. */
export function parseRankReadings(
  text: string,
  host: string,
  job: Job,
  storeId: string,
): ReadonlyMap<number, readonly RankReading[]> {
  const found = new Map<number, RankReading[]>()
  for (const row of text.split('\n').slice(0, MOST_RANKS * 2)) {
    const [key = '', rank = '', restart = '', pid = '', state = '', ticks = '', waitsIn = '', ...more] = row.split(' ')
    const [bytes = '', quiet = '', step = '', ...words] = more
    const name = parseBundleKey(storeId, key)
    if (name?.id !== job.id || name.attempt !== job.attempt) continue
    if (!('places' in job.state) || job.state.places?.[name.rank]?.host !== host) continue
    if (![rank, restart].every((word) => /^\d{1,6}$/.test(word)) || !/^\d{1,10}$/.test(pid)) continue
    if (![ticks, bytes, quiet].every((word) => /^\d{1,15}$/.test(word))) continue
    const line = words.join(' ').slice(0, MOST_LINE)
    getOrMake(found, name.rank, () => []).push({
      rank: Number(rank),
      restart: Number(restart),
      bytes: Number(bytes),
      quietS: Number(quiet),
      ...(/^\d{1,15}$/.test(step) ? { step: Number(step) } : {}),
      ...(line === '' ? {} : { line }),
      ...(/^[A-Za-z]$/.test(state)
        ? {
            process: {
              pid: Number(pid),
              state,
              cpuS: Number(ticks) / TICKS_PER_S,
              ...(/^[a-z_]\w{0,80}$/.test(waitsIn) ? { waitsIn } : {}),
            },
          }
        : {}),
    })
  }
  return found
}
