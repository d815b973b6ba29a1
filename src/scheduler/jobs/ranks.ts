/**
 * The ranks of a job: which rank is on which host and what became of it, from the state of the job; and what each of them does now,
 * read from the hosts by one program each. Ranks of a launcher are told apart by the program `rank` (../launch/rank.ts), which
 * keeps their processes in the file `ranks` and their output in files of their own.
 */

import { getOrMake } from '../../base/collections.ts'
import { defined } from '../../base/defined.ts'
import { JOBS_DIRECTORY } from '../../base/left.ts'
import { EACH_STAT, READ_STAT } from '../../base/proc-stat.ts'
import { shellQuote } from '../../base/shell-quote.ts'
import { lastLines, type RankStream } from '../launch/fold.ts'
import type { RankEnd } from '../launch/rank.ts'
import { type RankBounds, rankBounds } from '../launch/rank-bounds.ts'
import { type Failure, rankFailures } from '../launch/verdict.ts'
import { type BundleState, failuresOf, hasBegun, isSignalled, type Job, namesOf } from './job.ts'
import { bundleKey, isOfAttempt, parseBundleKey } from './orders.ts'

/** `lost`: it ended without an exit code. `stopped`: Muster or the launcher ended it. */
export type RankState = 'waiting' | 'running' | 'done' | 'failed' | 'lost' | 'stopped'

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
  /** Several hosts say that they have it, and only the launcher knows: each has a row, and these are the hosts of all of them. */
  readonly claimedBy?: readonly string[]
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
    /** Processor time since it began, in seconds; its own and that of the processes below it. */
    readonly cpuS: number
    /** The function of the kernel in which it waits. */
    readonly waitsIn?: string
  }
}

/** How much of the end of its output is searched for steps and the last line. */
const TAIL_BYTES = 4096
const MOST_LINE = 300
const MOST_RANKS = 4096
/** Of the file `ranks`, whose lines have less than 40 characters. */
const RANKS_BYTES = 40 * MOST_RANKS
const MOST_BUNDLES = 256
/** Of processor time: Linux counts it in hundredths of a second. */
const TICKS_PER_S = 100

/** All ranks in their order. `readings`: by bundle. What a host tells of a rank that it cannot have is left out. */
export function ranksOf(
  job: Job,
  readings: ReadonlyMap<number, readonly RankReading[]> = new Map(),
): readonly RankRow[] {
  const { spec, state } = job
  if (!('places' in state) || state.places === undefined) return []
  const judge = judgeOf(job)
  const { places, bundles = [] } = state
  const each = spec.launch?.ranks
  const names = namesOf(spec.roles, places.length)
  const bounds = rankBounds(spec, places.length)
  const seen = places.map(({ host }, bundle) => {
    const [told, ended] = [readings.get(bundle) ?? [], bundles[bundle]?.ranks ?? []]
    // Where the launcher chooses, a restart may have given other ranks to the bundle.
    const leastRestart = bounds.isChosen ? Math.max(0, ...[...told, ...ended].map(({ restart }) => restart)) : 0
    const isOwn = ({ rank, restart }: RankReading | RankEnd) => bounds.canHave(bundle, rank) && restart >= leastRestart
    return {
      host,
      known: bundles[bundle] ?? { kind: 'sent' as const },
      own: new Map(told.filter(isOwn).map((reading) => [reading.rank, reading])),
      ends: lastEnds(ended.filter(isOwn)),
    }
  })
  const found = new Set(seen.flatMap(({ ends, own }) => [...ends.keys(), ...own.keys()]))
  const isFree = (rank: number) => !found.has(rank)
  const ranges = places.map((_, bundle) => rangeOf(bounds, bundle))
  const free = bounds.isChosen ? ranges.flat().filter(isFree) : []
  const rows = seen.flatMap(({ host, known, own, ends }, bundle): readonly RankRow[] => {
    if (each === undefined) return [bundleRow(bundle, names[bundle] ?? '', host, known, own.get(bundle), judge)]
    const range = ranges[bundle] ?? []
    const here = [...new Set([...ends.keys(), ...own.keys()])]
    const expected = bounds.isChosen ? free.splice(0, Math.max(0, range.length - here.length)) : range.filter(isFree)
    return [...here, ...expected].map((rank) =>
      launchedRow(rank, bundle, host, known, ends.get(rank), own.get(rank), judge),
    )
  })
  const sorted = rows.toSorted((one, other) => one.rank - other.rank)
  return bounds.isChosen ? withClaims(sorted) : sorted
}

function rangeOf(bounds: RankBounds, bundle: number): readonly number[] {
  const { first, count } = bounds.rangeOf(bundle)
  return Array.from({ length: count }, (_, index) => first + index)
}

function withClaims(rows: readonly RankRow[]): readonly RankRow[] {
  const claims = hostsByRank(rows)
  return rows.map((row) => {
    const hosts = claims.get(row.rank) ?? new Set()
    return hosts.size > 1 ? { ...row, claimedBy: [...hosts] } : row
  })
}

/** Ranks that failed or were lost, the likely cause first. If there are none, ranks that were stopped. */
export function failedRanks({ spec, state }: Job, rows: readonly RankRow[]): readonly RankRow[] {
  if (!('places' in state)) return []
  const byKey = new Map(rows.map((row) => [keyOf(row), row]))
  const ended = rankFailures(failuresOf(spec, state)).flatMap((failure) => {
    if (!failure.isLauncher) return byKey.get(keyOf(failure)) ?? []
    const told = (failure.lost ?? []).flatMap(({ rank, bundle }) => rows.filter(isOf(rank, bundle)))
    return [...new Set([...told, ...rows.filter((row) => row.bundle === failure.bundle)])].filter(
      (row) => row.state === 'lost',
    )
  })
  const failed = ended.filter((row) => row.state === 'failed' || row.state === 'lost')
  return failed.length === 0 ? ended : failed
}

const isOf = (rank: number, bundle: number) => (one: { readonly rank: number; readonly bundle: number }) =>
  one.rank === rank && one.bundle === bundle

type Place = Pick<Failure, 'title' | 'bundle'>

const keyOf = ({ title, bundle }: Place): string => `${bundle} ${title}`

type Judge = {
  /** `code`: undefined if it ended without one. */
  of(place: Place, code: number | undefined): { readonly state: RankState; readonly text?: string }
  /**
   * The state of a rank that told no end: `lost` if its launcher was lost or failed first, since it ended before the rank, or if its
   * host says that it told none; else `stopped`.
   */
  ofSilent(rank: number, bundle: number): 'lost' | 'stopped'
}

/** The rank that failed first was not stopped, even if its exit code is that of a signal. */
function judgeOf({ spec, state }: Job): Judge {
  const failures = 'places' in state ? failuresOf(spec, state) : []
  const [first] = 'failed' in state && state.failed !== undefined ? rankFailures(failures) : []
  const byKey = new Map(failures.map((failure) => [keyOf(failure), failure]))
  return {
    of(place, code) {
      const failure = byKey.get(keyOf(place))
      if (code === 0 && !failure?.hasReported) return { state: 'done' }
      // It belongs to an earlier restart, or was stopped without an exit code.
      if (failure === undefined) return { state: code === undefined || isSignalled(code) ? 'stopped' : 'failed' }
      const { isStopped, text } = failure
      const state = code === undefined ? 'lost' : isStopped && failure !== first ? 'stopped' : 'failed'
      return { state, ...defined({ text }) }
    },
    ofSilent: (rank, bundle) =>
      first?.lost?.some(isOf(rank, bundle)) ||
      failures.some((one) => one.isLauncher && one.bundle === bundle && (one === first || one.code === undefined))
        ? 'lost'
        : 'stopped',
  }
}

function lastEnds(ends: readonly RankEnd[] = []): ReadonlyMap<number, RankEnd> {
  return new Map(ends.toSorted((one, other) => one.restart - other.restart).map((end) => [end.rank, end]))
}

function launchedRow(
  rank: number,
  bundle: number,
  host: string,
  known: BundleState,
  end: RankEnd | undefined,
  reading: RankReading | undefined,
  judge: Judge,
): RankRow {
  const base = { rank, title: `rank ${rank}`, bundle, host, ...(reading === undefined ? {} : { reading }) }
  const hasEnd = end !== undefined && end.restart >= (reading?.restart ?? 0)
  if (hasEnd) {
    const { restart, code, endedMs, text } = end
    const more = { ...(endedMs === undefined ? {} : { endedMs }), ...(text === undefined ? {} : { text }) }
    return { ...base, state: judge.of(base, code).state, restart, code, ...more }
  }
  const state = known.kind === 'ended' ? judge.ofSilent(rank, bundle) : known.kind === 'begun' ? 'running' : 'waiting'
  return { ...base, state, restart: reading?.restart ?? end?.restart ?? 0 }
}

function bundleRow(
  bundle: number,
  title: string,
  host: string,
  known: BundleState,
  reading: RankReading | undefined,
  judge: Judge,
): RankRow {
  const base = { rank: bundle, title, bundle, host, restart: 0, ...(reading === undefined ? {} : { reading }) }
  if (known.kind !== 'ended') return { ...base, state: known.kind === 'begun' ? 'running' : 'waiting' }
  const { end, beganMs, ranMs } = known
  const endedMs = beganMs === undefined || ranMs === undefined ? {} : { endedMs: beganMs + ranMs }
  const code = end.kind === 'exit' ? end.code : undefined
  return { ...base, ...endedMs, ...judge.of(base, code), ...defined({ code }) }
}

/**
 * A program for `sh` on each host, by host, for bundles that run or have ended; `parseRankReadings` and `parseDeleted` read what they
 * print. They only read, take about 5 ms a rank, and print about 100 bytes a rank and its last line.
 */
export const rankPrograms = (job: Job, storeId: string): ReadonlyMap<string, string> =>
  readingPrograms(job, storeId, ({ kind }) => kind !== 'sent', MOST_LINE)

/** The same for bundles that run, without last lines. */
export const runningPrograms = (job: Job, storeId: string): ReadonlyMap<string, string> =>
  readingPrograms(job, storeId, ({ kind }) => kind === 'begun', 0)

function readingPrograms(
  job: Job,
  storeId: string,
  isWanted: (bundle: BundleState) => boolean,
  mostLine: number,
): ReadonlyMap<string, string> {
  return programsOf(
    job,
    storeId,
    isWanted,
    (calls) => `${RANK}{ echo "$m all"; cat /proc/[0-9]*/stat; ${calls}
} 2>/dev/null | LC_ALL=C awk -v m="$m" -v now="$(date +%s)" -v most=${mostLine} ${shellQuote(AWK)}
`,
  )
}

/**
 * The same for the end of what each rank of a job wrote so far, whole lines of at most `mostBytes` a file; `parseRankTails` reads it.
 * Stdout and stderr of rank 0 are two files.
 */
export function tailPrograms(job: Job, storeId: string, mostBytes: number): ReadonlyMap<string, string> {
  return programsOf(
    job,
    storeId,
    ({ kind }) => kind !== 'sent',
    (calls) => `${tailFunction(mostBytes)}echo "$m"
{ ${calls}
} 2>/dev/null
`,
  )
}

/** Each calls `rank RANK RESTART PID FILE…` for its ranks, in the directory of their bundle `k`, or `deleted BUNDLE` where there is none. */
function programsOf(
  job: Job,
  storeId: string,
  isWanted: (bundle: BundleState) => boolean,
  format: (calls: string) => string,
): ReadonlyMap<string, string> {
  const { state, spec } = job
  if (!('places' in state) || state.places === undefined) return new Map()
  const calls = new Map<string, string[]>()
  const isWrapped = spec.launch?.ranks !== undefined
  for (const [bundle, { host }] of state.places.entries())
    if (isWanted(bundleStateOf(job, bundle)))
      getOrMake(calls, host, () => []).push(`one ${bundleKey(storeId, job, bundle)} ${isWrapped ? '-' : bundle}`)
  return new Map(
    [...calls].map(([host, own]) => [host, `${EACH_RANK}${format(own.slice(0, MOST_BUNDLES).join('\n'))}`]),
  )
}

/**
 * `m` is what no rank can foresee: it begins the lines between what ranks wrote. Only numbers of the file `ranks` are used, as the job
 * may have written to it. It may also have put FIFOs or devices in place of files, which would block their reader.
 */
const EACH_RANK = `jobs=${JOBS_DIRECTORY}
m=$(od -An -N8 -tx1 </dev/urandom | tr -d ' ') && [ -n "$m" ] || exit
one() {
  k=$1
  cd "$jobs/$k" || { [ -e "$jobs/$k" ] || deleted "$k"; return; }
  if [ "$2" = - ]; then
    [ -f ranks ] && head -c ${RANKS_BYTES} ranks | awk 'NR <= ${MOST_RANKS} && NF == 3 && /^[0-9 ]+$/ && length($0) < 40 { last[$1] = $0 } END { for (r in last) print last[r] }' |
      while read -r r t p; do
        if [ "$r" = 0 ]; then rank "$r" "$t" "$p" $(ls -trd out err); else rank "$r" "$t" "$p" "rank.$r"; fi
      done
  else
    p=; [ -f id ] && read -r p x <id; case $p in ''|*[!0-9]*) p=0;; esac
    q=; read -r q x <"/proc/$p/task/$p/children"
    rank "$2" 0 "\${q:-$p}" $(ls -trd out err)
  fi
  :
}
`

const RANK = `${READ_STAT}deleted() { echo "$m deleted $1"; }
rank() {
  r=$1 t=$2 p=$3; shift 3
  w=; read -r w <"/proc/$p/wchan"
  read_stat "/proc/$p/stat"
  echo "$m rank $k $r $t $p \${w:-0} \${s##*) }"
  for f; do [ -f "$f" ] && stat -c "$m file %s %Y" "$f" && tail -c ${TAIL_BYTES} "$f" && echo; done
}
`

/** The last line may still be written, the first one may be cut: it is left out. */
const tailFunction = (mostBytes: number): string => `deleted() { :; }
rank() {
  r=$1; shift 3
  for f; do
    if [ ! -f "$f" ] && { [ -e "$f" ] || [ -L "$f" ]; }; then printf '%s\\n\\n' "$m $k $r other"; fi
    [ -f "$f" ] && n=$(wc -c <"$f") || continue
    if [ "$n" -gt ${mostBytes} ]; then echo "$m $k $r cut"; tail -c ${mostBytes} "$f" | tail -n +2
    else echo "$m $k $r whole"; head -c ${mostBytes} "$f"
    fi
    echo
  done
}
`

/** The end of a file of a rank. */
export type RankTail = RankStream & {
  /** Undefined: an engine told it. */
  readonly host?: string
  /** There is more before it. */
  readonly isCut: boolean
  /** Something else is in the place of the file, and is not read. */
  readonly isOther?: boolean
}

/** `mostLines`: of all files together, shared out equally; of each file the last ones are kept. */
export function parseRankTails(
  text: string,
  host: string,
  job: Job,
  storeId: string,
  mostLines: number,
): readonly RankTail[] {
  const at = text.indexOf('\n')
  const mark = `\n${text.slice(0, at)} `
  if (!/^\n[0-9a-f]{16} $/.test(mark)) return []
  const bounds = boundsOf(job)
  const [, ...parts] = text.slice(at, text.endsWith('\n') ? -1 : undefined).split(mark, MOST_RANKS * 2)
  return parts.flatMap((part): readonly RankTail[] => {
    const end = part.indexOf('\n')
    const [key = '', rank = '', how] = part.slice(0, end).split(' ', 3)
    const bundle = bundleOf(key, host, job, storeId)
    if (bundle === undefined || !/^\d{1,6}$/.test(rank) || !bounds.canHave(bundle, Number(rank))) return []
    const { lines, isCut } = lastLines(part.slice(end + 1), Math.floor(mostLines / parts.length))
    return [
      { rank: Number(rank), host, lines, isCut: isCut || how === 'cut', ...(how === 'other' ? { isOther: true } : {}) },
    ]
  })
}

/** Of all hosts together: ranks that several of them claim are told apart. */
export function toldApart(tails: readonly RankTail[]): readonly RankTail[] {
  const claims = hostsByRank(tails)
  return tails.map((tail) =>
    tail.host !== undefined && (claims.get(tail.rank)?.size ?? 0) > 1 ? { ...tail, claimedBy: tail.host } : tail,
  )
}

function hostsByRank(all: Iterable<{ readonly rank: number; readonly host?: string }>): Map<number, Set<string>> {
  const found = new Map<number, Set<string>>()
  for (const { rank, host = '' } of all) getOrMake(found, rank, () => new Set()).add(host)
  return found
}

const boundsOf = ({ spec, state }: Job) => rankBounds(spec, ('places' in state && state.places?.length) || 0)

/** Of this job, and on this host; undefined: it is not. */
function bundleOf(key: string, host: string, job: Job, storeId: string): number | undefined {
  const name = parseBundleKey(storeId, key)
  const { state } = job
  if (name === undefined || !isOfAttempt(name, job) || !('places' in state)) return undefined
  return state.places?.[name.rank]?.host === host ? name.rank : undefined
}

/** Processor time of a process is added to those above it; that of children that have ended is in fields of its own. */
const AWK = `function add_up(   p, a, depth) {
  for (p in ticks) { a = p; for (depth = 0; a + 0 > 1 && depth < 64; depth++) { sum[a] += ticks[p]; a = parent[a] } }
}
function flush() {
  if (head == "") return
  quiet = wrote == 0 || wrote > now ? 0 : now - wrote
  print head, sprintf("%.0f", bytes), quiet, step == "" ? "-" : step, line
}
$1 == m && $2 == "all" { all = 1; next }
$1 == m && $2 == "deleted" { print $3, $2; next }
$1 == m && $2 == "rank" {
  if (all) { all = 0; add_up() }
  flush()
  alive = $8 ~ /^[A-Y]$/
  head = $3 " " $4 " " $5 " " $6 " " (alive ? $8 : "-") " " sprintf("%.0f", alive ? sum[$6] : 0) " " (alive ? $7 : 0)
  bytes = wrote = 0; step = line = ""
  next
}
all ${EACH_STAT}
all { parent[pid] = stat[2]; ticks[pid] = stat[12] + stat[13] + stat[14] + stat[15]; next }
$1 == m && $2 == "file" { bytes += $3; if ($4 > wrote) wrote = $4; next }
{
  n = split($0, part, "\\r")
  while (n > 1 && part[n] ~ /^[ \\t]*$/) n--
  text = part[n]
  if (text ~ /^[ \\t]*$/) next
  line = substr(text, 1, most)
  if (match(text, /[Ss][Tt][Ee][Pp]["\\047]?[ \\t]*[:=]?[ \\t]*[0-9]+/)) {
    step = substr(text, RSTART, RLENGTH)
    sub(/^.*[^0-9]/, "", step)
    if (length(step) > 15) step = ""
  }
}
END { flush() }`

/** By bundle. A host tells of bundles of this job that are on it, and of ranks that they can have; other lines are ignored. */
export function parseRankReadings(
  text: string,
  host: string,
  job: Job,
  storeId: string,
): ReadonlyMap<number, readonly RankReading[]> {
  const bounds = boundsOf(job)
  const found = new Map<number, RankReading[]>()
  for (const row of text.split('\n').slice(0, MOST_RANKS * 2)) {
    const [key = '', rank = '', restart = '', pid = '', state = '', ticks = '', waitsIn = '', ...more] = row.split(' ')
    const [bytes = '', quiet = '', step = '', ...words] = more
    const bundle = bundleOf(key, host, job, storeId)
    if (bundle === undefined) continue
    if (![rank, restart].every((word) => /^\d{1,6}$/.test(word)) || !/^\d{1,10}$/.test(pid)) continue
    if (!bounds.canHave(bundle, Number(rank))) continue
    if (![ticks, bytes, quiet].every((word) => /^\d{1,15}$/.test(word))) continue
    const line = words.join(' ').slice(0, MOST_LINE)
    // Another process may have its number by now.
    const isAlive = /^[A-Za-z]$/.test(state) && bundleStateOf(job, bundle).kind !== 'ended'
    getOrMake(found, bundle, () => []).push({
      rank: Number(rank),
      restart: Number(restart),
      bytes: Number(bytes),
      quietS: Number(quiet),
      ...(/^\d{1,15}$/.test(step) ? { step: Number(step) } : {}),
      ...(line === '' ? {} : { line }),
      ...(isAlive
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

/** Bundles that have run, and of which their host has no files any more. */
export function parseDeleted(text: string, host: string, job: Job, storeId: string): ReadonlySet<number> {
  const found = text.split('\n').flatMap((row) => {
    const [key = '', word] = row.split(' ')
    const bundle = word === 'deleted' ? bundleOf(key, host, job, storeId) : undefined
    return bundle !== undefined && hasBegun({ bundles: [bundleStateOf(job, bundle)] }) ? [bundle] : []
  })
  return new Set(found)
}

const bundleStateOf = ({ state }: Job, bundle: number): BundleState =>
  ('bundles' in state ? state.bundles?.[bundle] : undefined) ?? { kind: 'sent' }
